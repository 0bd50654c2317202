--- Has candidates obey what operators order of them (crown.register.orders): what speaks against leading is told to each one's
-- core, and taken back when it is over. A candidate that is barred asks nothing, so its session looks for it, once for all, and
-- when the store tells of a change. None of this permits a claim: the rule refuses those by the record itself (S15).
-- @internal crown.register.obey

local orders = require "crown.register.orders"

local obey = {}

local LOOK = 1 -- seconds from one look at the records of those who are barred to the next, where they are few
local EACH_LOOK = 1024 -- records are looked at in so many seconds, and together
local LEAST_PAUSE = 0.01 -- seconds
local REMIND = 3600 -- seconds after which a pause without an end is told again

local function time_of(session) return session.env.time() / 1000 end

local function tell(session, member, bar, why)
  local now, found = session.env.now(), member.slot.orders
  local before = member.bar
  if bar ~= before or why ~= member.why then
    member.bar, member.why, member.reminded = bar, why, now
    return member:obey(bar, why, before)
  end
  if bar == "paused" and not found["until"] and now - member.reminded >= REMIND then
    member.reminded = now
    member:remind(bar, why)
  end
end

-- What it is told by what is known now. @return the seconds until that may change by itself, or nil: there are no orders
local function judge(session, member)
  local found = member.slot.orders
  tell(session, member, orders.bar(found, session.node, session:leads(member), time_of(session)))
  if not found then
    session.obeying[member] = nil
    return nil
  end
  local left = found["until"] and found["until"] - time_of(session)
  return left and left > 0 and left or math.huge
end

-- @return the seconds until they are to be looked at again, or nil: nobody is left
local function judge_all(session)
  local soonest, count = math.huge, 0
  for member in pairs(session.obeying) do
    local left = judge(session, member)
    if left then soonest, count = math.min(soonest, left), count + 1 end
  end
  if count == 0 then return nil end
  return math.max(LEAST_PAUSE, math.min(soonest, (session.looks or LOOK) * math.max(1, count / EACH_LOOK)))
end

local function note(session, slot, answer, sent)
  if slot.term then return end -- the answer may be from before that
  local seen = session.seen:note(slot, answer, sent)
  if seen then slot.orders = orders.binding(seen.record and seen.record.orders) end
end

-- A leader's own looks see its record: those of the patrol.
local function look_for(session, slots)
  local names, env = {}, session.env
  for name in pairs(slots) do names[#names + 1] = name end
  for first = 1, #names, EACH_LOOK do
    local some, sent = { unpack(names, first, math.min(#names, first + EACH_LOOK - 1)) }, env.now()
    local answers = session.store:look(some)
    for _, name in ipairs(answers and some or {}) do env.atomic(note, session, slots[name], answers[name], sent) end
  end
end

local function followed(session)
  local slots = {}
  for member in pairs(session.obeying) do
    if not member.slot.term then slots[member.slot.name] = member.slot end
  end
  return slots
end

-- The first turn lets the question end that has seen the orders: a candidate that is barred drops what it asks.
local function work(session)
  local pause = 0
  while pause do
    session.env.sleep(pause)
    if pause > 0 then look_for(session, session.env.atomic(followed, session)) end
    pause = session.env.atomic(judge_all, session)
  end
  session.obeyed = false
end

local function look_at_one(session, member)
  local slot = member.slot
  session.env.sleep(0)
  if not slot.term then look_for(session, { [slot.name] = slot }) end
  session.env.atomic(judge, session, member)
end

--- Notes what a record says. Nothing else happens where it has no orders.
-- @tparam Session session perhaps with `looks`, seconds from one look to the next
-- @tparam table member see crown.register.terms; has the methods `obey(bar, why, before)`, which tells its core what speaks
-- against its leading, nil where nothing does, and what did before, and `remind(bar, why)`, which says it again in the log
-- @tparam table|boolean found the record of its election
function obey.note(session, member, found)
  local slot, wanted = member.slot, orders.binding(found and found.orders)
  if not wanted and not slot.orders then return end
  slot.orders = wanted
  session.obeying[member] = true
  if session.obeyed then return session.env.detach(look_at_one, session, member) end
  session.obeyed = true
  session.env.detach(work, session)
end

-- What a core has that has not ended.
local function living(election)
  local handle = election.handle
  return handle and not handle:finished() and handle or nil
end

--- Tells an election's core what speaks against its leading.
-- @tparam table election of crown.oracle.candidate
-- @string[opt] bar nil: nothing does any more
-- @string[opt] why
-- @string[opt] before what it was told last
-- @treturn boolean whether it is barred now; not one without a core
function obey.tell_core(election, bar, why, before)
  local handle = living(election)
  if not handle then return false end
  if before and before ~= bar then handle:allow(before) end
  if bar then handle:bar(bar, why) end
  return bar ~= nil
end

--- Has it said again in the log.
-- @tparam table election
-- @string bar
-- @string why
function obey.remind_core(election, bar, why)
  local handle = living(election)
  if handle then require("crown.core.election").emit("leadership.barred", { reason = bar, error = why }, handle) end
end

--- Looks again for a candidate whose record has changed, where that had orders.
-- @tparam Session session
-- @tparam table member
function obey.hear(session, member)
  if session.obeying[member] then session.env.detach(look_at_one, session, member) end
end

return obey
