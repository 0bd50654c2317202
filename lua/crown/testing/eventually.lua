--- Waits for a condition.
-- @module crown.testing.eventually

local core = require "crown.core"
local figure = require "crown.check.figure"
local testing = require "crown.core.testing"

local PAUSE = 0.005

-- Times the given seconds, for machines that have more to do.
local PATIENCE = tonumber(os.getenv "CROWN_TEST_PATIENCE") or 1

-- Under fake_clock a sleep would last for ever: then other tasks get their turns, and no time passes for them.
local function pause()
  core.sleep(testing.clock_frozen() and 0 or PAUSE)
end

--- Calls a function until it returns something true, without error; raises its last word when time is up. Counts real time,
-- also under fake_clock. The environment variable `CROWN_TEST_PATIENCE` multiplies every wait: set it to 4 or so on a busy
-- machine.
-- @tparam function condition may raise, as asserts do, while it does not hold
-- @number[opt=5] seconds how long to wait at most
-- @return what the condition returned
local function eventually(condition, seconds)
  seconds = (seconds or 5) * PATIENCE
  local until_then = testing.real_now() + seconds
  while true do
    local fine, result = pcall(condition)
    if fine and result then return result end
    if testing.real_now() >= until_then then
      error(fine and ("still not true after %s s"):format(figure.exact(seconds)) or result, 2)
    end
    pause()
  end
end

return eventually
