--- A session's advisory lock in Postgres: it is free as soon as nothing of its leader's tree is left, so a successor
-- need not wait for a lease to end. A connection for each election. URL: `postgres+advisory://user@host/database`.
-- See docs/oracle-postgres-advisory.md.
-- @module crown.oracles.postgres_advisory

local admin = require "crown.postgres.admin"
local candidate = require "crown.oracle.candidate"
local core = require "crown.core"
local Doubt = require "crown.oracle.doubt"
local epochs = require "crown.check.epoch"
local eviction = require "crown.oracle.eviction"
local figure = require "crown.check.figure"
local holder = require "crown.postgres.holder"
local ordered = require "crown.oracle.ordered"
local Orders = require "crown.postgres.orders"
local postgres_url = require "crown.postgres.url"
local Session = require "crown.postgres.advisory"
local store_options = require "crown.oracle.options"

local Advisory = { leaves = true } -- also a follower waits in the lock's queue
Advisory.__index = Advisory

--- What a leader's child holds, so that it may not run as another user.
Advisory.hands_over = "the open session of the database"

local DEFAULT_CHECK = 5

local PART, TABLE = "advisory", "crown_advisory_v1"

local EXACT = 2 ^ 53 -- from here on a number of Lua's skips whole ones

-- The largest key, and one more: the digits of the least.
local WHOLE = { "9223372036854775807", "9223372036854775808" }
local HALVES = { "2147483647", "2147483648" }

-- Whether digits are at most others: they may be more than a number of Lua's holds.
local function fits(text, most)
  local sign, digits = text:match "^(%-?)0*(%d-)$"
  local limit = sign == "-" and most[2] or most[1]
  return #digits < #limit or #digits == #limit and digits <= limit
end

local function check_key(key)
  if type(key) == "number" and key % 1 == 0 then
    return math.abs(key) >= EXACT and "is too large for a number: write its digits as a text" or nil
  end
  local words = type(key) == "table" and table.concat(key, ",") or tostring(key)
  local first, second = words:match "^(%-?%d+),(%-?%d+)$"
  local is_one = type(key) ~= "table" and words:match "^%-?%d+$"
  if not is_one and not first then return "must be a whole number, or two: { 1, 2 }, in a URL 1,2" end
  for _, one in ipairs { first or words, second } do
    if not fits(one, first and HALVES or WHOLE) then
      return ("%s is out of range: %s"):format(one, first and "each of two is a 32-bit number, -2147483648 to 2147483647"
        or "a key is a 64-bit number, -9223372036854775808 to 9223372036854775807")
    end
  end
end

-- Whoever comes from pg_try_advisory_lock(10) must not hold another key than he means.
local function check_lock(lock)
  if type(lock) == "number" then
    return ("is a name, of which a key is made; for the key %s itself, as pg_advisory_lock takes it, give key")
      :format(figure.exact(lock))
  end
end

local RULES = {
  url = postgres_url.RULE,
  ttl = { type = "number", least = 1, most = 86400 },
  check = { type = "number", above = 0, most = 86400 },
  refresh = { type = "number", above = 0, most = 86400, not_beside = "check" },
  timeout = { type = "number", above = 0, most = 3600 },
  lock = store_options.lock(check_lock, "key"),
  key = { type = { "number", "string", "table" }, check = check_key },
  amnesia_wait = store_options.AMNESIA_WAIT,
  trust_empty = store_options.trust_empty(true),
  schema = postgres_url.SCHEMA,
}

--- TTL and check interval that these options make.
function Advisory.timing(opts)
  local every = tonumber(opts.check) or tonumber(opts.refresh)
  local ttl = tonumber(opts.ttl) or (every or DEFAULT_CHECK) * 3
  return ttl, every or ttl / 3
end

local function read_key(key)
  if key == nil then return nil end
  if type(key) == "number" then return ("%d"):format(key) end
  if type(key) == "table" then return nil, key end
  local first, second = key:match "^(%-?%d+),(%-?%d+)$"
  if first then return nil, { first, second } end
  return key
end

function Advisory.init(opts)
  local checked = postgres_url.options("postgres_advisory", opts, RULES)
  local ttl, every = Advisory.timing(checked)
  local key, pair = read_key(checked.key)
  local name = tostring(checked.lock or opts.crown_name)
  local token, problem = candidate.enter("advisory " .. checked.url, pair and table.concat(pair, ",") or key or name, opts)
  if not token then return nil, problem end
  local self = setmetatable({ name = name, ttl = ttl, every = every, send = opts.send, emit = opts.emit,
    doubt = Doubt.of("postgres", checked.url, checked) }, Advisory)
  self.session, problem = Session.new { url = checked.url, name = self.name, holder = holder.of(opts.node, token),
    ttl = ttl, timeout = store_options.timeout(checked, ttl, every), key = key, pair = pair,
    amnesia_wait = checked.amnesia_wait, trust_empty = checked.trust_empty, emit = opts.emit, schema = checked.schema,
    on_closed = function() if self.epoch then opts.send "closed" end end }
  if not self.session then return nil, problem end
  self.place, problem = Orders.place(checked.url, PART, self.session.timeout)
  if not self.place then return nil, problem end
  self.session.client:listen(Session.CHANNEL, function(payload)
    if payload == "evict " .. self.name and self.epoch then opts.send "evict" end
  end)
  return self
end

-- In a task of its own, which lives as long as the election.
local function wait_for_lock(self, generation)
  self.waiting = true
  core.spawn(function()
    local ours = self.session:wait(generation)
    self.waiting = false
    self.send(ours and "locked" or "again")
  end)
end

local function denial(row, retry)
  return false, { node = row and holder.node(row.holder), epoch = row and row.epoch, retry_in = retry }
end

function Advisory:claim()
  if self.waiting then return denial(self.last, self.every) end
  local came = self.came
  self.came = nil
  if came and self.session.locked == came then return self:settle(came, true) end
  local generation, problem, code = self.session:ready()
  if not generation then return nil, problem, code end
  local distrust = self.session:distrust()
  if distrust then return self.doubt:denial(distrust) end
  local ours
  ours, problem, code = self.session:try(generation)
  if ours == nil then return nil, problem, code end
  if ours then return self:settle(generation, false) end
  self.last = self.session:holder_now(generation)
  wait_for_lock(self, generation)
  if not self.watched then self.emit("monitor.started", { by = "waiting for the lock" }) end
  self.watched = true
  return denial(self.last, self.every)
end

-- Where the store is not to be relied on, the lock is let go, and what was won with it. @return what a denial says, if so
local function sat_out(self, epoch)
  local distrust = self.session:distrust()
  if not distrust then return nil end
  self.session:release(epoch)
  return select(2, self.doubt:denial(distrust))
end

-- The lock is ours; leadership is, once the last leader cannot act any more.
function Advisory:settle(generation, waited)
  local row, problem, code = self.session:last_leader(generation, waited)
  if not row then return nil, problem, code end
  local doubt = sat_out(self)
  if doubt then return false, doubt end
  if row.left > 0 then return false, { node = holder.node(row.holder), epoch = row.epoch, expires_in = row.left } end
  local epoch
  if epochs.counted(row.epoch) < epochs.MOST then
    epoch, problem, code = self.session:win(generation)
  else
    problem, code = epochs.none_above(row.epoch), "store"
  end
  if not epoch then
    self.session:close()
    return nil, problem, code
  end
  doubt = sat_out(self, epoch)
  if doubt then return false, doubt end
  self.epoch, self.generation, self.told_to_go = epoch, generation, false
  return self:grant()
end

function Advisory:grant()
  return true, self.every, { ttl = self.ttl, epoch = self.epoch, hold = self.session:socket() }
end

function Advisory:refresh()
  if not self.epoch then return false end
  local held, second, code = self.session:check(self.generation, self.epoch)
  if held == nil then return nil, second, code end
  if held and second and not self.told_to_go then return eviction.tell(self) end
  if held then return self:grant() end
  self.epoch = nil
  return false, { error = second }
end

-- Called when nothing of the term runs any more, for a claim whose outcome is not known, and where this candidate may not lead
-- any more: then it must not get the lock that it waits for.
function Advisory:abdicate()
  local epoch = self.epoch
  self.epoch = nil
  self.session:release(epoch)
end

function Advisory:handle_info(message)
  if message == "closed" then
    if not self.epoch or self.session.locked then return end
    self.epoch = nil
    return false, { error = self.session.ended or "the session ended, and its lock with it" }
  end
  if message == "evict" and self.epoch then return self:refresh() end
  if self.epoch then return end
  if message == "again" then return self:claim() end
  if message == "locked" and self.session.locked then
    self.came = self.session.locked
    return self:claim() -- which looks at operators' orders first
  end
end

local LIST = [[
SELECT lock_name AS name, holder, epoch, extract(epoch FROM acting_until - clock_timestamp())::float8 AS left
FROM crown_advisory_v1 ORDER BY lock_name]]

local EVICT = {
  mark = [[
WITH marked AS (
  UPDATE crown_advisory_v1 SET evicted = TRUE WHERE lock_name = $1 AND acting_until > clock_timestamp() RETURNING *
)
SELECT holder, epoch, pg_notify('crown_advisory_v1', 'evict ' || lock_name) FROM marked]],
  leads = [[
SELECT holder, epoch, extract(epoch FROM acting_until - clock_timestamp())::float8 AS left
FROM crown_advisory_v1 WHERE lock_name = $1]],
}

local HOLDER = [[
SELECT holder, epoch FROM crown_advisory_v1 WHERE lock_name = $1 AND acting_until > clock_timestamp()]]

local function holder_of(self)
  local rows = self.place.client:query(HOLDER, self.name)
  if not rows then return nil end
  return rows[1] and { node = holder.node(rows[1].holder), epoch = rows[1].epoch } or false
end

local function orders_on(client) return Orders.new(client, PART, TABLE) end

admin.serve(Advisory, { word = "postgres_advisory", rules = RULES, table = TABLE, part = PART, list = LIST, evict = EVICT,
  warnings = function(client) return orders_on(client):warnings "SELECT,INSERT,UPDATE,DELETE" end })

return ordered.oracle(Advisory, { word = "postgres", holder = holder_of,
  owner = function(self) return self.place, self.name end,
  leads = function(self) return self.epoch ~= nil end,
  patrol = function(self) return self.every end,
  store = function(self) return orders_on(self.place.client) end,
  visit = function(opts, fn)
    return admin.visit(postgres_url.options("postgres_advisory", opts, RULES), function(client) return fn(orders_on(client)) end)
  end })
