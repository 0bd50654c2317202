--- Waits for a condition.
-- @module crown.testing.eventually

local core = require "crown.core"

local PAUSE = 0.005

-- Times the given seconds, for machines that have more to do.
local PATIENCE = tonumber(os.getenv "CROWN_TEST_PATIENCE") or 1

--- Calls a function until it returns something true, without error; raises its last word when time is up.
-- The environment variable `CROWN_TEST_PATIENCE` multiplies every wait: set it to 4 or so on a busy machine.
-- @tparam function condition may raise, as asserts do, while it does not hold
-- @number[opt=5] seconds how long to wait at most
-- @return what the condition returned
local function eventually(condition, seconds)
  seconds = (seconds or 5) * PATIENCE
  local until_then = core.now() + seconds
  while true do
    local fine, result = pcall(condition)
    if fine and result then return result end
    if core.now() >= until_then then
      error(fine and ("still not true after %g s"):format(seconds) or result, 2)
    end
    core.sleep(PAUSE)
  end
end

return eventually
