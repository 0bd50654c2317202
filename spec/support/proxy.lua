--- A TCP proxy between a candidate and its server, which can be frozen: nothing passes and nothing is reset.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local port = require "support.port"
local read_file = require "crown.text.read_file"
local signals = require "support.signals"
local tempdir = require "support.tempdir"

local Proxy = {}
Proxy.__index = Proxy

--- Starts a proxy to a loopback port.
-- @number target that port
-- @number[opt] at the proxy's own, where it takes another one's place
function Proxy.start(target, at)
  local self = setmetatable({ port = at or port.free() }, Proxy)
  self.process = Candidate.start { program = "/usr/bin/socat", node = "proxy", log = tempdir() .. "/log",
    args = { ("TCP-LISTEN:%d,bind=127.0.0.1,reuseaddr,fork"):format(self.port), ("TCP:127.0.0.1:%d"):format(target) } }
  eventually(function()
    local connection = crown.tcp.connect("127.0.0.1", self.port)
    if connection then connection:close() end
    return connection
  end, 5)
  return self
end

-- The proxy and the processes that it has forked for its connections are one process group.
function Proxy:signal(name)
  signals.send(-self.process.pid, name)
end

function Proxy:freeze()
  local at = crown.now()
  self:signal "STOP"
  return at
end

--- Lets nothing pass on the connections that there are; new ones work.
function Proxy:freeze_connections()
  local pid = self.process.pid
  for child in read_file(("/proc/%d/task/%d/children"):format(pid, pid)):gmatch "%d+" do
    signals.send(tonumber(child), "STOP")
  end
  return crown.now()
end

function Proxy:thaw()
  self:signal "CONT"
end

function Proxy:destroy()
  self:signal "KILL"
  self.process:wait(20)
end

return Proxy
