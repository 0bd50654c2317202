--- For how long the last value of somebody else's has stood, by this host's own clock. A server of NATS ends values by its wall
-- clock: where that is stepped forward a value is gone while its leader still acts, and where it is set back the value stays
-- when nobody acts on it any more.
-- @internal crown.nats.standing

local core = require "crown.core"
local lease = require "crown.oracle.lease"

local Standing = {}
Standing.__index = Standing

--- Makes one; nothing was seen yet.
-- @tparam Trust trust of crown.oracle.trust: in a bucket that was made anew, or has gone back, revisions come again
-- @treturn Standing
function Standing.new(trust)
  return setmetatable({ trust = trust }, Standing)
end

--- Notes a value that stands there: it was written before it was seen.
-- @number[opt] revision nil where it is not known
-- @string[opt] by who wrote it. Where another one's was seen before, and no end of that, its writer may act on it still: a server
-- whose clock was stepped lets a third one win that knows nothing of it
function Standing:saw(revision, by)
  local memory = self.trust.memory
  if self.at and self.revision == revision and self.memory == memory then return end
  if self.at and self.by ~= by then self.before = self.at end
  self.revision, self.by, self.at, self.memory = revision, by, core.now(), memory
end

--- Notes that its leader has given it up. Who was there before has not.
function Standing:ended()
  self.revision, self.by, self.at = nil, nil, nil
end

--- Seconds until nobody acts on it any more, nor on the one before; 0 where nothing was seen.
-- @number ttl in seconds
-- @treturn number
function Standing:left(ttl)
  local since = self.at or self.before
  return since and math.max(0, since + ttl - core.now()) or 0
end

--- Whether a value is the one that was seen, and nobody can act on it any more, also where clocks drift apart.
-- @number revision
-- @number ttl in seconds
-- @treturn boolean
function Standing:is_over(revision, ttl)
  if not self.at or self.revision ~= revision or self.memory ~= self.trust.memory then return false end
  return core.now() - self.at > lease.standing_time(ttl)
end

return Standing
