--- What a member does about what the store says: it takes over when it is chosen, processes the queue, and reports who is gone.
-- Pure.
-- @internal crown.registry.duties

local elector = require "crown.registry.elector"

local duties = {}

-- Seconds, times the number of members: who does something in whose place comes within that time.
local DECIDE_EACH, REPORT_EACH = 0.005, 0.01

-- A message that nobody can process would be the queue's head for ever.
local function try_to_decide(member, view)
  local fine, state, dropped, broken = pcall(elector.decide, view, view.head.message, member.id, view.now)
  if fine then return state, dropped, broken end
  return nil, tostring(state), true
end

local function decide(member, view)
  local message, number = view.head.message, view.head.number
  local state, dropped, broken = try_to_decide(member, view)
  if dropped and not broken and message.kind == "join" and message.token == member.token then member:refuse(dropped) end
  local changed = state ~= nil and state.epoch ~= view.epoch
  member.effects.ask("decide", { version = view.version, number = number, state = state or view, changed = changed,
    lock = 2 * member.options.snapshot_timeout }, function(won)
      if won == nil then return member:wake_in(member.ASK_AGAIN) end
      if won and broken then
        member.effects.emit("oracle.registry.message_dropped", { error = dropped, number = number })
      end
      member:wake()
    end)
end

-- What everybody could do, one should: each waits for a moment of its own, the longer the more there are, and looks once more
-- whether it is still to be done. `last`: this one is to come after all others.
local function is_turn(member, key, view, each, last)
  local now = member.effects.now()
  if not member.turn or member.turn.key ~= key then
    member.turn = { key = key, at = now + (member.effects.random() + (last and 1 or 0)) * each * elector.size(view.members) }
  end
  if now >= member.turn.at then return true end
  member:wake_in(member.turn.at - now + 0.001)
  return false
end

--- Does what is due.
-- @tparam Member member
-- @tparam table view what the store says
function duties.act(member, view)
  local what, detail = elector.plan(view, member.id, member.token, member.let_go)
  if what == "change_over" then
    member:change_over(view)
  elseif what == "decide" then
    -- Whoever processes the message may lead after it, and who joins has none of the names.
    local last = not member.joined
    if member:is_chosen(view) or is_turn(member, view.head.number, view, DECIDE_EACH, last) then decide(member, view) end
  elseif what == "report" then
    if not is_turn(member, "report", view, REPORT_EACH) then return end
    member.turn = nil
    member.effects.ask("enqueue", { messages = detail }, function(done)
      if done then member:wake() else member:wake_in(member.ASK_AGAIN) end
    end)
  elseif detail then
    member:wake_in(detail + 0.001)
  end
end

return duties
