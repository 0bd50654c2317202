--- Shares of one work: `crown.shares { name, count = 64 }` makes the elections NAME.1 to NAME.64, each with one leader at most
-- and epochs of its own, and spreads them evenly over the nodes that live. A node that has fewer asks the one with the most for
-- one of its shares, by a hand-over to itself, and for the next one when that has come.
-- @internal crown.election.shares

local balance = require "crown.election.balance"
local core = require "crown.core"
local events = require "crown.election.events"
local retry = require "crown.core.retry"
local settings = require "crown.election.settings"
local slots = require "crown.election.slots"
local usage = require "crown.check.usage"

local shares = {}

--- The option of an election, as crown.check.schema has it.
shares.RULE = { type = "number", integer = true, least = 1, most = 1024 }

--- How many there are where nobody says so.
shares.COUNT = 64

local LOOK = 0.5 -- seconds from one look at who leads what to the next, and a random part of that more
local SOON = 0.1 -- seconds from one look at a share that is to come to the next
local PATIENCE = 10 -- seconds that a node waits for a share that it has asked for
local REST_FIRST, REST_MOST = 60, 600 -- seconds for which a node asks for no share after the command of one has failed there
local PROVES = 60 -- seconds for which the next one has to work before another is asked for, as for restart.within
local RESTS = "asks for no more shares, since the command of one has failed here"

local Shares = setmetatable({}, { __index = slots.Elections })
Shares.__index = Shares

--- The numbers of the shares that this candidate leads.
-- @treturn table an array
function Shares:held()
  local numbers = {}
  for number, one in ipairs(self.elections) do
    if one:is_leader() then numbers[#numbers + 1] = number end
  end
  return numbers
end

-- What speaks against leading a share: whether it is the share's own, since it is paused, or the node's.
local function bars_of(status)
  local is_paused, is_kept_back = false, false
  for _, bar in ipairs(status.barred or {}) do
    if bar.reason == "paused" then is_paused = true else is_kept_back = true end
  end
  return is_paused, is_kept_back
end

-- @return who leads each share, as far as is known here; which are paused; whether this candidate takes part; and whether it may
-- lead
local function look(self)
  local leaders, stays, lives, is_free = {}, {}, false, true
  for number, one in ipairs(self.elections) do
    local status = one:status()
    local is_ours = status.phase == "leading" or status.phase == "cooling"
    leaders[number] = is_ours and self.node or status.leader or false
    local is_paused, is_kept_back = bars_of(status)
    stays[number] = is_paused
    lives, is_free = lives or one.handle ~= nil and not one.handle:finished(), is_free and not is_kept_back
  end
  return leaders, stays, lives, is_free
end

-- Asks for one share, and waits until it has come, or somebody else has it.
local function take(self, number, leader)
  local one, rank = self.elections[number], self.ranks[number]
  local ends = core.now() + PATIENCE
  rank.wanted = leader
  one.state:ranked()
  repeat
    core.sleep(SOON)
    local status = one:status()
  until one:is_leader() or status.leader ~= leader and status.leader ~= nil or core.now() > ends
  rank.wanted = nil
end

-- A command that cannot work here would stop a good one elsewhere for each share that is asked for. So the node asks for none
-- for a while, which doubles, and then for one, which has to work for some time.
local function note_failure(self)
  local now = core.now()
  if now < self.rests_until and not self.is_proving then return end -- the same failure, of another share
  if now - self.rests_until > REST_MOST then self.backoff:reset() end
  local rest = self.backoff:next()
  self.has_failed, self.is_proving, self.rests_until = true, false, now + rest
  core.log("warn", RESTS, { name = self.name, node = self.node, seconds = math.floor(rest + 0.5) })
end

local function heed_failures(self)
  local ours = {}
  for _, one in ipairs(self.elections) do ours[one.name] = true end
  self.backoff, self.rests_until = retry.new(REST_FIRST, REST_MOST), -math.huge
  events.listen({ "child.exited" }, function(event)
    if event.code ~= 0 and ours[event.name] then note_failure(self) end
  end)
end

-- Whether it may ask for a share now.
local function may_ask(self)
  if core.now() < self.rests_until then return false end
  if self.is_proving then
    self.has_failed, self.is_proving = false, false
    self.backoff:reset()
  end
  return true
end

local function spread(self)
  local number
  repeat
    core.sleep(number and SOON or LOOK * (1 + math.random()))
    local leaders, stays, lives, is_free = look(self)
    number = is_free and may_ask(self) and balance.pick(leaders, self.node, math.random, stays)
    if number then
      take(self, number, leaders[number])
      if self.has_failed then self.is_proving, self.rests_until = true, core.now() + PROVES end
    end
  until not lives
end

local EVENLY = "shares are spread evenly"
local REFUSED = { slots = "both say how many elections there are", preference = EVENLY, preference_wait = EVENLY,
  preempt = EVENLY, last_resort = EVENLY }

local function check(where, given)
  for _, name in ipairs(usage.names(REFUSED)) do
    if given[name] ~= nil then usage.error("%s: %s has no place beside shares: %s", where, name, REFUSED[name]) end
  end
  slots.check(where, given, "shares", shares.RULE)
end

--- Declares the elections of all shares.
-- @tparam function elect declares one: its options, no group, and its rank → Election
-- @string where how messages name it
-- @tparam table given the options, with `shares`
-- @treturn Shares `name`, `elections`
-- @raise a usage error that names the option
function shares.elect(elect, where, given)
  check(where, given)
  local self = setmetatable({ name = given.name, node = given.node or core.node(), elections = {}, ranks = {} }, Shares)
  for number = 1, given.shares do
    self.ranks[number] = { level = 0 }
    self.elections[number] = elect(slots.option_of(given, "shares", "CROWN_SHARE", number), nil, self.ranks[number])
  end
  slots.end_together(self)
  if not settings.checking then
    heed_failures(self)
    core.detach(spread, self)
  end
  return self
end

return shares
