--- Candidates for elections on real Redis servers, and what lies between them.
local crown = require "crown"
local Player = require "support.oracle_candidate"
local redis = require "crown.oracles.redis"

local redis_lease = {}

local serial = 0

--- The name of the election that candidates stand for; each spec begins with a new one.
function redis_lease.name()
  return "lease-" .. serial
end

function redis_lease.name_anew()
  serial = serial + 1
end

--- The key of the election's record, or of what an older version of crown-lua keeps of it.
-- @string[opt] what "lease" or "epoch"
function redis_lease.key(what)
  return ("crown:{%s}:%s"):format(redis_lease.name(), what or "record")
end

--- The channel on which changes are told.
redis_lease.CHANNEL = "crown:crown:changes"

--- A field of the election's record as a server has it.
function redis_lease.field(server, field)
  local text = server:call("HGET", redis_lease.key(), "record")
  return text and crown.json.decode(text)[field] or nil
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

--- A candidate for the election. On a server that is new it need not wait.
-- @string url of the server, where no `urls` are among the options
-- @string node
-- @tparam[opt] table options the oracle's
-- @treturn Player
function redis_lease.candidate(url, node, options)
  local given = { name = redis_lease.name(), node = node, url = url, ttl = 30, amnesia_wait = 0, trust_empty = true }
  for key, value in pairs(options or {}) do given[key] = value end
  if given.urls then given.url = nil end
  return Player.new(redis, given)
end

return redis_lease
