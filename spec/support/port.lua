--- Free loopback ports.
local crown = require "crown"

local port = {}

-- Below those that the kernel hands out to connections, or one of them might take it before its server does. From a place of
-- this process's own on, so that processes side by side seldom look at the same one.
local FIRST, COUNT = 12000, 20000

local random = assert(io.open("/dev/urandom", "rb"))
local high, low = random:read(2):byte(1, 2)
random:close()
local at = (high * 256 + low) % COUNT

--- A port that was free a moment ago.
function port.free()
  for _ = 1, COUNT do
    at = (at + 1) % COUNT
    local listener = crown.tcp.listen("127.0.0.1", FIRST + at, function(connection) connection:close() end)
    if listener then
      listener:close()
      return FIRST + at
    end
  end
  error "no port is free"
end

return port
