--- The oracle's questions, answered by a member: pure. Each calls `done` with what the oracle contract asks for.
-- @internal crown.registry.candidate

local elector = require "crown.registry.elector"

local candidate = {}

local RETRY = 1       -- seconds until a claim that found nobody to wait for
local HANDED = 0.01   -- seconds between looks whether a successor has taken over

local function denied(view)
  local leader = view.leader and view.members[view.leader]
  if not leader then return { retry_in = RETRY, amnesia = view.distrust ~= nil or nil, expires_in = view.distrust } end
  local node = elector.node_of(view.leader)
  if elector.changing(view) then return { node = node, retry_in = RETRY } end
  local left = math.min(leader.expires_at - view.now, leader.ttl) -- more is by a clock that was set back since
  return { node = node, epoch = view.epoch, expires_in = math.max(0, left) }
end

-- Who is not fit to lead lets go. So does who does not act, where the store may have forgotten an election: he does not know
-- who has led meanwhile, and takes part anew, in a later epoch.
local function let_go(member, view)
  if member:able() then member:abdicate() end
  if not view.distrust then return { retry_in = RETRY } end
  return { retry_in = RETRY, amnesia = true, expires_in = view.distrust }
end

--- Tries to become leader: joins, asks for an election where there is no leader.
-- @tparam Member member
-- @tparam function done `done(true, epoch)`, `done(false, holder)` or `done(nil, message)`
function candidate.claim(member, done)
  if not member.joined then
    local twin = member.refused ~= nil
    member:ensure()
    if member.trouble then return done(nil, member.trouble) end
    return done(false, { retry_in = RETRY, epoch = twin and member.view.epoch or nil })
  end
  member:heartbeat(function(view, problem)
    if not view then return done(nil, problem) end
    if member:leads() and (view.distrust or member:is_unfit()) then return done(false, let_go(member, view)) end
    if member:leads() then
      if not member:able() then return done(false, { retry_in = RETRY }) end
      return done(true, view.epoch)
    end
    local mine = view.members[member.id]
    if mine and (not view.leader or mine.aside) and not view.distrust then member:enqueue("elect", {}) end
    done(false, denied(view))
  end)
end

--- Keeps leading.
-- @tparam Member member
-- @tparam function done as for claim
function candidate.refresh(member, done)
  member:heartbeat(function(view, problem)
    if not view then return done(nil, problem) end
    if not member:leads() then return done(false, denied(view)) end
    if view.evicted or member:is_unfit() then return done(false, { evicted = true }) end
    done(true, view.epoch)
  end)
end

-- Somebody else has taken over, or nobody is left to do it.
local function is_handed_over(member)
  local view, others = member.view, false
  for id, one in pairs(view.members) do others = others or (id ~= member.id and one.expires_at > view.now) end
  return view.members[member.id] == nil and (not others or (view.leader ~= nil and not elector.changing(view)))
end

local function await(member, is_so, until_at, done)
  if is_so(member) or member.effects.now() >= until_at then return done() end
  member.effects.after(HANDED, function() await(member, is_so, until_at, done) end)
end

local function drained(member, done)
  if not member.authority then return done() end
  local over = false
  local function once()
    if over then return end
    over = true
    done()
  end
  member.authority:drain(once)
  member.effects.after(member.options.replicate_timeout, once)
end

--- Lets go. What was taken is acknowledged first; at the end of the process this node also leaves, and stays until its
-- successor has the names.
-- @tparam Member member
-- @tparam boolean ending
-- @tparam function done
function candidate.abdicate(member, ending, done)
  drained(member, function()
    local until_at = member.effects.now() + member.options.snapshot_timeout
    if not ending then
      member:abdicate()
      return await(member, function() return not member:leads() end, until_at, done)
    end
    member.leaving = true
    if not member.joined then return done() end
    member:relinquish "this node leaves"
    member:enqueue("member_down", { left = true }, function(stored)
      if not stored then return done() end
      await(member, is_handed_over, until_at, done)
    end)
  end)
end

return candidate
