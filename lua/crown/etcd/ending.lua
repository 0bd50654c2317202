--- When a lease in etcd may be over, guessed from what etcd says is left of it, and when to ask next. Pure.
--
-- etcd tells whole seconds. So what it tells changes last a second before a lease is over: questions near that narrow down when
-- it is. A lease may be kept between any two of them, and is over later then.
-- @internal crown.etcd.ending

local keys = require "crown.etcd.keys"

local Ending = {}
Ending.__index = Ending

local NEAR = 2.5 -- seconds before it may be over in which it is asked when that is; before that nothing is asked
local COARSE = 0.25 -- seconds from one question to the next before it may be over, at most,
local FINE = 0.016 -- and at least where its holder seems to be dead; between these
local PARTS = 8 -- so many in what is left between the earliest and the latest
local ALIVE = 0.3 -- of its time, within which a holder that lives mostly keeps it again
local STEPS = 250 -- questions at most between the earliest and the latest, where these are known by two answers,
local STEP_LEAST, STEP = 0.0005, 0.003 -- seconds from one to the next at least, and where they are not

--- Makes one; nothing is known yet.
-- @treturn Ending `low`, `high`: when it is over at the earliest, and at the latest
function Ending.new()
  return setmetatable({ low = 0 }, Ending)
end

--- Takes note of an answer. A lease is never over sooner than was known; and where less is left than the last time, nobody has
-- kept it between.
-- @number asked when it was asked
-- @number now
-- @number left seconds, as etcd tells them
-- @number granted seconds for which it is kept each time
function Ending:told(asked, now, left, granted)
  left = math.min(left, granted)
  local high, was = now + left + 1 - keys.SPARE, self.left
  self.low = math.max(self.low, asked + left - keys.SPARE)
  if left == was and self.low <= self.high then
    self.high = math.min(self.high, high)
  else
    self.high = high
    self.step = left < (was or left) and math.max(STEP_LEAST, (high - self.low) / STEPS) or STEP
  end
  self.asked, self.left = asked, left
  self.part = granted - left - 1 > (granted - keys.SPARE) * ALIVE and FINE or COARSE
end

--- When to ask next.
-- @treturn number the time
function Ending:next()
  local asked, low, width = self.asked, self.low, self.high - self.low
  if asked < low - NEAR then return low - NEAR end
  if self.left <= keys.SPARE then return math.max(low, asked + self.step) end -- nothing changes any more before it is over
  local part = math.min(width, COARSE, math.max(self.part, width / PARTS))
  return asked + math.min(COARSE, (low + part - asked) % 1)
end

return Ending
