--- For how long the last value of somebody else's has stood, by this host's own clock. A server of NATS ends values by its wall
-- clock: where that is stepped forward a value is gone while its leader still acts, and where it is set back the value stays
-- when nobody acts on it any more.
-- @internal crown.nats.standing

local core = require "crown.core"
local lease = require "crown.oracle.lease"

local Standing = {}
Standing.__index = Standing

local SOON, LATER = 0.01, 0.1 -- seconds until a value is asked for again that should be over by now

--- Makes one; nothing was seen yet.
-- @treturn Standing
function Standing.new()
  return setmetatable({}, Standing)
end

-- Whether a value is the one that was seen. Its revision does not tell: revisions come again in a bucket that was made anew, and
-- a replica that has come apart from the others numbers writes differently. All replicas keep the time at which it was written.
local function is_that(self, revision, written)
  return self.at and self.revision == revision and self.written == written
end

--- Notes a value that stands there: it was written before it was seen.
-- @number[opt] revision nil where it is not known
-- @string[opt] by who wrote it. Where another one's was seen before, and no end of that, its writer may act on it still: a server
-- whose clock was stepped lets a third one win that knows nothing of it
-- @number[opt] written when, in seconds by the server's clock
function Standing:saw(revision, by, written)
  if is_that(self, revision, written) then return end
  if self.at and self.by ~= by then self.before = self.at end
  self.revision, self.by, self.written, self.at = revision, by, written, core.now()
end

--- Notes that its leader has given it up. Who was there before has not.
function Standing:ended()
  self.revision, self.by, self.written, self.at = nil, nil, nil, nil
end

--- Seconds until nobody acts on it any more, nor on the one before; 0 where nothing was seen.
-- @number ttl in seconds
-- @treturn number
function Standing:left(ttl)
  local since = self.at or self.before
  return since and math.max(0, since + ttl - core.now()) or 0
end

--- Seconds until it is worth while to ask whether it is gone: when nobody acts on it any more; where that was before, the sooner
-- the less time has passed since. A busy server is some milliseconds late, one whose clock was set back is for long.
-- @number ttl in seconds
-- @treturn number
function Standing:again(ttl)
  local since = self.at or self.before
  local late = since and core.now() - since - ttl or 0
  return late < 0 and -late or math.min(LATER, math.max(SOON, late))
end

--- Whether a value is the one that was seen, and nobody can act on it any more, also where clocks drift apart.
-- @number revision
-- @number written as above
-- @number ttl in seconds
-- @treturn boolean
function Standing:is_over(revision, written, ttl)
  if not is_that(self, revision, written) then return false end
  return core.now() - self.at > lease.standing_time(ttl)
end

return Standing
