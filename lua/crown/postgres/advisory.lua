--- An advisory lock held and checked on one and the same session, and the row beneath it that says until when its
-- holder acts. The lock makes a hand-over quick; the row makes it safe where the server drops a session whose holder
-- is alive: a restart, a terminated backend, a proxy.
-- @internal crown.postgres.advisory

local core = require "crown.core"
local parts = require "crown.postgres.parts"
local postgres = require "crown.postgres"
local ServerClock = require "crown.oracle.server_clock"
local tables = require "crown.postgres.tables"

local Session = {}
Session.__index = Session

Session.CHANNEL = "crown_advisory_v1"

-- Seconds. A session that waits for a lock holds back VACUUM, so it waits in slices: the time of its statement, and with it the
-- server's lock_timeout, are that much longer.
local SLICE_LEAST, SLICE_MOST = 5, 30
local GONE_CHECKS, GONE_PAUSE = 100, 0.002 -- a backend that ends is off the list within milliseconds

-- The key as text, and as pg_locks shows it: a 64-bit key by halves with objsubid 1, a pair with objsubid 2.
local KEY = [[
SELECT k::text AS key, (k >> 32 & 4294967295)::text AS high, (k & 4294967295)::text AS low
FROM (SELECT coalesce($1::int8, ('x' || left(md5($2), 16))::bit(64)::int8) AS k) keys]]
local PAIR = "SELECT ($1::int8 & 4294967295)::text AS high, ($2::int8 & 4294967295)::text AS low"

-- Settings that this server has: a session that may be silent for long, whose end by silence comes after its leader's.
local SETTINGS = [[
SELECT set_config(s.name, v.value, false) FROM pg_settings s JOIN (VALUES
  ('idle_session_timeout', '0'), ('idle_in_transaction_session_timeout', '0'), ('synchronous_commit', 'on'),
  ('client_connection_check_interval', '500ms'), ('tcp_keepalives_idle', $1), ('tcp_keepalives_interval', $2),
  ('tcp_keepalives_count', '10'), ('tcp_user_timeout', $3)) AS v (name, value) USING (name)]]

-- Sessions that the server itself has ended: counted before a session leaves pg_stat_activity.
local KILLED = [[(SELECT pg_stat_get_db_sessions_killed(d.oid) + pg_stat_get_db_sessions_fatal(d.oid)
  FROM pg_database d WHERE d.datname = current_database())]]

-- Where the session comes from, written as we write our own end of it. Behind a translation of addresses the two differ:
-- there the end of the connection says nothing of the leader's tree.
local CLIENT = [[coalesce(CASE family(inet_client_addr()) WHEN 6 THEN '[' || host(inet_client_addr()) || ']'
  ELSE host(inet_client_addr()) END || ':' || inet_client_port(), 'unix:')]]

local HELD = [[EXISTS (SELECT FROM pg_locks k JOIN pg_database d ON d.oid = k.database
  WHERE k.locktype = 'advisory' AND k.granted AND k.pid = %s AND d.datname = current_database()
    AND k.classid::text = '%s' AND k.objid::text = '%s' AND k.objsubid = %d)]]

-- Opens each statement that a session with the lock may fall silent after before it has entered the row: the server shows
-- it, and so a silent candidate is told from another program that holds the same key.
local MARK = "/* crown_advisory_v1 */ "

local NOW = "extract(epoch FROM clock_timestamp())::float8 AS now"

-- Whoever hears of the clock counts where it was set back: what it shows then is all that is known of it from then on. $2 is what
-- it has to show.
local COUNT = "WITH back AS (" .. tables.count_set_back("advisory", "$2") .. ")\n"
local COUNT_AND_KEEP = COUNT .. ", shown AS (" .. tables.keep_time "advisory" .. ")\n"

-- Until when a leader acts is a time on the server's clock: what goes by it tells the clock, too.
local LOOK = MARK .. COUNT .. [[
SELECT ]] .. NOW .. [[, s.longest_ttl AS longest, s.epoch_floor, s.set_back, (SELECT set_back FROM back) AS counted,
  r.holder, coalesce(r.epoch, 0) AS epoch, r.direct,
  coalesce(extract(epoch FROM r.acting_until - clock_timestamp()), 0)::float8 AS left,
  r.killed = ]] .. KILLED .. [[ AS nobody_killed,
  r.renewed_at > (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()) AS seen_alive,
  EXISTS (SELECT FROM pg_stat_activity WHERE pid = r.pid) AS there, HELD_BY AS held
FROM (SELECT) AS one LEFT JOIN crown_advisory_v1 r ON r.lock_name = $1
  LEFT JOIN crown_store_v1 s ON s.part = 'advisory']]

local SHORTEN = MARK .. tables.shorten(tables.parts.advisory, "advisory", "acting_until")

local WIN = MARK .. COUNT_AND_KEEP .. [[
INSERT INTO crown_advisory_v1 AS r
  (lock_name, holder, epoch, acting_until, renewed_at, pid, direct, killed)
SELECT $1, $3, s.epoch_floor + 1, clock_timestamp() + make_interval(secs => $4::float8), clock_timestamp(),
  pg_backend_pid(), ]] .. CLIENT .. [[ = $5, ]] .. KILLED .. [[
FROM crown_store_v1 s WHERE s.part = 'advisory' AND s.trusted_at <= clock_timestamp() AND HELD
ON CONFLICT (lock_name) DO UPDATE SET holder = excluded.holder, epoch = greatest(r.epoch + 1, excluded.epoch),
  acting_until = excluded.acting_until, renewed_at = excluded.renewed_at, pid = excluded.pid,
  direct = excluded.direct, killed = excluded.killed, evicted = FALSE
RETURNING r.epoch, ]] .. NOW

local CHECK = COUNT_AND_KEEP .. [[
UPDATE crown_advisory_v1 r SET acting_until = clock_timestamp() + make_interval(secs => $4::float8),
  renewed_at = clock_timestamp(), killed = ]] .. KILLED .. [[
WHERE lock_name = $1 AND holder = $3 AND epoch = $5::int8 AND pid = pg_backend_pid() AND HELD
RETURNING r.evicted, ]] .. NOW

local RELEASE = [[
UPDATE crown_advisory_v1 SET acting_until = ]] .. tables.over "advisory" .. [[, evicted = FALSE
WHERE lock_name = $1 AND holder = $2 AND epoch = $3::int8]]

-- Sessions whose kernel, or whatever stands between, still answers for a frozen candidate: the leader's that outlived its
-- promise, and a follower's that was given the lock and has been silent since. Neither takes anything from a leader that
-- may act: what a WIN that comes between has promised is waited for, since the server counts that it ended the session.
local CLEAR = [[
SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a LEFT JOIN crown_advisory_v1 r ON r.lock_name = $1
WHERE (a.pid = r.pid AND r.acting_until < clock_timestamp() - interval '1 s'
  OR a.pid IS DISTINCT FROM r.pid AND a.state = 'idle' AND starts_with(a.query, $2)
    AND greatest(a.state_change, r.acting_until) < clock_timestamp() - make_interval(secs => $3::float8))
  AND HELD_BY]]

-- `holder`: the pid that HELD_BY asks about.
local function with_key(sql, key, holder)
  local function held(pid) return (HELD:format(pid, key.high, key.low, key.pair and 2 or 1)) end
  return (sql:gsub("HELD_BY", function() return held(holder) end):gsub("HELD", function()
    return held "pg_backend_pid()"
  end))
end

local function find_key(self, bare, generation)
  local rows, problem
  if self.pair then
    rows, problem = bare:query(PAIR, self.timeout, generation, self.pair[1], self.pair[2])
  else
    rows, problem = bare:query(KEY, self.timeout, generation, self.key, self.name)
  end
  if not rows then return nil, problem end
  local key = rows[1]
  key.pair = self.pair ~= nil
  self.sql = { look = with_key(LOOK, key, "r.pid"), win = with_key(WIN, key), check = with_key(CHECK, key),
    clear = with_key(CLEAR, key, "a.pid") }
  self.lock_values = self.pair or { key.key }
  self.lock_types = self.pair and "$1::int4, $2::int4" or "$1::int8"
  return true
end

local function set_up(self, bare, generation)
  local state, problem = tables.prepare(bare, "advisory", self, generation)
  if not state then return nil, problem end
  if state.pid ~= bare:server_pid() then return nil, parts.advisory.pooled end
  self.clock:settle() -- a doubt that there was is written down
  self.trusted_at = state.distrust and core.now() + state.distrust or nil
  local function whole(seconds) return ("%d"):format(math.max(1, math.floor(seconds))) end
  self.slice = math.max(SLICE_LEAST, math.min(SLICE_MOST, self.ttl))
  local set
  set, problem = bare:query(SETTINGS, self.timeout, generation, whole(self.ttl / 3),
    whole(self.ttl / 6), ("%d"):format((self.ttl + 1) * 1000))
  if not set then return nil, problem end
  return find_key(self, bare, generation)
end

--- A session for one election.
-- @tparam table options `url`, `name`, `holder`, `ttl`, `timeout`, `amnesia_wait`, `trust_empty`, `key` or `pair`, `emit`,
-- `schema`, `on_closed`
-- @treturn Session or nil and a message
function Session.new(options)
  local self = setmetatable({ name = options.name, holder = options.holder, ttl = options.ttl, key = options.key,
    pair = options.pair, timeout = options.timeout, amnesia_wait = options.amnesia_wait, trust_empty = options.trust_empty,
    emit = options.emit, schema = options.schema, memory = {}, clock = ServerClock.new() }, Session)
  local client, problem = postgres.new(options.url, { timeout = options.timeout, keep = true, background = true,
    bounded = true, silence = options.ttl, label = "postgres_advisory", on_closed = function(generation, problem)
      self.ended = problem
      if self.locked == generation then self.locked = nil end
      options.on_closed()
    end, setup = function(bare, generation) return set_up(self, bare, generation) end })
  if not client then return nil, problem end
  self.client, self.bare = client, client.bare
  return self
end

function Session:lock_call(fn, extra, generation)
  return self.bare:query((MARK .. "SELECT %s(%s) AS got"):format(fn, self.lock_types), self.timeout + (extra or 0), generation,
    unpack(self.lock_values))
end

--- Waits until there is a session.
-- @treturn number its generation, or nil, message, code
function Session:ready()
  return self.bare:ready(self.timeout)
end

--- Seconds for which the store is not to be relied on.
function Session:distrust()
  local left = self.trusted_at and self.trusted_at - core.now()
  return left and left > 0 and left or nil
end

-- Writes down that the store is not to be relied on. @return true; or nil, message, code
local function doubt(self, generation)
  local left, problem, code = tables.trust(self.bare, "advisory", self, generation)
  if not left then return nil, problem, code end
  self.clock:settle()
  self.trusted_at = core.now() + left
  return true
end

-- A clock that was stepped forward is written down as a doubt: last leaders may act for longer than their rows say.
-- @return true; or nil, message, code
local function watch_clock(self, generation, sent, now)
  if not tables.is_stepped(self, sent, now) then return true end
  return doubt(self, generation)
end

-- Runs a statement that tells the server's clock. @return its row, nothing where it has none; or nil, message, code
local function ask(self, sql, generation, ...)
  local sent = core.now()
  local rows, problem, code = self.bare:query(sql, self.timeout, generation, self.name, self.clock:due(), ...)
  if tables.is_dropped(code) and self.bare:generation() == generation then self:close() end -- the next session makes it anew
  if not rows then return nil, problem, code end
  if not rows[1] then return false end
  local fine
  fine, problem, code = watch_clock(self, generation, sent, rows[1].now)
  return fine and rows[1], problem, code
end

-- A leader that would act for longer than anybody can has said so by a clock that was set back since.
-- @return true; or nil, message, code
local function shorten(self, generation, row)
  local most = math.max(row.longest or 0, self.amnesia_wait)
  if row.left <= most then return true end
  local done, problem, code = self.bare:query(SHORTEN, self.timeout, generation, self.name, self.amnesia_wait,
    row.counted ~= nil)
  if not done then return nil, problem, code end
  tables.counted_set_back(self, done[1] and done[1].set_back)
  row.left = most
  return true
end

-- Who comes anew to a clock that was set back cannot tell at once whether the last leader's time is over.
local function sit_unsure_out(self, row)
  if not row.holder or row.holder == self.holder or row.left > 0 then return end
  local wait = tables.unsure(self, row.left)
  if wait > 0 then self.trusted_at = math.max(self.trusted_at or 0, core.now() + wait) end
end

-- A store whose epochs were higher before is not the one that we know, whatever it says of its place. One whose clock was set
-- back since may have promises that end too early.
local function look(self, generation)
  local row, problem, code = ask(self, self.sql.look, generation)
  if not row then return row, problem, code end
  local fine = true
  local was_set_back = tables.was_set_back(self, row)
  if tables.epochs_went_back(self, row) or was_set_back then fine, problem, code = doubt(self, generation) end
  if fine then fine, problem, code = shorten(self, generation, row) end
  if not fine then return nil, problem, code end
  sit_unsure_out(self, row)
  return row
end

--- Tries to take the lock.
-- @treturn boolean whether it is ours; or nil, message, code: then the session was closed, in case it is
function Session:try(generation)
  if self.locked == generation then return true end
  local rows, problem, code = self:lock_call("pg_try_advisory_lock", nil, generation)
  if not rows then
    self:close()
    return nil, problem, code
  end
  if rows[1].got then self.locked = generation end
  return rows[1].got
end

--- Waits for the lock, however long that takes, as long as the session lasts.
-- @treturn boolean true when it is ours; false when the session ended first
function Session:wait(generation)
  while true do
    local rows, _, code = self:lock_call("pg_advisory_lock", self.slice, generation)
    if rows then
      self.locked = generation
      return true
    end
    if code ~= "55P03" then -- anything but the end of a slice
      if self.bare:generation() == generation then self:close() end
      return false
    end
    if look(self, generation) and not self:distrust() then
      self.bare:query(self.sql.clear, self.timeout, generation, self.name, MARK, 1 + self.timeout)
    end
  end
end

--- With the lock in hand: how long the last leader may still act. It may not when it has released, when its time is
-- up, or when its session ended because everything that held its socket is dead: then the server, which this session
-- has been connected to all the while, has ended no session by itself, and nothing stood between the two.
-- @tparam number generation
-- @tparam boolean waited whether the lock came by waiting
-- @treturn table the row, with `left` seconds, 0 when nothing is to be waited for; or nil, message, code
function Session:last_leader(generation, waited)
  local row, problem, code = look(self, generation)
  if not row then return nil, problem, code end
  if row.left <= 0 or row.holder == self.holder then
    row.left = 0
    return row
  end
  local seen_alive = row.seen_alive or self.seen == ("%d:%s"):format(generation, row.epoch)
  for _ = 1, waited and row.direct and seen_alive and GONE_CHECKS or 0 do
    if not row.there then
      if row.nobody_killed then row.left = 0 end
      return row
    end
    core.sleep(GONE_PAUSE)
    row, problem, code = look(self, generation)
    if not row then return nil, problem, code end
  end
  return row
end

--- Enters this candidate as the leader, under the lock.
-- @treturn number the new epoch; or nil, message, code
function Session:win(generation)
  local _, address = self.bare:socket()
  local row, problem, code = ask(self, self.sql.win, generation, self.holder, self.ttl, address or "")
  if row == false then return nil, "the lock is not ours after all, or the store is not to be relied on yet", "store" end
  if row then tables.heard_of(self, row.epoch) end
  return row and row.epoch, problem, code
end

--- Looks, on the lock's own session, whether it is still held, and prolongs the promise.
-- @treturn boolean true, and whether the leader was evicted; false and why, when the lock is lost; or nil, message, code
function Session:check(generation, epoch)
  local row, problem, code = ask(self, self.sql.check, generation, self.holder, self.ttl, epoch)
  if row == false then return false, "the session has the lock no more" end
  if row then return true, row.evicted end
  if code == "timeout" then return nil, problem, code end
  if self.bare:generation() ~= generation then return false, problem end
  return nil, problem, code
end

--- Says that nothing of this term runs any more, then lets the lock go.
function Session:release(epoch)
  local generation = self.locked
  local said = generation and epoch
    and self.bare:query(RELEASE, self.timeout, generation, self.name, self.holder, epoch)
  local freed = said and self:lock_call("pg_advisory_unlock", nil, generation)
  if freed then
    self.locked = nil
  else
    self:close()
  end
end

--- The session's socket: while a copy of it is open anywhere, the server keeps the lock.
function Session:socket()
  return (self.bare:socket())
end

--- Ends the session, and with it the lock.
function Session:close()
  self.locked = nil
  self.bare:disconnect()
end

--- The leader, for a denial. That its session holds the lock now counts later on, when the lock comes by waiting.
-- @tparam number generation
-- @treturn table its row, or nil when nobody's promise runs
function Session:holder_now(generation)
  local row = look(self, generation)
  self.seen = row and row.held and ("%d:%s"):format(generation, row.epoch) or nil
  return row and row.left > 0 and row or nil
end

return Session
