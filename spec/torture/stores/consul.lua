--- Consul: the stand-in of the specs.
local Server = require "support.consul_server"
local server_faults = require "torture.server_faults"
local tricked_store = require "torture.stores.tricked"

local consul = {}

function consul.single()
  local server = Server.start()
  local store, tricked = tricked_store(server)
  local function for_a_while(what)
    return function()
      server:trick(what)
      return function() server:trick {} end
    end
  end
  local faults = store.faults
  faults.delete = server_faults.said("somebody deletes the election's key", function() server:key("DELETE", "spec") end)
  faults.empty = server_faults.said("somebody deletes all keys", function() server:wipe() end)
  faults.leaderless = server_faults.said("the servers have no leader", for_a_while { leader = false })
  faults.stale = server_faults.said("an agent answers from what was", for_a_while { stale = true })
  faults.index = server_faults.said("the indexes begin anew", for_a_while { index = 0 })
  faults.broken = server_faults.said("the store fails", tricked { status = 500, message = "rpc error: EOF", count = 5 })
  faults.busy = server_faults.said("the store is busy", tricked { status = 429, message = "rate limit reached", count = 8 })
  faults.users = server_faults.said("nobody may log in", function()
    server:trick { anonymous = {} }
    return function() server:trick { anonymous = Server.RIGHTS } end
  end)
  return store
end

--- The same in the format of `consul lock`: a session lasts no longer than its TTL, which is all that Consul promises.
function consul.lock()
  local store = consul.single()
  local server = store.server
  store.ttl, store.cost = 2, 20
  function store.url(number) return server:url("recipe=lock&amnesia_wait=0", number) end
  store.faults.delete = nil -- as docs/oracle-consul.md says
  store.faults.older_data = nil -- newcomers cannot tell
  store.faults.empty = server_faults.said("the servers lose all that they had", function(world)
    world.anew = true -- an epoch is an index, and these begin anew
    server:wipe()
  end)
  store.faults.leads_anew = server_faults.said("another server leads", function() server:trick { anew = true } end)
  return store
end

return consul
