--- A way to a NATS server that a test stands in: what is asked may be held up, and what comes back changed.
local crown = require "crown"

local Way = {}

--- Opens one. Its functions may be replaced at any time: `meets()` is called before the server is connected to, `asked(bytes)` with
-- all that is asked, and both may wait; what `answered(bytes)` returns is what comes back.
-- @number port of the server
-- @treturn table has `port` and `close()` besides
function Way.open(port)
  local self = { meets = function() end, asked = function() end, answered = function(bytes) return bytes end }
  local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(near)
    self.meets()
    local far = assert(crown.tcp.connect("127.0.0.1", port))
    crown.spawn(function()
      for bytes in function() return far:read("*s", 60) end do near:write(self.answered(bytes)) end
      near:close()
    end)
    for bytes in function() return near:read("*s", 60) end do
      self.asked(bytes)
      far:write(bytes)
    end
    far:close()
  end))
  self.port = listener:port()
  function self.close() listener:close() end
  return self
end

return Way
