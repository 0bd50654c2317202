--- A server of the specs' own that is a program in Lua: started, ended and frozen from the outside. What makes one has `port`, `dir`, and
-- `words`: the program's file and its arguments.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually

local Program = {}
Program.__index = Program

--- Starts the process, with the data of before.
function Program:up()
  self.process = Candidate.start { args = self.words, node = "server", log = self.dir .. "/log",
    env = { LUA_PATH = "./spec/?.lua;./spec/?/init.lua;;" } }
  eventually(function() return self:is_open() end, 10)
end

--- Whether anybody listens at its port.
-- @treturn boolean
function Program:is_open()
  local connection = crown.tcp.connect("127.0.0.1", self.port)
  if connection then connection:close() end
  return connection ~= nil
end

--- Ends the process, as in a crash. Its runtime may need a moment more than the supervisor that is waited for.
function Program:down()
  self.process:hurt("KILL", "supervise", "runtime")
  self.process:wait(20)
  eventually(function() return not self:is_open() end, 10)
end

--- Throws the data away, which are in `data`, a file.
function Program:wipe()
  self:down()
  os.remove(self.data)
  self:up()
end

function Program:freeze() self.process:hurt("STOP", "runtime", "supervise") end
function Program:thaw() self.process:hurt("CONT", "runtime", "supervise") end

function Program:destroy()
  if self.process.code then return end
  self:thaw()
  self:down()
end

return Program
