--- S3: the stand-in of the specs.
local Server = require "support.s3_server"
local server_faults = require "torture.server_faults"

local s3 = {}

local TTL = 2

function s3.single()
  local server = Server.start()
  local store = { ttl = TTL, cost = 6 * TTL + 4, ports = { function() return server.port end }, server = server,
    servers = { server } }
  function store.url(number) return server:url("amnesia_wait=0", number) end
  local faults = server_faults.of { down = function() server:down() end, up = function() server:up() end,
    freeze = function() server:freeze() end, thaw = function() server:thaw() end }
  local function tricked(what) return function() server:trick(what) end end
  faults.older_data = server_faults.older_data(server)
  faults.evict = server_faults.evict(store)
  faults.delete = server_faults.said("somebody deletes the election's object", function() server:object("DELETE", "spec.json") end)
  faults.empty = server_faults.said("somebody empties the bucket", function() server:wipe() end)
  faults.conflict = server_faults.said("writes are in conflict", tricked { status = 409, code = "ConditionalRequestConflict",
    method = "PUT", count = 5 })
  faults.busy = server_faults.said("the store is busy", tricked { status = 503, code = "SlowDown", count = 8 })
  faults.broken = server_faults.said("the store fails", tricked { status = 500, code = "InternalError", count = 5 })
  faults.unsaid = server_faults.said("writes are done, and nobody hears of it", tricked { unsaid = true, method = "PUT", count = 5 })
  faults.late = server_faults.said("writes are answered late", tricked { late = 2 * TTL, method = "PUT", count = 3 })
  faults.slow = server_faults.said("requests are done late", tricked { slow = 1.5 * TTL, count = 3 })
  faults.users = server_faults.said("nobody may log in", function()
    server:trick { logins = { AKIAALL = { secret = "another" } } }
    return function() server:trick { logins = { AKIAALL = { secret = "all/+secret" } } } end
  end)
  store.faults = faults
  return store
end

return s3
