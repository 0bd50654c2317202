--- The example's HTTP lease server, started on a free port.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local tempdir = require "support.tempdir"

--- Starts it.
-- @treturn table `{ process =, port =, url = }` with `destroy()`
return function()
  local self = { process = Candidate.start { args = { "lua/examples/http_lease/lease_server.lua" }, node = "server",
    log = tempdir() .. "/log" } }
  self.port = eventually(function() return tonumber(self.process:output():match "port (%d+)") end, 10)
  self.url = ("http://127.0.0.1:%d/locks"):format(self.port)
  function self.destroy() self.process:destroy() end
  return self
end
