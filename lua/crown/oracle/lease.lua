--- What is the same for all oracles on a table of leases: an oracle adds how it asks. Its state has `ttl`, `delay`, `number`,
-- and `mine`, what its own leases bear; its method `ask(op)` runs "claim", "refresh" or "release" under the claim's number
-- and returns the epoch and whether the leader was evicted, or, of a claim, the seconds until its first refresh, where leases are
-- to be refreshed together; or false and who holds the lease, `{ node =, held =, left =,
-- distrust =, empty =, retry_in =, mine = }`, times in seconds; or nil, message, code. Where the state has a `refresher`
-- (runtime/candidate/refresher.h), that refreshes as long as all is as it was, and `refresh` judges what is not.
-- @internal crown.oracle.lease

local candidate = require "crown.oracle.candidate"
local claim_number = require "crown.oracle.claim_number"
local eviction = require "crown.oracle.eviction"
local rule = require "crown.register.rule"

local Lease = {}

local FIRST_LEAST = 0.1 -- of the delay, until the first refresh

-- What was denied last: of thousands that are told of one leader, most can share one table, as with grants below.
local latest_denial = {}

local function denial_until_asked(node, epoch, retry_in)
  local denial = latest_denial
  if denial.node == node and denial.epoch == epoch and denial.retry_in == retry_in then return denial end
  denial = { node = node, epoch = epoch, retry_in = retry_in }
  latest_denial = denial
  return denial
end

local function denied(self, held)
  local left = held.left and math.max(0, held.left)
  if (held.distrust or 0) > 0 then
    local seconds = math.max(held.distrust, left or 0)
    return self.leases.doubt:denial(seconds, held.empty, { node = held.node, epoch = held.held,
      expires_in = seconds + candidate.apart() })
  end
  if not left then return false, denial_until_asked(held.node, held.held, held.retry_in) end
  return false, { node = held.node, epoch = held.held, expires_in = left, retry_in = held.retry_in }
end

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

-- Thousands of refreshes a second make none.
local function granted(self, epoch, delay)
  if not self.grant or self.grant.epoch ~= epoch then self.grant = Lease.grant(self.ttl, epoch, self.refresher) end
  return true, delay, self.grant
end

--- What the elections in one store with the same times have in common: one table for all of them, where Lua looks for what
-- their own state lacks.
-- @tparam table oracle the module, where Lua looks next
-- @tparam table leases the store's; its table `kinds` keeps them
-- @number ttl in seconds, as the others
-- @number delay from one refresh to the next
-- @number timeout
-- @tparam function more what else they have in common, called once
-- @treturn table the metatable of their states
function Lease.kind(oracle, leases, ttl, delay, timeout, more)
  local key = ("%.17g %.17g %.17g"):format(ttl, delay, timeout)
  if not leases.kinds[key] then
    local common = more()
    common.leases, common.ttl, common.delay, common.timeout = leases, ttl, delay, timeout
    leases.kinds[key] = { __index = setmetatable(common, oracle) }
  end
  return leases.kinds[key]
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

local function claim(self)
  self.number = claim_number(self.number)
  local epoch, second, code = self:ask "claim"
  if epoch == nil then return nil, second, code end
  if not epoch then
    if second.mine == self.mine and (second.distrust or 0) == 0 then return nil, "an older claim of ours was answered" end
    return denied(self, second)
  end
  self.leading = true
  if self.told_to_go then self.told_to_go = false end -- a name that is new to a table may double it
  return granted(self, epoch, tonumber(second) or Lease.first_delay(self.delay))
end

local function refresh(self)
  local epoch, second, code = self:ask "refresh"
  if epoch == nil then return nil, second, code end
  if epoch and second and not self.told_to_go then return eviction.tell(self) end
  if epoch then return granted(self, epoch, self.delay) end
  self.leading = false
  if not second.mine then -- there is none any more
    return self.leases.doubt:denial(self.ttl, nil, { error = "the store has no lease of this name any more" })
  end
  local verdict, holder = denied(self, second) -- also where it is ours by another claim: this term's lease is gone
  holder.error = "the lease in the store is not this term's"
  return verdict, holder
end

local function abdicate(self)
  self.leading = false
  self:ask "release"
end

local function handle_info(self, message)
  if message == "evict" then
    if self.leading then return self:refresh() end
  elseif message == "freed" or message == "missed" then
    if not self.leading then return self:claim() end
  end
end

--- Makes an oracle of a module that has `ask`.
-- @tparam table oracle gets claim, refresh, abdicate and handle_info
-- @treturn table the oracle
function Lease.oracle(oracle)
  oracle.claim, oracle.refresh, oracle.abdicate, oracle.handle_info = claim, refresh, abdicate, handle_info
  return oracle
end

return Lease
