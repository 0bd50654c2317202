--- One answer for many who ask: a run of a function serves all who asked before it began. One run at a time.
-- @internal crown.link.shared

local core = require "crown.core"
local promise = require "crown.core.promise"

local Shared = {}
Shared.__index = Shared

--- Makes one.
-- @tparam function fn what is run, in a task of its own; returns up to three values, the first nil when it fails
-- @param[opt] window seconds that a run waits for company (0), or a function that says them before each run
-- @treturn Shared
function Shared.new(fn, window)
  local says = type(window) == "function" and window or function() return window or 0 end
  return setmetatable({ fn = fn, window = says, waiting = {} }, Shared)
end

local function more(self)
  self.running = #self.waiting > 0
  return self.running
end

local function take(self)
  local asked = self.waiting
  self.waiting = {}
  return asked
end

local function run(self)
  while core.atomic(more, self) do
    core.sleep(self.window())
    local asked = core.atomic(take, self)
    local fine, first, second, third = pcall(self.fn)
    if not fine then first, second, third = nil, first, nil end
    for _, one in ipairs(asked) do one:resolve(first, second, third) end
  end
end

local function add(self, one)
  self.waiting[#self.waiting + 1] = one
  if self.running then return end
  self.running = true
  core.detach(run, self)
end

--- Asks.
-- @treturn promise of what a run returns that begins after that
function Shared:begin()
  local one = promise()
  core.atomic(add, self, one)
  return one
end

--- Asks, and waits for the answer.
-- @number[opt] timeout seconds
-- @return what the function returned; or nil, message, code
function Shared:ask(timeout)
  return self:begin():wait(timeout)
end

return Shared
