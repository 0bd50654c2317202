--- When a leader that the store believes in stands in the way of others, and lets go. Pure.
-- @internal crown.registry.stepping_aside

local stepping_aside = {}

-- A leader that has let go, or whose election does not take part, stands in the way of the others.
local function make_way(member)
  local has_let_go = member:is_chosen(member.view) and member.let_go == member.view.epoch
  local acts = member.effects.acting() or member.effects.wanting() and member:able()
  if acts or not (has_let_go or member:leads()) then
    member.idle_since = nil
    return
  end
  member.idle_since = member.idle_since or member.effects.now()
  if member.effects.now() - member.idle_since < member.options.ttl / 2 then return end
  member.idle_since = nil
  member:abdicate()
end

-- Why a leader that the store believes in is none to the others, or nil.
local function why_stuck(member)
  if member.changeover then return "it has not come by the names" end
  if not member.authority then return nil end
  local total, reached, reach_it = member.authority.size, member.authority:reached(), member:reached_by()
  if reached * 2 < total then return ("it reaches %d of %d members"):format(reached, total) end
  if reach_it * 2 < total then return ("%d of %d members reach it"):format(reach_it, total) end
end

-- How much of a copy has come in a change-over; as long as any comes, it is not stuck.
local function parts_of(member)
  return member.changeover and member.changeover.parts
end

local function stuck_from_now(member)
  member.stuck = { since = member.effects.now(), epoch = member.view.epoch, parts = parts_of(member), late = 0 }
end

-- How long a leader has been stuck, and by how much its looks came too late meanwhile: on a busy machine it may be that.
local function stuck_for(member, late)
  local stuck = member.stuck
  if not stuck or stuck.epoch ~= member.view.epoch or stuck.parts ~= parts_of(member) then
    stuck_from_now(member)
  else
    member.stuck.late = math.max(member.stuck.late, late)
  end
  return member.effects.now() - member.stuck.since, member.stuck.late
end

local function milliseconds(seconds)
  return math.floor(seconds * 1000 + 0.5) / 1000
end

-- A leader that reaches the store but not the members stands in the way of one that may reach them. Who may act has to stop
-- first, as one that is evicted: it lets go when it is called for that, or when it claims again, or a TTL later, since nothing
-- of it acts any more by then. Who has not come by the names has had no grant for a TTL.
local function give_way(member, late)
  local why = why_stuck(member)
  if not why then
    member.stuck = nil
    return
  end
  local seconds, latest = stuck_for(member, late)
  if seconds < member.options.ttl then return end
  stuck_from_now(member)
  if not member:is_unfit() then
    member.effects.emit("oracle.registry.gave_way", { reason = why, epoch = member.view.epoch, seconds = milliseconds(seconds),
      late = milliseconds(latest) })
  end
  if member.changeover or member:is_unfit() and not member.effects.acting() then return member:abdicate() end
  member.unfit = member.view.epoch
  member.effects.told "evict"
end

--- Looks whether this member is to let go; called some times in a TTL.
-- @tparam Member member
-- @number late seconds by which this look comes too late
function stepping_aside.look(member, late)
  make_way(member)
  give_way(member, late)
end

--- Hears that a link has come up. Whoever reaches the others in a TTL, and is reached by them, does not give way, also where no
-- look sees it.
-- @tparam Member member
function stepping_aside.linked(member)
  if member.stuck and not why_stuck(member) then member.stuck = nil end
end

return stepping_aside
