--- A stand-in of the specs (support.stand_in) as a store, with the faults that its tricks make.
local server_faults = require "torture.server_faults"

local TTL = 2

--- Makes one.
-- @tparam StandIn server with `url(more, port)`
-- @treturn table the store, with `faults`
-- @treturn function of a trick → what plays it
return function(server)
  local store = { ttl = TTL, cost = 6 * TTL + 4, ports = { function() return server.port end }, server = server,
    servers = { server } }
  function store.url(number) return server:url("amnesia_wait=0", number) end
  local faults = server_faults.of { down = function() server:down() end, up = function() server:up() end,
    freeze = function() server:freeze() end, thaw = function() server:thaw() end }
  local function tricked(what) return function() server:trick(what) end end
  faults.older_data = server_faults.older_data(server)
  faults.evict = server_faults.evict()
  faults.unsaid = server_faults.said("writes are done, and nobody hears of it", tricked { unsaid = true, method = "PUT", count = 5 })
  faults.late = server_faults.said("writes are answered late", tricked { late = 2 * TTL, method = "PUT", count = 3 })
  faults.slow = server_faults.said("requests are done late", tricked { slow = 1.5 * TTL, count = 3 })
  store.faults = faults
  return store, tricked
end
