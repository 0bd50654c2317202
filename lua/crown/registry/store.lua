--- A registry's row and queue in Postgres. Each operation is one statement, so nothing is half done, and a client that hangs
-- holds no lock that another one waits for. The row's `version` rises with every change that a decision rests on: a decision
-- counts only where it has not changed since, and so one node's transaction wins.
-- @internal crown.registry.store

local core = require "crown.core"
local elector = require "crown.registry.elector"
local epochs = require "crown.check.epoch"
local notices = require "crown.postgres.notices"
local postgres = require "crown.postgres"
local ServerClock = require "crown.oracle.server_clock"
local tables = require "crown.postgres.tables"
local json = require "crown.text.json"

local Store = {}
Store.__index = Store

-- Who is a member of it says until when it may act: that nobody acts has to be seen to before it is thrown away.
Store.NO_MEMBERS = "the members of '%s' in crown_registry_v1 are none: stop all of them, then UPDATE crown_registry_v1 SET "
  .. "members = '{}' WHERE registry = '%s'"

local SQLSTATE = 5 -- letters of an error of the server's; the connection's own are told by the client

-- Whether they are what crown.registry.elector takes for members, for statements that look at them.
Store.ARE_MEMBERS = [[
CASE jsonb_typeof(members) WHEN 'object' THEN NOT EXISTS (SELECT FROM jsonb_each(members) one, (VALUES ('token', 'string'),
  ('runtime', 'string'), ('number', 'number'), ('address', 'string'), ('ttl', 'number'), ('joined_at', 'number'),
  ('expires_at', 'number')) AS wanted (field, kind) WHERE jsonb_typeof(one.value -> field) IS DISTINCT FROM kind)
ELSE FALSE END]]

Store.CHANNEL = "crown_registry_v1"

-- Whether this is the memory that the store was last believed in, and has not gone back: between two statements a pooler may
-- put another server, which lacks what was promised, in the place of ours. %s: the parameter that says how far this process
-- knows the server's log to have come.
local SAME = ("(%s AND %%s::int8 <= %s)"):format(
  tables.is_same("s.identity", tables.identity(tables.parts.registry)), (tables.WRITTEN:gsub("%%", "%%%%")))
local HERE = "(SELECT " .. SAME .. " FROM crown_store_v1 s WHERE s.part = 'registry')"

-- Leases and the lock end by the server's clock. Whoever hears of it counts where it was set back: what it shows then is all
-- that is known of it from then on.
-- @string due the parameter that says what it has to show
local function counting(due)
  return "WITH back AS (" .. tables.count_set_back("registry", due) .. ")"
end

local KEEPING = ", shown AS (" .. tables.keep_time "registry" .. ")"

-- What a view is made of, behind what counts.
local VIEW = tables.WRITTEN .. [[ AS written, s.set_back, (SELECT set_back FROM back) AS counted,
  r.version, r.epoch, r.leader, r.leader_token, r.old_leader, r.assumed, r.members::text AS members, r.evicted,
  r.committed_epoch, r.committed, s.epoch_floor, extract(epoch FROM clock_timestamp())::float8 AS now,
  greatest(0, extract(epoch FROM r.locked_until - clock_timestamp()))::float8 AS locked,
  extract(epoch FROM s.trusted_at - clock_timestamp())::float8 AS distrust,
  q.number, q.message::text AS message]]

local HEAD = [[
 LEFT JOIN LATERAL (SELECT number, message FROM crown_registry_queue_v1 WHERE registry = $1 ORDER BY number LIMIT 1) q
  ON TRUE WHERE s.part = 'registry']]

local READ = counting "$3" .. " SELECT " .. SAME:format "$2" .. " AS same, " .. VIEW
  .. " FROM crown_store_v1 s JOIN crown_registry_v1 r ON r.registry = $1" .. HEAD

-- The row of a registry that nobody has joined yet is not there: it reads like an empty one. What has looked for it has counted.
local EMPTY = "SELECT " .. SAME:format "$1" .. " AS same, " .. tables.WRITTEN .. [[ AS written, s.set_back,
  0 AS version, 0 AS epoch, NULL AS leader, NULL AS leader_token, NULL AS old_leader, 0 AS assumed, '{}' AS members,
  FALSE AS evicted, 0 AS committed_epoch, 0 AS committed, s.epoch_floor,
  extract(epoch FROM clock_timestamp())::float8 AS now, 0 AS locked,
  extract(epoch FROM s.trusted_at - clock_timestamp())::float8 AS distrust, NULL AS number, NULL AS message
FROM crown_store_v1 s WHERE s.part = 'registry']]

local CHANGED = "pg_notify('crown_registry_v1', 'changed ' || $1)"

-- The row hands out the numbers, so that they are in the order in which messages become visible; never one that is there
-- already, for a row that was lost and made anew has forgotten them.
local ENQUEUE = [[
WITH r AS (
  INSERT INTO crown_registry_v1 AS r (registry, tail)
  VALUES ($1, 1 + (SELECT coalesce(max(number), 0) FROM crown_registry_queue_v1 WHERE registry = $1))
  ON CONFLICT (registry) DO UPDATE SET tail = greatest(r.tail + 1, excluded.tail) RETURNING tail
)
INSERT INTO crown_registry_queue_v1 (registry, number, message) SELECT $1, r.tail, $2::jsonb FROM r
RETURNING number, ]] .. CHANGED

-- $9: whether there is another leader, or none; $10: seconds of the lock.
local DECIDE = [[
WITH won AS (
  UPDATE crown_registry_v1 SET version = version + 1, members = $3::jsonb, leader = $4, leader_token = $5, old_leader = $6,
    epoch = $7::int8, evicted = evicted AND NOT $9::boolean,
    locked_until = CASE WHEN $9::boolean THEN clock_timestamp() + make_interval(secs => $10::float8) ELSE locked_until END
  WHERE registry = $1 AND version = $2::int8 AND locked_until <= clock_timestamp() AND ]] .. HERE:format "$11" .. [[

  RETURNING registry
), done AS (
  DELETE FROM crown_registry_queue_v1 q USING won WHERE q.registry = won.registry AND q.number = $8::int8
)
SELECT ]] .. CHANGED .. " FROM won"

local HEARTBEAT = counting "$6" .. KEEPING .. [[, r AS (
  UPDATE crown_registry_v1 SET version = version + 1, members = jsonb_set(members, ARRAY[$2, 'expires_at'],
    to_jsonb(extract(epoch FROM clock_timestamp())::float8 + $4::float8))
  WHERE registry = $1 AND members -> $2 ->> 'token' = $3 AND ]] .. HERE:format "$5" .. [[ RETURNING *
)
SELECT TRUE AS same, ]] .. VIEW .. " FROM crown_store_v1 s JOIN r ON TRUE" .. HEAD

local ASSUME = counting "$6" .. KEEPING .. [[, r AS (
  UPDATE crown_registry_v1 SET version = version + 1, assumed = epoch, locked_until = 'epoch'
  WHERE registry = $1 AND leader = $2 AND leader_token = $3 AND epoch = $4::int8 AND ]] .. HERE:format "$5" .. [[ RETURNING *
)
SELECT TRUE AS same, ]] .. VIEW .. ", " .. CHANGED .. [[,
  pg_notify('crown_registry_v1', 'leader ' || $1 || ' ' || r.epoch || ' ' || r.leader)
FROM crown_store_v1 s JOIN r ON TRUE]] .. HEAD

-- Only forward: one that was given up may run after those that came later.
local COMMIT = [[
UPDATE crown_registry_v1 SET committed_epoch = $4::int8,
  committed = CASE WHEN committed_epoch = $4::int8 THEN greatest(committed, $5::int8) ELSE $5::int8 END
WHERE registry = $1 AND leader = $2 AND leader_token = $3 AND epoch = $4::int8 AND ]] .. HERE:format "$6"

local function int(number)
  return ("%d"):format(number)
end

local function known(self)
  return ("%.0f"):format(self.memory.written or 0)
end

-- The server is not as it was: that is written down, for all who ask it from now on.
local function doubt(self)
  return tables.trust(self.client.bare, "registry", self, 0)
end

-- Who comes anew to a clock that was set back cannot tell at once which leases are over: to it they last until it can.
-- @return seconds until it can tell of the leader's, 0 where it can now
local function prolong_unsure(self, members, row)
  local leaders = 0
  for id, member in pairs(members) do
    local left = member.expires_at - row.now
    local wait = left <= 0 and tables.unsure(self, left) or 0
    if wait > 0 then member.expires_at = row.now + wait end
    if id == row.leader then leaders = wait end
  end
  return leaders
end

local function view_of(self, row)
  if type(row.epoch) == "string" then return nil, epochs.none_above(row.epoch) end -- too large for a number
  local members = core.json.decode(row.members)
  if not elector.are_members(members) then return nil, Store.NO_MEMBERS:format(self.registry, self.registry) end
  self.memory.written = math.max(self.memory.written or 0, row.written)
  tables.heard_of(self, row.epoch)
  local distrust = math.max(row.distrust, prolong_unsure(self, members, row))
  local view = { version = row.version, epoch = row.epoch, leader = row.leader, leader_token = row.leader_token,
    old_leader = row.old_leader, assumed = row.assumed, members = members, evicted = row.evicted,
    committed_epoch = row.committed_epoch, committed = row.committed, epoch_floor = row.epoch_floor, now = row.now,
    locked = row.locked, distrust = distrust > 0 and distrust or nil }
  if row.number then view.head = { number = row.number, message = core.json.decode(row.message) } end
  return view
end

-- A server that takes no writes may still answer whoever reads. A table or column that was dropped beneath the connection is
-- made anew by the next one.
local function ask(self, sql, ...)
  local kind, bare = sql == READ and "read" or "write", self.client.bare
  local generation = bare:generation()
  local rows, problem, code = self.client:query(sql, self.registry, ...)
  if tables.is_dropped(code) and bare:generation() == generation then bare:disconnect() end
  local told = self.told[kind]
  self.told[kind] = not rows and problem or nil
  if rows then return rows end
  if #code == SQLSTATE and told ~= problem then self.emit("oracle.error", { error = problem, code = code }) end
  return nil, problem
end

local ops = {}

local function read_once(self)
  local rows, problem = ask(self, READ, known(self), self.clock:due())
  if rows and not rows[1] then rows, problem = self.client:query(EMPTY, known(self)) end
  if not rows then return nil, problem end
  if not rows[1] then return nil, tables.ROW_LOST:format "registry" end
  return rows[1]
end

-- Whether a row is to be believed only when what may have been forgotten was sat out: it may be of another place or an older
-- state, or leases may have ended too early by the server's clock.
local function is_doubtful(self, sent, row)
  local stepped, was_set_back = tables.is_stepped(self, sent, row.now), tables.was_set_back(self, row)
  local went_back = type(row.epoch) == "number" and tables.epochs_went_back(self, row)
  return stepped or was_set_back or went_back or not row.same
end

function ops.read(self)
  local sent = core.now()
  local row, problem = read_once(self)
  if row and is_doubtful(self, sent, row) then
    local left
    left, problem = doubt(self)
    if not left then return nil, problem end
    self.clock:settle()
    row, problem = read_once(self)
  end
  if not row then return nil, problem end
  return view_of(self, row)
end

function ops.enqueue(self, args)
  local number
  for _, message in ipairs(args.messages) do
    local rows, problem = ask(self, ENQUEUE, json.encode(message))
    if not rows then return nil, problem end
    number = rows[1].number
  end
  return number
end

function ops.decide(self, args)
  local state = args.state
  local rows, problem = ask(self, DECIDE, int(args.version), json.encode(state.members), state.leader,
    state.leader_token, state.old_leader, int(state.epoch), int(args.number), args.changed, args.lock, known(self))
  if not rows then return nil, problem end
  return rows[1] ~= nil
end

-- A statement that changes the row and shows it as it is then; where it changed nothing, what it is now.
local function change(self, sql, ...)
  local sent = core.now()
  local rows, problem = ask(self, sql, ...)
  if not rows then return nil, problem end
  if not rows[1] or is_doubtful(self, sent, rows[1]) then return ops.read(self) end
  return view_of(self, rows[1])
end

function ops.heartbeat(self, args)
  return change(self, HEARTBEAT, args.id, args.token, args.ttl, known(self), self.clock:due())
end

function ops.assume(self, args)
  return change(self, ASSUME, args.id, args.token, int(args.epoch), known(self), self.clock:due())
end

function ops.commit(self, args)
  local rows, problem = ask(self, COMMIT, args.id, args.token, int(args.epoch), int(args.seq), known(self))
  if not rows then return nil, problem end
  if rows.affected == 1 then return true end
  local row
  row, problem = read_once(self)
  if not row then return nil, problem end
  if row.same then return false end
  doubt(self)
  return nil, "another server has taken the place of the store's"
end

--- Asks.
-- @string op "read", "heartbeat", "assume" → a view; "enqueue" → the message's number; "decide", "commit" → whether it was
-- done; each nil and a message where that is not known
-- @tparam table args what the statement takes
function Store:ask(op, args)
  return ops[op](self, args)
end

local function listen(self, pooled)
  notices.listen(self, pooled, "a change of the registry is seen at the next heartbeat", Store.CHANNEL, function(payload)
    local what, name = payload:match "^(%l+) (.*)$"
    if name == self.registry and (what == "changed" or what == "evict") then self.heard(what) end
  end, function() self.heard "changed" end)
end

local function set_up(self, bare, generation)
  local state, problem = tables.prepare(bare, "registry", self, generation)
  if not state then return nil, problem end
  listen(self, state.pid ~= bare:server_pid())
  return true
end

--- Opens the store of a registry.
-- @tparam table options `url`, `registry`, `ttl`, `timeout`, `amnesia_wait` seconds, `trust_empty`, `emit`, `schema`;
-- `heard(what)` is called when something has changed: "changed", "evict"
-- @treturn Store or nil and a message
function Store.open(options)
  local self = setmetatable({ registry = options.registry, ttl = options.ttl, timeout = options.timeout, emit = options.emit,
    url = options.url, heard = options.heard, amnesia_wait = options.amnesia_wait, trust_empty = options.trust_empty,
    schema = options.schema, memory = {}, told = {}, clock = ServerClock.new() }, Store)
  local client, problem = postgres.new(options.url, { timeout = options.timeout, label = "registry", background = true,
    bounded = true,
    setup = function(bare, generation) return set_up(self, bare, generation) end })
  if not client then return nil, problem end
  self.client = client
  return self
end

--- Closes the connections.
function Store:close()
  self.client:close()
  if self.listener then self.listener:close() end
end

return Store
