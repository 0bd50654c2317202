--- A lease in this process's memory: for trying things out, for tests, and for measuring. It elects among the
-- elections of one runtime only. URL: `memory:SPACE`; options: `ttl` (30), `refresh` (a third of it).
-- @module crown.oracles.memory

local core = require "crown.core"
local store_options = require "crown.oracle.options"

local Memory = {}
Memory.__index = Memory

local spaces = {}

local RULES = {
  ttl = { type = "number", above = 0, most = 31536000 },
  refresh = { type = "number", above = 0, most = 31536000 },
  lock = store_options.lock(),
}

--- What info and evict say.
Memory.unasked = "its leases are in the memory of one process; ask that one: 'crown-lua status' and 'abdicate'"

function Memory.init(opts)
  store_options.own("memory", opts, RULES)
  local space, name = opts.path or "", tostring(opts.lock or opts.crown_name)
  local leases = spaces[space] or {}
  spaces[space] = leases
  leases[name] = leases[name] or { epoch = 0, ends = 0 }
  local ttl = opts.ttl or 30
  return setmetatable({ lease = leases[name], node = opts.node, ttl = ttl, delay = opts.refresh or ttl / 3 }, Memory)
end

local function denial(lease, now)
  return false, { node = lease.node, epoch = lease.epoch, expires_in = lease.ends - now }
end

function Memory:claim()
  local now = core.now()
  local lease = self.lease
  if lease.owner ~= nil and lease.owner ~= self and lease.ends > now then return denial(lease, now) end
  lease.owner, lease.node, lease.ends, lease.epoch = self, self.node, now + self.ttl, lease.epoch + 1
  if lease.evicted then lease.evicted = nil end -- else it would make room for a field that it has not
  return true, self.delay, { ttl = self.ttl, epoch = lease.epoch }
end

function Memory:refresh()
  local now = core.now()
  local lease = self.lease
  if lease.owner ~= self or lease.ends <= now then return denial(lease, now) end
  if lease.evicted then
    lease.evicted = nil -- said once: while the term ends, its lease is refreshed like any
    return false, { evicted = true }
  end
  lease.ends = now + self.ttl
  return true, self.delay, { ttl = self.ttl, epoch = lease.epoch }
end

function Memory:abdicate()
  local lease = self.lease
  if lease.owner == self then lease.owner, lease.ends = nil, 0 end
end

return Memory
