--- What can happen to a member of a registry, to its ways, and to the store. Each returns what ends it, or nothing where that is
-- its end: `fault(world, who)`.
local crown = require "crown"
local draw_trick = require "torture.trick"

local HOUR = 3600

local faults = {}

function faults.runtime_killed(_, who) who.member.candidate:hurt("KILL", "runtime") end

function faults.killed(self, who)
  who.member.candidate:hurt("KILL", "supervise", "runtime")
  return function() self:join(who) end
end

function faults.ends(self, who)
  who.member.candidate:signal "TERM"
  return function()
    pcall(who.member.candidate.wait, who.member.candidate, 20)
    self:join(who)
  end
end

function faults.stopped(_, who)
  local candidate = who.member.candidate
  candidate:hurt("STOP", "supervise", "runtime")
  return function() candidate:hurt("CONT", "supervise", "runtime") end
end

local function holds(which, directions)
  return function(_, who)
    for _, direction in ipairs(directions) do who[which].held[direction] = true end
    return function() who[which]:free() end
  end
end

faults.asks_the_store_late = holds("store", { "there" })
faults.hears_the_store_late = holds("store", { "back" })
faults.is_not_reached = holds("others", { "there", "back" })
faults.is_heard_late = holds("others", { "back" })

-- What the others send is long on its way: here is less than was acknowledged.
function faults.is_slow(_, who)
  who.others.delay.there = 0.4
  return function() who.others:free() end
end

local function swallows(which, direction)
  return function(self, who)
    who[which].swallow[direction] = self.random(3)
    return function() who[which]:free() end
  end
end

faults.store_is_not_asked = swallows("store", "there")
faults.store_is_not_heard = swallows("store", "back")

local function cuts(which)
  return function(_, who)
    who[which].refusing = true
    who[which]:reset()
    return function() who[which]:free() end
  end
end

faults.has_no_store = cuts "store"
faults.is_cut_off = cuts "others"

-- Somebody else is in its place, for this member or for all who dial it.
local function plays(which)
  return function(self, who)
    local name, script = draw_trick(self.random)
    self:say("%s: %s", which, name)
    who[which].script = script
    who[which]:reset()
    return function()
      who[which]:free()
      who[which]:reset()
    end
  end
end

faults.store_plays_a_trick = plays "store"
faults.plays_a_trick = plays "others"

local function halves(which)
  return function(_, who)
    who[which].halved.back = true
    return function() who[which]:free() end
  end
end

faults.hears_half_of_the_store = halves "store"
faults.is_heard_half = halves "others"

function faults.store_crashes(self)
  if self.down then return end
  self.down = true
  self.server:down "immediate"
  return function()
    self.server:up()
    self.down = nil
  end
end

function faults.store_freezes(self)
  if self.down then return end
  self.down = true
  self.server:freeze()
  return function()
    self.server:thaw()
    self.down = nil
  end
end

-- Forward: one that is set back makes the leases of dead members last that much longer, as the page says.
function faults.store_is_ahead(self)
  self.clock:set(self.clock.seconds + self.random(12) * HOUR)
end

function faults.store_ends_sessions(self)
  if self.down then return end
  self.server:sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crown'"
end

function faults.store_late_for_all(self)
  for _, who in ipairs(self.members) do who.store.held.back = true end
  return function()
    for _, who in ipairs(self.members) do who.store:free() end
  end
end

-- The leader's process is gone, and whoever is chosen is behind: it knows less than was acknowledged, and does not hear for a
-- while what the others have. The third one has it all, unless it is behind as well; it sees too late that it could lead itself.
function faults.leader_dies_behind(self, who)
  local leader, third = self:leader(), nil
  for _, one in ipairs(self.members) do
    if one ~= who and one ~= leader then third = one end
  end
  if not leader or leader == who or leader.suffers or third.suffers then return end
  leader.suffers, third.suffers = true, true
  local function free()
    leader.store:free()
    who.others:free()
    leader.suffers, third.suffers = nil, nil
  end
  local both = self.random() < 0.5
  who.others.held.there, third.others.held.there = true, both
  -- What the leader takes from now on the store does not hear of, so nobody may be told yes.
  leader.store.held.there = self.random() < 0.5
  crown.sleep(0.3 + self.random() * 0.2)
  local acknowledged, at = self.ledger:held_by(third.node), crown.now()
  third.store.held.back = true
  local killed, problem = pcall(leader.member.candidate.hurt, leader.member.candidate, "KILL", "runtime")
  if not killed then -- it was gone already; nobody else would free the ways
    third.store:free()
    third.others:free()
    free()
    error(problem, 0)
  end
  if both then
    third.others:reset() -- what was on its way is lost with its sender
    third.others:free()
  end
  crown.sleep(1)
  third.store:free()
  -- Nothing of what it lacks can be registered again yet.
  if self:leads_since(at, 2) ~= who then return free end
  self.ledger:leads(who.node, acknowledged, who.member:ask "names" or {})
  return free
end

return faults
