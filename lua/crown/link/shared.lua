--- One answer for many who ask: a run of a function serves all who asked before it began. One run at a time.
-- @module crown.link.shared

local core = require "crown.core"
local promise = require "crown.core.promise"

local Shared = {}
Shared.__index = Shared

--- Makes one.
-- @tparam function fn what is run, in a task of its own; returns up to three values, the first nil when it fails
-- @number[opt] window seconds that a run waits for company (0)
-- @treturn Shared
function Shared.new(fn, window)
  return setmetatable({ fn = fn, window = window or 0, waiting = {} }, Shared)
end

local function run(self)
  while #self.waiting > 0 do
    core.sleep(self.window)
    local asked = self.waiting
    self.waiting = {}
    local fine, first, second, third = pcall(self.fn)
    if not fine then first, second, third = nil, first, nil end
    for _, one in ipairs(asked) do one:resolve(first, second, third) end
  end
  self.running = false
end

--- Asks, and waits for a run that begins after that.
-- @number[opt] timeout seconds
-- @return what the function returned; or nil, message, code
function Shared:ask(timeout)
  local one = promise()
  self.waiting[#self.waiting + 1] = one
  if not self.running then
    self.running = true
    core.detach(run, self)
  end
  return one:wait(timeout)
end

return Shared
