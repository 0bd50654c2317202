--- A lease in this process's memory: for trying things out, for tests, and for measuring. It elects among the
-- elections of one runtime only. URL: `memory:SPACE`; options: `ttl` (30), `refresh` (a third of it).
-- @module crown.oracles.memory

local candidate = require "crown.oracle.candidate"
local Oracle = require "crown.register.oracle"
local store_options = require "crown.oracle.options"
local Store = require "crown.stores.memory"

local stores, kinds = {}, {}

local RULES = {
  ttl = { type = "number", above = 0, most = 31536000 },
  refresh = { type = "number", above = 0, most = 31536000 },
  lock = store_options.lock(),
}

local Memory = { claim = Oracle.claim, refresh = Oracle.refresh, abdicate = Oracle.abdicate, handle_info = Oracle.handle_info }

--- What info and evict say.
Memory.unasked = "its leases are in the memory of one process; ask that one: 'crown-lua status' and 'abdicate'"

function Memory.init(opts)
  store_options.own("memory", opts, RULES)
  local space, name = opts.path or "", tostring(opts.lock or opts.crown_name)
  local store = stores[space] or Store.new()
  stores[space] = store
  local ttl = opts.ttl or 30
  local self, problem = Oracle.join(kinds, store, { place = space, name = name, token = opts.token, node = opts.node, ttl = ttl,
    delay = opts.refresh or ttl / 3, timeout = ttl, amnesia_wait = 0, remembers = true, election = candidate.of(opts) })
  if self then store:follow(name, self) end
  return self, problem
end

return Memory
