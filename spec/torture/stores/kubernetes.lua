--- Kubernetes: the small API server of the specs; and the real one over an etcd, where `make kubernetes-peer` has built it.
local Peer = require "support.kubernetes_peer"
local Server = require "support.kubernetes_server"
local server_faults = require "torture.server_faults"

local kubernetes = {}

local TTL = 3
local COST = 4 * TTL + 6

local function store_of(server, more)
  local store = { ttl = TTL, cost = COST, ports = { function() return server.port end }, server = server, servers = { server } }
  function store.url(number) return server:url("amnesia_wait=0" .. more, number) end
  local faults = server_faults.of { down = function() server:down() end, up = function() server:up() end,
    freeze = function() server:freeze() end, thaw = function() server:thaw() end }
  faults.delete = server_faults.said("somebody deletes the Lease", function() server:ask("DELETE", "/spec") end)
  faults.label = server_faults.said("somebody labels the Lease", function()
    pcall(server.edit, server, "spec", function(found) found.metadata.labels = { seen = tostring(math.random()) } end)
  end)
  faults.evict = server_faults.evict()
  store.faults = faults
  return store
end

function kubernetes.single()
  local server = Server.start()
  local store = store_of(server, "")
  store.faults.watches = server_faults.said("the store ends all watches and forgets what it told", function()
    server:trick { close = true, compact = true }
  end)
  store.faults.busy = server_faults.said("the store is busy", function()
    server:trick { status = 429, retry_after = 1, count = 5 }
  end)
  store.faults.users = server_faults.said("nobody may log in", function()
    server:trick { token = "another" }
    return function() server:trick { token = "all" } end
  end)
  return store
end

function kubernetes.real()
  assert(Peer.is_there, Peer.MISSING)
  local server = Peer.start()
  local store = store_of(server, "&ca=" .. server.authority .. "/ca.crt")
  store.faults.etcd = server_faults.said("the etcd behind the store crashes", function()
    server.etcd:down()
    return function() server.etcd:up() end
  end)
  store.faults.slow_etcd = server_faults.said("the etcd behind the store freezes", function()
    server.etcd:freeze()
    return function() server.etcd:thaw() end
  end)
  return store
end

return kubernetes
