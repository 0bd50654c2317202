--- ZooKeeper: one server; an ensemble of three.
local server_faults = require "torture.server_faults"
local ZooKeeper = require "support.zookeeper"

local zookeeper = {}

local TTL = 3
local COST = 4 * TTL + 6

function zookeeper.single()
  local server = ZooKeeper.start()
  local store = { ttl = TTL, cost = COST, ports = { function() return server.port end }, server = server, servers = { server } }
  function store.url(number)
    return ("zookeeper://127.0.0.1:%d/torture?amnesia_wait=0"):format(number or server.port)
  end
  local faults = server_faults.of { down = function() server:down() end, up = function() server:up() end,
    freeze = function() server:freeze() end, thaw = function() server:thaw() end }
  faults.wipe = server_faults.wipe(server)
  faults.older_data = server_faults.older_data(server)
  faults.evict = server_faults.evict()
  store.faults = faults
  return store
end

function zookeeper.three()
  local servers = ZooKeeper.ensemble(3)
  local store = { ttl = TTL, cost = COST + 6, ports = server_faults.ports(servers), servers = servers,
    server = server_faults.all(servers) }
  function store.url(...) return ("zookeeper://%s/torture?amnesia_wait=0"):format(server_faults.hosts(servers, ...)) end
  store.faults = server_faults.of_one(function(random) return servers[random(#servers)] end)
  store.faults.outage, store.faults.minority = server_faults.outage(servers), server_faults.minority(servers)
  store.faults.evict = server_faults.evict()
  return store
end

return zookeeper
