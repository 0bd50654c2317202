--- Candidates for leases on real Redis servers, and what lies between them.
local crown = require "crown"
local Player = require "support.oracle_candidate"
local redis = require "crown.oracles.redis"

local redis_lease = {}

local serial = 0

--- The name of the lease that candidates stand for; each spec begins with a new one.
function redis_lease.name()
  return "lease-" .. serial
end

function redis_lease.name_anew()
  serial = serial + 1
end

--- The key of the lease, or of its epoch.
-- @string what "lease" or "epoch"
function redis_lease.key(what)
  return ("crown:{%s}:%s"):format(redis_lease.name(), what)
end

--- The channel on which leases are told of.
redis_lease.CHANNEL = "crown:crown:leases"

--- A field of the lease as a server has it.
function redis_lease.field(server, field)
  return server:call("HGET", redis_lease.key "lease", field)
end

--- Makes a server one that has been up for a while: what it does not know, it has never known.
-- @tparam[opt] string longest milliseconds, the longest TTL that it knows of
-- @return the server
function redis_lease.trusted(server, longest)
  server:call("HSET", "crown:store", "identity", server:call("INFO", "replication"):match "master_replid:(%x+)", "since", "0",
    "longest", longest or "0")
  return server
end

--- A way to a server on which answers can be held back, and what is asked can be lost.
-- @treturn table `url`, `listener`; set `hold` and `lose`; `held`: functions that deliver
function redis_lease.valve(server)
  local self = { held = {}, lost = 0, hold = false, lose = false }
  self.listener = assert(crown.tcp.listen("127.0.0.1", 0, function(near)
    local far = assert(crown.tcp.connect("127.0.0.1", server.port))
    crown.spawn(function()
      for bytes in function() return far:read("*s", 60) end do
        if self.hold then
          self.held[#self.held + 1] = function() near:write(bytes) end
        else
          near:write(bytes)
        end
      end
      near:close()
    end)
    for bytes in function() return near:read("*s", 60) end do
      if self.lose then self.lost = self.lost + 1 else far:write(bytes) end
    end
    far:close()
  end))
  self.url = "redis://127.0.0.1:" .. self.listener:port()
  return self
end

--- A candidate for the lease.
-- @string url of the server, where no `urls` are among the options
-- @string node
-- @tparam[opt] table options the oracle's
-- @treturn Player
function redis_lease.candidate(url, node, options)
  local given = { name = redis_lease.name(), node = node, url = url, ttl = 30, amnesia_wait = 0 }
  for key, value in pairs(options or {}) do given[key] = value end
  if given.urls then given.url = nil end
  return Player.new(redis, given)
end

return redis_lease
