--- A name server for one program, which knows where the stores are, and can be told to misbehave. The program has a resolv.conf of
-- its own in a mount namespace, which needs root.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local is_root = require "support.is_root"
local port = require "support.port"
local program = require "support.program"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local NameServer = {}
NameServer.__index = NameServer

local NAME = "store.test"
local ENTER = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'

--- Starts one.
-- @string[opt] address of the stores: 127.0.0.1
-- @treturn NameServer or nil: this user may not
function NameServer.start(address)
  if not is_root then return nil end
  local self = setmetatable({ dir = tempdir() }, NameServer)
  local number = port.free() -- an address of its own: name servers are asked at port 53
  local here = ("127.53.%d.%d"):format(math.floor(number / 256), number % 256)
  self:be "answers"
  self.resolv = write_file(self.dir .. "/resolv.conf", ("nameserver %s\noptions timeout:1\n"):format(here))
  self.process = Candidate.start { program = "/usr/bin/luajit", node = "names", log = self.dir .. "/log",
    args = { "spec/support/name_server.lua", here .. ":53", self.dir .. "/manner", address or "127.0.0.1" } }
  eventually(function() return self.process:output():find "ready" end, 10)
  return self
end

--- Tells it how to behave: see support/name_server.lua.
-- @string manner
function NameServer:be(manner)
  write_file(self.dir .. "/manner.new", manner .. "\n")
  assert(os.rename(self.dir .. "/manner.new", self.dir .. "/manner"))
end

--- The URL of a store on this host, by name.
-- @string url
-- @treturn string
function NameServer.named(url)
  return (url:gsub("127%.0%.0%.1", NAME, 1))
end

--- What starts the program so that it asks here.
-- @treturn table words before the program's arguments
function NameServer:words()
  return { "/usr/bin/unshare", "--mount", "/bin/sh", "-c", ENTER, self.resolv, program }
end

function NameServer:destroy()
  self.process:destroy()
end

return NameServer
