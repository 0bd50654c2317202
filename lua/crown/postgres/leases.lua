--- Leases in `crown_lease_v1`, for all elections of this runtime that name the same server: one connection for the
-- statements, one for the notifications. Calls that come close together go out as one statement over arrays.
-- @internal crown.postgres.leases

local core = require "crown.core"
local Doubt = require "crown.oracle.doubt"
local epochs = require "crown.check.epoch"
local Followers = require "crown.oracle.followers"
local holders = require "crown.postgres.holder"
local lease_rules = require "crown.oracle.lease"
local notices = require "crown.postgres.notices"
local postgres = require "crown.postgres"
local ServerClock = require "crown.oracle.server_clock"
local Shared = require "crown.link.shared"
local tables = require "crown.postgres.tables"
local will = require "crown.postgres.will"

local Leases = {}
Leases.__index = Leases

Leases.CHANNEL = "crown_lease_v1"

-- Seconds that a call waits for company: a claim for that of its own turn of the loop; a refresh has time, the more the longer
-- the lease.
local CLAIM_WINDOW, REFRESH_WINDOW = 0, 0.05

-- Durable before it counts: a server that crashes after its answer must not forget it, whatever its settings are. A release
-- may be forgotten: then its lease runs out. So nobody waits for a disk or a replica to hear of it.
local INPUT = [[
WITH input AS MATERIALIZED (
  SELECT n, name, holder, claim::int8 AS claim, ttl::float8 AS ttl
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS i (name, holder, claim, ttl, n),
    set_config('synchronous_commit', '%s', true) AS durable WHERE durable IS NOT NULL
), ]]
-- A claim also says how far this process knows the server's log to have come, the highest epoch that it has heard of, and how
-- often it knows the server's clock to have been set back, as tables.knows tells it.
local CLAIM_INPUT = INPUT:gsub("AS ttl\n", "AS ttl, known::int8 AS known, seen::int8 AS seen, knew::int8 AS knew\n")
  :gsub("%$4::text%[%]", "$4::text[], $5::text[], $6::text[], $7::text[]"):gsub("ttl, n%)", "ttl, known, seen, knew, n)")

-- Runs what counts a step of the clock back, before any row is locked.
local COUNTED = "(SELECT count(*) FROM back) >= 0"

-- Rows are locked in the order of their names, so that two of these never wait for each other.
local MINE = [[
mine AS MATERIALIZED (
  SELECT i.n, i.ttl, i.claim, l.lock_name, l.ctid AS place FROM input i JOIN crown_lease_v1 l
    ON l.lock_name = i.name AND l.holder = i.holder AND %s
  ORDER BY l.lock_name FOR NO KEY UPDATE OF l
), ]]

-- Granted only by the memory that the store was last believed in: between a look of its own and the claim another server
-- could take the place of this one, behind a pooler. Nor by one whose epochs were higher before: an older state that was put
-- back may have written more since than it had lost. Nor by one whose clock was set back since: leases may have been refreshed by
-- that, and end too early. Who comes anew is not given another one's lease that ended less than `behind` ago.
--
-- What is the same for all rows is asked for once, behind the changes. A join of two lists is a full one, though the second has
-- nothing that the first lacks: Postgres does not know how many rows come, may take them for ten, and then compares each with
-- each, 262,144 times. It cannot do a full join so.
local CLAIM = CLAIM_INPUT .. ([[
back AS (BACK),
store AS MATERIALIZED (SELECT trusted_at, epoch_floor, longest_ttl, set_back, BEHIND AS behind, WRITTEN AS written, SAME AS same
  FROM crown_store_v1 WHERE part = 'lease' AND COUNTED),
asked AS MATERIALIZED (
  SELECT i.*, store.*, l.*, same AND i.known <= written AND i.seen <= greatest(epoch_floor, l.held)
    AND i.knew IN (-1, set_back, -2 - set_back) AS believed,
    i.knew > -2 OR l.holds IS NULL OR l.holds = i.holder OR l.expires_at <= clock_timestamp() - make_interval(secs => behind)
      AS sure
  FROM input i CROSS JOIN store LEFT JOIN LATERAL (
    SELECT holder AS holds, epoch AS held, expires_at FROM crown_lease_v1 WHERE lock_name = i.name LIMIT 1) l ON TRUE),
won AS (
  INSERT INTO crown_lease_v1 AS l (lock_name, holder, expires_at, claim, epoch)
  SELECT i.name, i.holder, clock_timestamp() + make_interval(secs => i.ttl), i.claim, i.epoch_floor + 1
  FROM asked i WHERE i.believed AND i.sure AND i.trusted_at <= clock_timestamp()
  ORDER BY i.name
  ON CONFLICT (lock_name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at,
    claim = excluded.claim, epoch = greatest(l.epoch + 1, excluded.epoch), evicted = FALSE
  WHERE l.epoch < MOST AND CASE WHEN l.holder = excluded.holder THEN l.claim < excluded.claim
    ELSE l.expires_at <= clock_timestamp() END
  RETURNING l.lock_name, l.epoch
),
shown AS (SHOWN),
after AS MATERIALIZED (
  SELECT extract(epoch FROM trusted_at - clock_timestamp())::float8 AS distrust,
    extract(epoch FROM clock_timestamp())::float8 AS server, (SELECT set_back FROM back) AS counted
  FROM store, (SELECT count(*) FROM won) AS done)
SELECT i.n, i.believed, i.written, won.epoch, i.holds, i.held,
  extract(epoch FROM i.expires_at - clock_timestamp())::float8, after.distrust, after.server, i.longest_ttl, after.counted
FROM asked i FULL JOIN won ON won.lock_name = i.name CROSS JOIN after]])
  :gsub("BEHIND", tables.BEHIND):gsub("BACK", tables.count_set_back("lease", "$8")):gsub("COUNTED", COUNTED)
  :gsub("SHOWN", tables.keep_time("lease", "(SELECT count(*) FROM won) > 0"))
  :gsub("SAME", (tables.is_same("identity", tables.identity(tables.parts.lease))))
  :gsub("WRITTEN", tables.WRITTEN):gsub("MOST", ("%.0f"):format(epochs.MOST))

-- By a clock that is found to be set back no lease ends earlier than before: a claim that waits for its row does not see the
-- count yet. The next refresh shortens it.
--
-- A row is written where it was locked: to look for its name once more would take longer than to write it. One that somebody has
-- changed since the statement began may not be found there. Then its oracle asks again.
local REFRESH = INPUT .. "back AS (" .. tables.count_set_back("lease", "$5") .. "),\n"
  .. MINE:format("l.claim = i.claim AND " .. COUNTED) .. [[
kept AS (
  UPDATE crown_lease_v1 l SET expires_at = greatest(clock_timestamp() + make_interval(secs => mine.ttl),
    CASE WHEN (SELECT count(*) FROM back) > 0 THEN l.expires_at END)
  FROM mine WHERE l.ctid = mine.place RETURNING mine.n, l.epoch, l.evicted
),
shown AS (]] .. tables.keep_time "lease" .. [[),
after AS MATERIALIZED (
  SELECT ]] .. tables.WRITTEN .. [[ AS written, extract(epoch FROM clock_timestamp())::float8 AS server
  FROM (SELECT count(*) FROM kept) AS done)
SELECT i.n, kept.epoch, kept.evicted, l.holder, l.epoch AS held,
  extract(epoch FROM l.expires_at - clock_timestamp())::float8, after.written, after.server
FROM input i FULL JOIN kept ON kept.n = i.n CROSS JOIN after
  LEFT JOIN LATERAL (SELECT * FROM crown_lease_v1 WHERE kept.n IS NULL AND lock_name = i.name) l ON TRUE]]

-- Crown's own rows are left as they are: how long their leases are nobody knows.
local SHORTEN = tables.shorten(tables.parts.lease, "lease", "expires_at", " AND holder LIKE '%#%'")

-- Under a number above the claim's: neither the claim nor a refresh of it that comes late finds it again.
local RELEASE = INPUT .. MINE:format "l.claim <= i.claim" .. [[
freed AS (
  UPDATE crown_lease_v1 l SET expires_at = ]] .. tables.over "lease" .. [[, claim = mine.claim + 1, evicted = FALSE
  FROM mine WHERE l.lock_name = mine.lock_name RETURNING mine.n, l.lock_name
)
SELECT n, pg_notify('crown_lease_v1', 'freed ' || lock_name) FROM freed]]

-- The last will of a runtime that leads: RELEASE of all that it has claimed before its death, under a number above its last
-- claim's: one that is on its way on another connection comes too late. One row answers, whatever the number of leases: nobody
-- reads the answer. Where somebody holds a lock it waits for as long as a lease lasts and no longer: nobody will close it.
local WILL = [[
SELECT set_config('lock_timeout', '%.0f', true);
WITH death AS MATERIALIZED (SELECT INSTANT::int8 AS at FROM set_config('synchronous_commit', 'off', true)),
mine AS MATERIALIZED (
  SELECT lock_name, death.at FROM crown_lease_v1 l, death
  WHERE l.holder LIKE '%%#%s-%%' AND l.claim < death.at AND l.expires_at > clock_timestamp()
  ORDER BY lock_name FOR NO KEY UPDATE OF l
),
freed AS (
  UPDATE crown_lease_v1 l SET expires_at = ]] .. tables.over "lease" .. [[, claim = mine.at, evicted = FALSE
  FROM mine WHERE l.lock_name = mine.lock_name RETURNING l.lock_name
)
SELECT count(pg_notify('crown_lease_v1', 'freed ' || lock_name)) FROM freed]]

-- The statements are planned once, and not anew for each of the first five times that one is run (plan_cache_mode in the
-- manual): an hour-old follower wins by its second claim. They are planned for tables that may grow, so by the index also
-- where a table is one page now.
local PLAN_ONCE = [[SELECT set_config('plan_cache_mode', 'force_generic_plan', false), set_config('enable_seqscan', 'off', false),
  set_config('jit', 'off', false)]]

-- Seconds after a win: what starts with the term comes first.
local REHEARSAL = 0.05

local known = {}

-- What is not taken, as on a connection with TLS, only takes longer: the next runtime gives the leases back, or they run out.
local function leave_will(bare, ttl)
  bare:will(will.messages(WILL:format(math.ceil(ttl * 1000), core.token)))
end

local function set_up(self, bare, generation)
  local state, problem = tables.prepare(bare, "lease", self, generation)
  if not state then return nil, problem end
  self.stored = self.ttl
  local pooled = state.pid ~= bare:server_pid()
  -- What a server refuses here only takes longer.
  self.planned = not pooled and bare:query(PLAN_ONCE, self.timeout, generation) and generation
  for _, batch in ipairs { self.claims, self.refreshes, self.releases } do batch:prepare(not pooled) end
  self:listen(pooled)
  if not pooled then leave_will(bare, self.ttl) end
  return true
end

-- The server is not as it was: that is written down, once for all claims that found it so. @return seconds to sit out; or
-- nil, message, code
local function doubt(self)
  return tables.trust(self.client.bare, "lease", self, 0)
end

--- The leases of a server, shared by all elections with the same URL.
-- @string url
-- @tparam table options `ttl`, `timeout` and `amnesia_wait` in seconds, `trust_empty`, `synchronous_commit`, `emit`, `schema`
-- @treturn Leases or nil and a message
function Leases.at(url, options)
  local key = ("%s\n%s\n%s"):format(url, options.synchronous_commit, options.schema or "")
  local self = known[key]
  if self then
    self.ttl, self.amnesia_wait = math.max(self.ttl, options.ttl), math.max(self.amnesia_wait, options.amnesia_wait)
    self.trust_empty = self.trust_empty and options.trust_empty
    return self
  end
  self = setmetatable({ url = url, followers = Followers.new(), kinds = {}, first = {}, told = {}, memory = {}, stored = 0,
    ttl = options.ttl, clock = ServerClock.new(), emit = options.emit, timeout = options.timeout,
    amnesia_wait = options.amnesia_wait, trust_empty = options.trust_empty, schema = options.schema }, Leases)
  local client, problem = postgres.new(url, { timeout = options.timeout, label = "postgres_lease", background = true,
    bounded = true,
    setup = function(bare, generation) return set_up(self, bare, generation) end })
  if not client then return nil, problem end
  self.client, self.doubt = client, Doubt.of("postgres", url, self)
  self.doubted = Shared.new(function() return doubt(self) end)
  local function batch(sql, columns, commit, timed)
    return client.bare:batch((sql:gsub("%%s", commit, 1)), columns, timed)
  end
  self.claims = batch(CLAIM, 7, options.synchronous_commit, true)
  self.refreshes = batch(REFRESH, 4, options.synchronous_commit, true)
  self.releases = batch(RELEASE, 4, "off")
  known[key] = self
  return self
end

-- Without notifications followers claim when the lease ends.
function Leases:listen(pooled)
  notices.listen(self, pooled, "a released lease is claimed when it would have expired", Leases.CHANNEL, function(payload)
    local what, name = payload:match "^(%l+) (.*)$"
    for lease in self.followers:of(name) do lease.election:send(what) end
  end, function()
    for _, lease in ipairs(self.followers:all()) do lease.election:send "missed" end
  end, function()
    for _, lease in ipairs(self.followers:all()) do
      if lease.number > 0 and not lease.leading then lease.election:send "missed" end -- a first claim does not wait for this
    end
  end)
end

--- Hands notifications about a lease to an election: "freed", "evict", or "missed" when some may have been lost.
-- @tparam table lease
function Leases:join(lease)
  self.followers:add(lease.name, lease)
end

-- The store knows the longest TTL in use before it is used: it is what a promoted replica sits out. One that is sitting
-- something out does so for that long, from when it began.
local function store_ttl(self, lease)
  if lease.ttl <= self.stored then return true end
  local ready, problem, code = self.client.bare:ready(lease.timeout)
  if not ready then return nil, problem, code end
  if lease.ttl <= self.stored then return true end
  local rows
  rows, problem, code = self.client:query(
    "UPDATE crown_store_v1 SET trusted_at = trusted_at + make_interval(secs => $1::float8 - longest_ttl), longest_ttl = $1 "
      .. "WHERE part = 'lease' AND longest_ttl < $1::float8", lease.ttl)
  if not rows then return nil, problem, code end
  self.stored = math.max(self.stored, lease.ttl)
  return true
end

local function remember(self, written)
  self.memory.written = math.max(self.memory.written or 0, written)
end

-- Each answer tells the server's clock; each question by which leases are promised tells what it has to show.
-- @return whether it was stepped forward
local function watch_clock(self, sent, server)
  local stepped = tables.is_stepped(self, sent, server)
  local base, rate = self.clock:course()
  self.claims:due(base, rate)
  self.refreshes:due(base, rate)
  return stepped
end

local function doubt_clock(self, timeout)
  local distrust, problem, code = self.doubted:ask(timeout)
  if distrust then self.clock:settle() end
  return distrust, problem, code
end

-- What lasts longer than anything can was written by a clock that was set back since.
-- @return seconds until the lease ends, or nil where there is none; until the store is believed. Or nil, nil, message, code
local function shortened(self, lease, left, distrust, most, counted)
  local problem, code
  if distrust > most then
    distrust, problem, code = self.doubted:ask(lease.timeout)
    if not distrust then return nil, nil, problem, code end
  end
  if left and left > most then
    local done
    done, problem, code = self.client:query(SHORTEN, lease.name, self.amnesia_wait, counted ~= nil)
    if not done then return nil, nil, problem, code end
    tables.counted_set_back(self, done[1] and done[1].set_back)
    left = most
  end
  return left, distrust
end

-- Leases that one statement has won are refreshed by one: the server has their rows side by side.
-- @return seconds until the first refresh
local function first_delay(self, lease, server)
  local last = self.first -- which another task may replace at any time
  if last.server == server and last.delay == lease.delay then return last.first end
  last = { server = server, delay = lease.delay, first = lease_rules.first_delay(lease.delay) }
  self.first = last
  return last.first
end

-- Who leads, for followers that sleep: of thousands that ask at once one table tells most.
local function asleep(self, node, held, retry_in)
  local last = self.told -- which another task may replace at any time
  if last.node == node and last.held == held and last.retry_in == retry_in then return last end
  last = { node = node, held = held, retry_in = retry_in }
  self.told = last
  return last
end

-- Whatever else comes of an answer: its epoch was heard of.
local function heard_of(lease, epoch)
  lease.seen = math.max(lease.seen, epochs.counted(epoch))
end

local function ask_for(self, lease, claim)
  local stored, problem, code = store_ttl(self, lease)
  if not stored then return nil, problem, code end
  local sent = core.now()
  local found, same, written, epoch, holder, held, left, distrust, server, longest, counted = self.claims:call(CLAIM_WINDOW,
    lease.timeout, lease.name, lease.mine, claim, lease.ttl, self.memory.written or 0, lease.seen,
    tables.knows(self))
  if found == nil then return nil, same, written end
  if not found then return nil, tables.ROW_LOST:format "lease", "store" end
  heard_of(lease, epoch or held)
  tables.counted_set_back(self, counted)
  if watch_clock(self, sent, server) then
    self:release(lease, claim)
    distrust, problem, code = doubt_clock(self, lease.timeout)
    return distrust and { held = held, distrust = distrust }, problem, code
  end
  if not same then
    if epochs.counted(held) < lease.seen then -- whatever place it is now, it is not the one that we know
      self.memory.place, self.memory.epoch = "gone back", math.max(self.memory.epoch or 0, lease.seen)
    end
    distrust, problem, code = self.doubted:ask(lease.timeout)
    if not distrust then return nil, problem, code end
  else
    remember(self, tonumber(written))
  end
  if not epoch then
    left, distrust, problem, code = shortened(self, lease, left, distrust, math.max(longest, self.amnesia_wait), counted)
    if not distrust then return nil, problem, code end
    if left and left <= 0 and holder ~= lease.mine then distrust = math.max(distrust, tables.unsure(self, left)) end
  end
  if not epoch and epochs.counted(held) == epochs.MOST and left <= 0 then return nil, epochs.none_above(held), "store" end
  if not epoch and (distrust or 0) <= 0 and left and holder ~= lease.mine then
    local retry_in = lease.ends:sleep(lease, left)
    if retry_in then return asleep(self, holders.node(holder), held, retry_in) end
  end
  if epoch then return { epoch = epoch, first = first_delay(self, lease, server) } end
  return { holder = holder, held = held, left = left, distrust = distrust }
end

-- A release of nothing, under a number that no claim has: the server parses and plans the statement while nobody waits for it,
-- and not when the next leader does.
local function rehearse(self)
  core.sleep(REHEARSAL)
  self.releases:call(CLAIM_WINDOW, self.timeout, "", "", -1, 0)
end

--- Claims a lease. A table or a column that was dropped beneath the connection is made anew by the next one.
-- @tparam table lease `name`, `mine`, `ttl`, `timeout`
-- @number claim the claim's number, higher than that of any claim before
-- @treturn table `{ epoch =, first = seconds until the first refresh }` when granted; else
-- `{ holder =, held =, left =, distrust = }`, or, where it may sleep, `{ node =, held =, retry_in = }`, which others share; or
-- nil, message, code
function Leases:claim(lease, claim)
  local bare = self.client.bare
  local generation = bare:generation()
  local answer, problem, code = ask_for(self, lease, claim)
  if tables.is_dropped(code) and bare:generation() == generation then bare:disconnect() end
  if answer and answer.epoch and self.planned == bare:generation() then
    self.planned = nil
    core.detach(rehearse, self)
  end
  return answer, problem, code
end

local function refresh_window(ttl)
  return math.min(REFRESH_WINDOW, ttl / 100)
end

--- What refreshes leases without a task for each, as long as nothing has changed, and gives them back. Their state has `name`,
-- `mine`, the holder that they are, the claim's `number`, and `leading`.
-- @number ttl in seconds, as the others
-- @number delay from one refresh to the next
-- @number timeout
-- @treturn userdata for a grant
function Leases:refresher(ttl, delay, timeout)
  local function judge(sent, _, _, _, _, _, written, server)
    remember(self, written)
    return not watch_clock(self, sent, server)
  end
  return self.refreshes:refresher { fields = { "name", "mine", "number", ttl }, ttl = ttl, delay = delay, timeout = timeout,
    window = refresh_window(ttl), judge = judge, releases = self.releases }
end

--- Refreshes a lease that a claim has won.
-- @return epoch and whether the leader was evicted; or false and `{ holder =, held =, left = }`, all nil where there
-- is no row any more; or nil, message, code
function Leases:refresh(lease, claim)
  local sent = core.now()
  local found, epoch, evicted, holder, held, left, written, server = self.refreshes:call(
    refresh_window(lease.ttl), lease.timeout, lease.name, lease.mine, claim, lease.ttl)
  if found == nil then return nil, epoch, evicted end
  heard_of(lease, epoch or held)
  remember(self, written)
  if watch_clock(self, sent, server) then
    local noted, problem, code = doubt_clock(self, lease.timeout)
    if not noted then return nil, problem, code end
  end
  if epoch then return epoch, evicted end
  return false, { holder = holder, held = held, left = left }
end

--- Releases a lease, and takes back a claim that may still be on its way.
-- @return true, or nil, message, code
function Leases:release(lease, claim)
  local found, problem, code = self.releases:call(CLAIM_WINDOW, lease.timeout, lease.name, lease.mine,
    claim, lease.ttl)
  if found == nil then return nil, problem, code end
  return true
end

return Leases
