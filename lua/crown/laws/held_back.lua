--- A TCP proxy in this process before a server. It can hold the server's answers back, and let them come late, or close the
-- connection in the place of the next one.
-- @internal crown.laws.held_back

local core = require "crown.core"
local tcp = require "crown.core.tcp"

local HeldBack = {}
HeldBack.__index = HeldBack

local PAUSE = 0.005 -- seconds between two looks whether answers may pass
local LONG = 86400

local function pass(self, from, to, is_answer)
  while true do
    local some = from:read("*s", LONG)
    if not some then break end
    if is_answer and self.cuts then
      self.cuts = false
      break
    end
    while is_answer and self.holds do core.sleep(PAUSE) end
    if not to:write(some) then break end
  end
  from:close()
  to:close()
end

local function serve(self, client)
  local server = tcp.connect(self.host, self.target)
  if not server then return client:close() end
  core.spawn(pass, self, client, server, false)
  pass(self, server, client, true)
end

--- Starts one on a loopback port.
-- @string host of the server
-- @number port of the server
-- @treturn HeldBack its `port`; or nil and a message
function HeldBack.start(host, port)
  local self = setmetatable({ host = host, target = port, holds = false, cuts = false }, HeldBack)
  local problem
  self.listener, problem = tcp.listen("127.0.0.1", 0, function(client) serve(self, client) end, { background = true })
  if not self.listener then return nil, problem end
  self.port = self.listener:port()
  return self
end

--- Holds answers back from now on.
function HeldBack:hold() self.holds = true end

--- Lets those pass that were held back, and all others.
function HeldBack:release() self.holds, self.cuts = false, false end

--- Has the connection end in the place of the next answer.
function HeldBack:cut() self.cuts = true end

--- Ends it.
function HeldBack:close()
  self:release()
  self.listener:close()
end

return HeldBack
