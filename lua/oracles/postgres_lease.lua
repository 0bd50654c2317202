--- A lease in Postgres: a row with a holder and an expiry, refreshed by the leader, judged by the server's clock
-- alone. The table is the one of the Elixir library Crown, so that its nodes and ours can contend for one lease.
-- URL: `postgres://user@host/database?ttl=15`. See docs/oracle-postgres.md.
-- @module crown.oracles.postgres_lease

local admin = require "crown.postgres.admin"
local candidate = require "crown.oracle.candidate"
local Ends = require "crown.postgres.ends"
local holder = require "crown.postgres.holder"
local lease = require "crown.oracle.lease"
local Leases = require "crown.postgres.leases"
local postgres_url = require "crown.postgres.url"
local store_options = require "crown.oracle.options"

local Lease = lease.oracle {}
Lease.__index = Lease

local DEFAULT_TTL = 30

local RULES = {
  url = postgres_url.RULE,
  ttl = store_options.short_ttl(),
  duration = store_options.short_ttl "ttl",
  refresh = { type = "number", above = 0, most = 86400 },
  timeout = { type = "number", above = 0, most = 3600 },
  lock = store_options.lock(),
  amnesia_wait = store_options.AMNESIA_WAIT,
  trust_empty = store_options.trust_empty(true),
  schema = postgres_url.SCHEMA,
  synchronous_commit = postgres_url.COMMIT,
}

--- TTL and refresh delay that these options make.
function Lease.timing(opts)
  return store_options.timing(opts, DEFAULT_TTL)
end

local function check(opts)
  return postgres_url.durable_options("postgres_lease", opts, RULES)
end

local function kind_of(leases, ttl, delay, timeout)
  return lease.kind(Lease, leases, ttl, delay, timeout, function()
    return { ends = Ends.new(leases, ttl), refresher = leases:refresher(ttl, delay, timeout) }
  end)
end

-- What the user's options come to. Thousands of elections are mostly alike, and declared one after the other: those that are
-- like the last one are not checked again.
local latest = {}

local function settled(opts)
  local last = latest -- which another task may replace at any time
  if last.users and store_options.same(opts, last.users) then return last end
  local checked, problem = check(opts)
  if not checked then return nil, problem end
  local ttl, delay = Lease.timing(checked)
  local timeout = store_options.timeout(checked, ttl, delay)
  local leases
  leases, problem = Leases.at(checked.url, { ttl = ttl, timeout = timeout, emit = opts.emit,
    synchronous_commit = checked.synchronous_commit, amnesia_wait = checked.amnesia_wait, trust_empty = checked.trust_empty,
    schema = checked.schema })
  if not leases then return nil, problem end
  last = { users = store_options.users(opts), lock = checked.lock, store = "lease " .. checked.url,
    kind = kind_of(leases, ttl, delay, timeout) }
  latest = last
  return last
end

function Lease.init(opts)
  local common, problem = settled(opts)
  if not common then return nil, problem end
  local name = tostring(common.lock or opts.crown_name)
  local token
  token, problem = candidate.enter(common.store, name, opts)
  if not token then return nil, problem end
  -- With all that it may come to have: a table that grows leaves the smaller one behind, a hundred thousand times.
  local self = setmetatable({ name = name, number = 0, mine = holder.of(opts.node, token), election = candidate.of(opts),
    leading = false, grant = false, seen = 0, asleep = false }, common.kind)
  self.leases:join(self)
  self.ends:join()
  return self
end

-- Another table for each of a hundred thousand would only be thrown away.
local function held_by(answer)
  if answer.node then return false, answer end -- others share it
  answer.node, answer.mine = holder.node(answer.holder), answer.holder
  return false, answer
end

function Lease:ask(op)
  local epoch, second, code = self.leases[op](self.leases, self, self.number)
  if op == "claim" and epoch then
    if epoch.epoch then return epoch.epoch, epoch.first end
    return held_by(epoch)
  elseif epoch == false then
    return held_by(second)
  end
  return epoch, second, code
end

-- By way of JSON, so that a table without our columns, as Crown makes it, reads too.
local LIST = [[
SELECT lock_name AS name, holder, coalesce((to_jsonb(l) ->> 'epoch')::int8, 0) AS epoch,
  extract(epoch FROM expires_at - clock_timestamp())::float8 AS left
FROM crown_lease_v1 l ORDER BY lock_name]]

local EVICT = {
  mark = [[
WITH marked AS (
  UPDATE crown_lease_v1 SET evicted = TRUE
  WHERE lock_name = $1 AND expires_at > clock_timestamp() AND holder LIKE '%#%' RETURNING *
)
SELECT holder, epoch, pg_notify('crown_lease_v1', 'evict ' || lock_name) FROM marked]],
  leads = [[
SELECT holder, epoch, extract(epoch FROM expires_at - clock_timestamp())::float8 AS left
FROM crown_lease_v1 WHERE lock_name = $1]],
}

return admin.serve(Lease, { word = "postgres_lease", rules = RULES, table = "crown_lease_v1", part = "lease",
  list = LIST, evict = EVICT })
