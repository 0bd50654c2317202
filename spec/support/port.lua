--- Free loopback ports.
local crown = require "crown"

local port = {}

--- A port that was free a moment ago.
function port.free()
  local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection) connection:close() end))
  local number = listener:port()
  listener:close()
  return number
end

return port
