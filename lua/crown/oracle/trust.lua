--- The rule for a store that may have forgotten what it promised, for oracles whose store cannot keep the rule itself: one
-- instance for each store and runtime, whatever connections and elections come and go.
--
-- An oracle reports what it learns of the memory that answered it. Another memory, or one that has gone back, is doubted
-- since then: nobody is to be granted anything before the longest lease that anybody may still act on has run out, counted
-- from there. A longer TTL that is heard of later prolongs that; nothing shortens it. Postgres and Redis keep the same rule
-- in the statements that grant.
-- @internal crown.oracle.trust

local candidate = require "crown.oracle.candidate"
local core = require "crown.core"

local Trust = {}
Trust.__index = Trust

local known = {}

--- What this runtime knows of a store.
-- @string store what names it: its URL, with what else makes it another store
-- @treturn Trust the same for the same store
function Trust.of(store)
  known[store] = known[store] or setmetatable({ longest = 0 }, Trust)
  return known[store]
end

--- Notes how long a lease there may last.
-- @number ttl in seconds
function Trust:lasts(ttl)
  self.longest = math.max(self.longest, ttl)
end

--- Doubts the store.
-- @number[opt] ago seconds since when (0)
function Trust:doubt(ago)
  self.since = math.max(self.since or -math.huge, core.now() - math.max(0, ago or 0))
end

--- Notes that what is lost may be longer leases than any that is known.
-- @number seconds for which nobody is to be granted anything
function Trust:lost(seconds)
  self.until_then = math.max(self.until_then or -math.huge, core.now() + seconds)
end

--- Notes how far the store had come before it is asked again: less in the next answer is a store that went back.
-- @number at
function Trust:reached(at)
  self.at = math.max(self.at or at, at)
end

--- Notes what answered. It is to be told with each answer that can grant, before the grant counts.
-- @tparam table answer `identity`: what names the memory; `at`: how far it had come, a number that never falls; `age`: how
-- many seconds old it is; `known`: how far it was known to have come when it was asked (`trust.at` then), where answers may
-- overtake each other. What is nil is not known.
-- @treturn boolean whether the store is believed
-- @treturn boolean whether it is another memory than before, or has gone back
function Trust:saw(answer)
  local other = answer.identity and self.identity and answer.identity ~= self.identity
  local least = answer.known or self.at
  local back = answer.at and least and answer.at < least
  if other or back then self:doubt() end
  if answer.age then self:doubt(answer.age) end
  self.identity = answer.identity or self.identity
  if answer.at then self.at = (other or back) and answer.at or math.max(self.at or answer.at, answer.at) end
  return self:left() == 0, other or back or false
end

--- Seconds until the store is believed; 0 when it is.
function Trust:left()
  return math.max(0, (self.since or -math.huge) + self.longest - core.now(), (self.until_then or -math.huge) - core.now())
end

--- What a claim has to answer while the store is doubted.
-- @tparam Doubt doubt of crown.oracle.doubt, which says so
-- @return nil when it is believed; else false and the denial
function Trust:denial(doubt)
  local left = self:left()
  if left == 0 then return nil end
  local was_empty = (self.until_then or -math.huge) > core.now()
  return doubt:denial(left, was_empty, { expires_in = left + candidate.apart() })
end

return Trust
