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
  if member.authority and member.authority:is_minority() then return "it reaches less than half of the members" end
  if member.authority and member:is_unreachable() then return "less than half of the members reach it" end
end

-- A leader that reaches the store but not the members stands in the way of one that may reach them. Who may act has to stop
-- first, as one that is evicted: it lets go when it is called for that, or when it claims again, or a TTL later, since nothing
-- of it acts any more by then. Who has not come by the names has had no grant for a TTL.
local function give_way(member)
  local why, now = why_stuck(member), member.effects.now()
  if not why then
    member.stuck_since = nil
    return
  end
  member.stuck_since = member.stuck_since or now
  if now - member.stuck_since < member.options.ttl then return end
  member.stuck_since = now
  if not member:is_unfit() then
    member.effects.emit("oracle.registry.gave_way", { reason = why, epoch = member.view.epoch })
  end
  if member.changeover or member:is_unfit() and not member.effects.acting() then return member:abdicate() end
  member.unfit = member.view.epoch
  member.effects.told "evict"
end

--- Looks whether this member is to let go; called some times in a TTL.
-- @tparam Member member
function stepping_aside.look(member)
  make_way(member)
  give_way(member)
end

return stepping_aside
