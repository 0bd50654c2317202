--- A lease in Postgres: a row with a holder and an expiry, refreshed by the leader, judged by the server's clock
-- alone. The table is the one of the Elixir library Crown, so that its nodes and ours can contend for one lease.
-- URL: `postgres://user@host/database?ttl=15`. See docs/oracle-postgres.md.
-- @module crown.oracles.postgres_lease

local admin = require "crown.postgres.admin"
local core = require "crown.core"
local holder = require "crown.postgres.holder"
local Leases = require "crown.postgres.leases"
local postgres_url = require "crown.postgres.url"

local Lease = {}
Lease.__index = Lease

local DEFAULT_TTL = 30

local RULES = {
  ttl = { type = "number", least = 0.5, most = 86400 },
  duration = { type = "number", least = 0.5, most = 86400 },
  refresh = { type = "number", above = 0, most = 86400 },
  timeout = { type = "number", above = 0, most = 3600 },
  lock = { type = { "string", "number" } },
  synchronous_commit = { type = { "string", "boolean" }, default = "on" },
}
local COMMITS = { on = true, ["local"] = true, remote_write = true, remote_apply = true }

--- TTL and refresh delay that these options make.
function Lease.timing(opts)
  local ttl = tonumber(opts.ttl) or tonumber(opts.duration) or DEFAULT_TTL
  return ttl, tonumber(opts.refresh) or ttl / 3
end

local function check(opts)
  local checked = postgres_url.options("postgres_lease", opts, RULES)
  local commit = checked.synchronous_commit
  checked.synchronous_commit = commit == true and "on" or tostring(commit)
  if not COMMITS[checked.synchronous_commit] then
    return nil, ("synchronous_commit = %s would let the server forget a lease in a crash: on, local, remote_write or "
      .. "remote_apply"):format(tostring(commit))
  end
  return checked
end

function Lease.init(opts)
  local checked, problem = check(opts)
  if not checked then return nil, problem end
  local ttl, delay = Lease.timing(checked)
  local timeout = checked.timeout or math.max(0.25, math.min(5, ttl / 4))
  local leases
  leases, problem = Leases.at(checked.url, { ttl = ttl, timeout = timeout, emit = opts.emit,
    synchronous_commit = checked.synchronous_commit })
  if not leases then return nil, problem end
  local self = setmetatable({ leases = leases, name = tostring(checked.lock or opts.crown_name), number = 0,
    ttl = ttl, delay = delay, timeout = timeout, holder = holder.of(opts.node, opts.token),
    send = opts.send, emit = opts.emit }, Lease)
  leases:join(self)
  return self
end

local function denial(self, answer)
  local left = answer.left and math.max(0, answer.left)
  if answer.distrust and answer.distrust > 0 then
    return false, { node = holder.node(answer.holder), epoch = answer.held, amnesia = true,
      expires_in = math.max(answer.distrust, left or 0) }
  end
  if answer.holder == self.holder then return nil, "an older claim of ours was answered" end
  return false, { node = holder.node(answer.holder), epoch = answer.held, expires_in = left }
end

-- Numbers that rise, also from one runtime of this candidate to the next: microseconds since the start of the host.
local function next_number(self)
  self.number = math.max(self.number + 1, math.floor(core.now() * 1e6))
  return self.number
end

function Lease:claim()
  local answer, problem, code = self.leases:claim(self, next_number(self))
  if not answer then return nil, problem, code end
  if not answer.epoch then return denial(self, answer) end
  self.leading = true
  return true, self.delay, { ttl = self.ttl, epoch = answer.epoch }
end

function Lease:refresh()
  local epoch, second, third = self.leases:refresh(self, self.number)
  if epoch == nil then return nil, second, third end
  if epoch and second then return false, { evicted = true } end
  if epoch then return true, self.delay, { ttl = self.ttl, epoch = epoch } end
  self.leading = false
  if not second.holder then return false, { amnesia = true, expires_in = self.ttl } end -- the row is gone
  return denial(self, second)
end

function Lease:abdicate()
  self.leading = false
  self.leases:release(self, self.number)
end

function Lease:handle_info(message)
  if message == "evict" then
    if self.leading then return self:refresh() end
  elseif message == "freed" or message == "missed" then
    if not self.leading then return self:claim() end
  end
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

--- Leases in the table.
-- @tparam table opts `url`
-- @treturn table an array of `{ name, node, epoch, expires_in }`, or nil and a message
function Lease.list(opts)
  return admin.list(postgres_url.options("postgres_lease", opts, RULES), LIST)
end

--- Asks the leader to step down, and waits until it has.
-- @tparam table opts `url`; `wait` seconds (10)
-- @string name of the election
-- @treturn table `{ node =, epoch = }` of who was evicted, or nil and a message
function Lease.evict(opts, name)
  return admin.evict(postgres_url.options("postgres_lease", opts, RULES), name, EVICT)
end

--- What the server says of itself, for `info`.
-- @tparam table opts `url`
-- @treturn table `{ facts =, warnings = }`, or nil and a message
function Lease.health(opts)
  return admin.health(postgres_url.options("postgres_lease", opts, RULES), "crown_lease_v1")
end

return Lease
