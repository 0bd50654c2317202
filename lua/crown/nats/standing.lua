--- For how long the last value of somebody else's has stood, by this host's own clock. A server of NATS ends values by its wall
-- clock: where that is stepped forward a value is gone while its leader still acts, and where it is set back the value stays
-- when nobody acts on it any more.
-- @internal crown.nats.standing

local core = require "crown.core"
local lease = require "crown.oracle.lease"

local Standing = {}
Standing.__index = Standing

--- Makes one; nothing was seen yet.
-- @treturn Standing
function Standing.new()
  return setmetatable({}, Standing)
end

--- Notes a value that stands there: it was written before it was seen.
-- @number[opt] revision nil where it is not known
function Standing:saw(revision)
  if self.at and self.revision == revision then return end
  self.revision, self.at = revision, core.now()
end

--- Notes that its leader has given it up.
function Standing:ended()
  self.revision, self.at = nil, nil
end

--- Seconds until nobody acts on it any more; 0 where nothing was seen.
-- @number ttl in seconds
-- @treturn number
function Standing:left(ttl)
  return self.at and math.max(0, self.at + ttl - core.now()) or 0
end

--- Whether a value is the one that was seen, and nobody can act on it any more, also where clocks drift apart.
-- @number revision
-- @number ttl in seconds
-- @treturn boolean
function Standing:is_over(revision, ttl)
  return self.at ~= nil and self.revision == revision and core.now() - self.at > lease.standing_time(ttl)
end

return Standing
