--- Which leases are about to end, for those that follow many: one look at the table tells of all of them what each would ask
-- for alone, at the end of a lease that was refreshed long before.
--
-- A follower whose lease has a long way to go is asleep: its `asleep` is set. When that comes near its end, it is sent
-- "missed", asks, and hears when exactly that is.
-- @internal crown.postgres.ends

local core = require "crown.core"

local Ends = {}
Ends.__index = Ends

local MANY = 256    -- followers: fewer ask for themselves
local NEAR = 1 / 2  -- of the TTL: a leader that is well has refreshed before that
local PERIOD = 1 / 10 -- of the TTL, from one look to the next
local LATEST = 4    -- TTLs: so long a follower sleeps at most, should the row be gone

-- What ended since the last look that was answered, or comes near its end before the next ones.
local LOOK = [[
SELECT lock_name AS name FROM crown_lease_v1 WHERE expires_at < clock_timestamp() + make_interval(secs => $1::float8)
  AND expires_at > clock_timestamp() - make_interval(secs => $2::float8)]]

--- Makes one, for leases with the same TTL.
-- @tparam table leases of crown.postgres.leases
-- @number ttl in seconds
-- @treturn Ends
function Ends.new(leases, ttl)
  return setmetatable({ leases = leases, ttl = ttl, followers = 0, slept = 0 }, Ends)
end

local function look(self)
  local sent = core.now()
  local rows = self.leases.client:query(LOOK, self.ttl * NEAR, sent - self.looked + self.ttl)
  if not rows then return end -- the next look covers this one's time
  self.looked = sent
  for _, row in ipairs(rows) do
    for lease in self.leases.followers:of(row.name) do
      if lease.asleep and lease.ends == self then
        lease.asleep = false
        lease.election:send "missed"
      end
    end
  end
end

-- For as long as anybody may be asleep.
local function watch(self)
  while core.now() < self.slept + self.ttl * LATEST do
    core.sleep(self.ttl * PERIOD)
    look(self)
  end
  self.watching = false
end

local function begin(self)
  if self.watching then return end
  self.watching, self.looked = true, core.now()
  core.detach(watch, self)
end

--- Another one that may follow.
function Ends:join()
  self.followers = self.followers + 1
end

--- Puts a follower to sleep, where that is worth while.
-- @tparam table lease
-- @number left seconds until its lease ends
-- @treturn number seconds after which it asks at the latest, or nil where it has to look after itself
function Ends:sleep(lease, left)
  lease.asleep = false
  if self.followers < MANY or left <= self.ttl * NEAR or not self.leases.listener then return nil end
  lease.asleep, self.slept = true, core.now()
  core.atomic(begin, self)
  return self.ttl * LATEST
end

return Ends
