--- A server that plays tricks, told by lines: each connection is served by the same script, or by the last of several.
--
--    say TEXT        writes it; \r, \n and \0 are read as in Lua
--    drip TEXT       the same, a byte each 50 ms
--    hear TEXT       reads lines until one holds it
--    flood TEXT      writes it over and over, until nobody takes it any more
--    wait SECONDS
--    member          is a member of the registry `r`, and knows its secret: "secret"
--    reset           closes with what was sent unread: the other side gets an RST
--    close           closes
--
-- A connection whose script has ended stays open, silent.
local crown = require "crown"
local handshake = require "crown.registry.handshake"

local Hostile = {}
Hostile.__index = Hostile

local ESCAPES = { r = "\r", n = "\n", ["0"] = "\0" }
local FLOOD_MOST = 64 * 1024 * 1024

--- What lets a client of Postgres in, and then what tells it that it listens.
Hostile.LETS_IN = "say R\\0\\0\\0\8\\0\\0\\0\\0Z\\0\\0\\0\5I\n"
Hostile.LISTENS = "say 1\\0\\0\\0\0042\\0\\0\\0\4n\\0\\0\\0\4C\\0\\0\\0\11LISTEN\\0Z\\0\\0\\0\5I\n"

--- etcd's first words on a watch that is there.
Hostile.CREATED = [[{"result":{"header":{"revision":"7"},"created":true,"watch_id":"1"}}]]

local verbs = {}

local function unescape(text)
  return (text:gsub("\\([rn0])", ESCAPES))
end

function verbs.say(connection, text) return connection:write(unescape(text)) end

function verbs.drip(connection, text)
  for byte in unescape(text):gmatch "." do
    if not connection:write(byte) then return end
    crown.sleep(0.05)
  end
  return true
end

function verbs.hear(connection, text)
  for line in function() return connection:read("*l", 30) end do
    if line:find(text, 1, true) then return true end
  end
end

function verbs.flood(connection, text)
  local piece = unescape(text):rep(math.floor(65536 / #text))
  for _ = 1, FLOOD_MOST / #piece do
    if not connection:write(piece) then return end
  end
end

function verbs.wait(_, seconds)
  crown.sleep(tonumber(seconds))
  return true
end

function verbs.member(connection)
  return handshake.accept(connection, { registry = "r", id = "r@b", secret = "secret" }, 5, function() end)
end

-- Unread bytes make the kernel send an RST instead of a FIN.
function verbs.reset(connection)
  crown.sleep(0.01)
  connection:close()
end

function verbs.close(connection) connection:close() end

--- Plays a script on a connection, which stays open, silent, until it is closed.
-- @param connection of crown.core.tcp
-- @string script
function Hostile.play(connection, script)
  for line in script:gmatch "[^\n]+" do
    local verb, text = line:match "^%s*(%a+) ?(.*)$"
    if verb and not verbs[verb](connection, text) then return end
  end
  while connection:read("*s", 600) do end
end

local function serve(self, connection)
  self.count = self.count + 1
  self.open[connection] = true
  Hostile.play(connection, self.scripts[math.min(self.count, #self.scripts)])
  connection:close()
  self.open[connection] = nil
end

--- A script of etcd: a watch on which it says one line.
-- @string line
-- @treturn string
function Hostile.watch(line)
  return ("hear watch\nsay HTTP/1.1 200 X\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n%x\\r\\n%s\\n\\r\\n\n"):format(#line + 1, line)
end

--- Starts one at an address, and at a port of it.
-- @string address
-- @number port 0: any
-- @string ... scripts: of the first connection, the second, …; the last is that of all others
-- @treturn Hostile with `port` and `count`, of the connections so far
function Hostile.open(address, port, ...)
  local self = setmetatable({ scripts = { ... }, count = 0, open = {} }, Hostile)
  self.listener = assert(crown.tcp.listen(address, port, function(connection) serve(self, connection) end))
  self.port = self.listener:port()
  return self
end

--- Starts one at any port of an address.
function Hostile.at(address, ...) return Hostile.open(address, 0, ...) end

--- Starts one on this host.
-- @string ... scripts
-- @treturn Hostile
function Hostile.start(...) return Hostile.at("127.0.0.1", ...) end

--- Plays a script as the side that dials.
-- @number port
-- @string script
function Hostile.dial(port, script)
  local connection = assert(crown.tcp.connect("127.0.0.1", port, { timeout = 5 }))
  connection:set_timeout(5)
  Hostile.play(connection, script)
  connection:close()
end

function Hostile:destroy()
  self.listener:close()
  for connection in pairs(self.open) do connection:close() end
  self.open = {}
end

return Hostile
