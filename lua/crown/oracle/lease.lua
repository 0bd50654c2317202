--- What oracles on leases of a peer's format share: their grants and their times.
-- @internal crown.oracle.lease

local rule = require "crown.register.rule"

local Lease = {}

local FIRST_LEAST = 0.1 -- of the delay, until the first refresh

-- What was granted last: of thousands that are won together, most terms can share one table. Looked at once in a function:
-- another task may put another one there at any time.
local latest = {}

--- A grant.
-- @number ttl
-- @number epoch
-- @param[opt] refresher as a grant may carry it
-- @treturn table shared with others that are the same
function Lease.grant(ttl, epoch, refresher)
  local grant = latest
  if grant.ttl == ttl and grant.epoch == epoch and grant.refresher == refresher then return grant end
  grant = { ttl = ttl, epoch = epoch, refresher = refresher }
  latest = grant
  return grant
end

--- Until the first refresh of a lease: those that were won at once, by a runtime that starts or after a store that was away,
-- are not refreshed at once for ever.
-- @number delay from one refresh to the next, in seconds
-- @treturn number seconds, at most the delay
function Lease.first_delay(delay)
  local least = delay * FIRST_LEAST
  return least + (delay - least) * math.random()
end

--- For how long somebody has to have seen one version of a lease stand, by a clock of its own, until it is over: the lease, and
-- what clocks may drift apart.
-- @number ttl in seconds
-- @treturn number seconds
Lease.standing_time = rule.standing_time

return Lease
