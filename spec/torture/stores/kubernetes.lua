--- Kubernetes: the small API server of the specs.
local Server = require "support.kubernetes_server"
local server_faults = require "torture.server_faults"

local kubernetes = {}

local TTL = 3

function kubernetes.single()
  local server = Server.start()
  local store = { ttl = TTL, cost = 4 * TTL + 6, ports = { function() return server.port end }, server = server,
    servers = { server } }
  function store.url(number) return server:url("amnesia_wait=0", number) end
  local faults = server_faults.of { down = function() server:down() end, up = function() server:up() end,
    freeze = function() server:freeze() end, thaw = function() server:thaw() end }
  faults.delete = server_faults.said("somebody deletes the Lease", function() server:ask("DELETE", "/spec") end)
  faults.label = server_faults.said("somebody labels the Lease", function()
    pcall(server.edit, server, "spec", function(found) found.metadata.labels = { seen = tostring(math.random()) } end)
  end)
  faults.watches = server_faults.said("the store ends all watches and forgets what it told", function()
    server:trick { close = true, compact = true }
  end)
  faults.busy = server_faults.said("the store is busy", function()
    server:trick { status = 429, retry_after = 1, count = 5 }
  end)
  faults.users = server_faults.said("nobody may log in", function()
    server:trick { token = "another" }
    return function() server:trick { token = "all" } end
  end)
  faults.evict = server_faults.evict(store)
  store.faults = faults
  return store
end

return kubernetes
