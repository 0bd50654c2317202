--- Tells when this machine stood still: what a program did not do then is not its fault.
local Candidate = require "support.candidate"
local core = require "crown.core"
local eventually = require("crown.testing").eventually
local tempdir = require "support.tempdir"

local Stillness = {}
Stillness.__index = Stillness

--- Watches from now on.
-- @treturn Stillness
function Stillness.start()
  local self = setmetatable({ dir = tempdir() }, Stillness)
  self.process = Candidate.start { program = "/usr/bin/luajit", args = { "tools/stillness.lua", self.dir }, node = "stillness",
    log = self.dir .. "/log" }
  eventually(function() return io.open(self.dir .. "/stillness") end)
  return self
end

--- For how long it stood still between two instants of crown.now().
-- @number[opt] from since it has been watched
-- @number[opt] to now
-- @treturn number seconds
function Stillness:seconds(from, to)
  local sum = 0
  for lasted, ended in self.process:output():gmatch "stood still for ([%d.]+) s, until ([%d.]+)" do
    local first, last = math.max(ended - lasted, from or 0), math.min(ended, to or math.huge)
    sum = sum + math.max(0, last - first)
  end
  return sum
end

function Stillness:destroy() self.process:destroy() end

--- Does something, and sees to it that it takes less than so long, but for what the machine stood still meanwhile.
-- @number most seconds
-- @func fn
-- @treturn number seconds that it took
function Stillness.within(most, fn)
  local still, at = Stillness.start(), core.now()
  fn()
  local took = core.now() - at
  eventually(function() return took - still:seconds(at) < most or error(("it took %.1f s, %g are the most"):format(took, most)) end)
  still:destroy()
  return took
end

return Stillness
