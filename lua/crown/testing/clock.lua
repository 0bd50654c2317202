--- A clock that moves only when told to: sleeps, timeouts and deadlines of this runtime follow it at once.
-- @module crown.testing.clock

local core = require "crown.core"
local testing = require "crown.core.testing"

local Clock = {}
Clock.__index = Clock

--- The time it shows, in seconds.
function Clock.now()
  return core.now()
end

--- Moves it on. What falls due in between has happened when this returns.
-- @number seconds
function Clock:advance(seconds) -- luacheck: no unused args
  testing.clock_advance(seconds)
end

--- Lets real time run again. Call it in `after_each`.
function Clock.restore()
  testing.clock_virtual(false)
end

--- Freezes the runtime's clock.
-- @treturn table `{ now(), :advance(seconds), :restore() }`
local function fake_clock()
  testing.clock_virtual(true)
  return setmetatable({}, Clock)
end

return fake_clock
