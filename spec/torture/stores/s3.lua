--- S3: the stand-in of the specs.
local Server = require "support.s3_server"
local server_faults = require "torture.server_faults"
local tricked_store = require "torture.stores.tricked"

local s3 = {}

function s3.single()
  local server = Server.start()
  local store, tricked = tricked_store(server)
  local faults = store.faults
  faults.delete = server_faults.said("somebody deletes the election's object", function() server:object("DELETE", "spec.json") end)
  faults.empty = server_faults.said("somebody empties the bucket", function() server:wipe() end)
  faults.conflict = server_faults.said("writes are in conflict", tricked { status = 409, code = "ConditionalRequestConflict",
    method = "PUT", count = 5 })
  faults.busy = server_faults.said("the store is busy", tricked { status = 503, code = "SlowDown", count = 8 })
  faults.broken = server_faults.said("the store fails", tricked { status = 500, code = "InternalError", count = 5 })
  faults.users = server_faults.said("nobody may log in", function()
    server:trick { logins = { AKIAALL = { secret = "another" } } }
    return function() server:trick { logins = { AKIAALL = { secret = "all/+secret" } } } end
  end)
  faults.older_data.weight = 0 -- the last claim may be lost before another candidate has seen it, which nothing tells
  return store
end

return s3
