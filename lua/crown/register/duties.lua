--- What of ours may stand in the store, or may yet come about there, and must not: a claim without an answer, a term that is
-- over. A session that many elections share is renewed for ever, so nothing of that lapses by itself: it is
-- written again and again until it is answered, also when the election has ended here. Until then nothing is claimed there.
--
-- A duty: `at` and `epoch` of the term; `over`, `base` and `memory`: the version that "nobody" is to be written over, its record
-- and the memory, unless that has `failed`; `quiet`: nobody needs to hear of it. Of a claim that is the version at which it was
-- made, of a term its own; `job`: of crown.register.runs, whose marks are written with it.
-- @internal crown.register.duties

local joined = require "crown.register.joined"
local ranks = require "crown.register.ranks"
local record = require "crown.register.record"
local rule = require "crown.register.rule"
local runs = require "crown.register.runs"

local duties = {}

local PAUSE, PAUSE_MORE = 0.3, 1 -- seconds between two tries, and a random part of the second one more

local function work(session)
  while next(session.unsettled) do
    session.env.sleep(PAUSE + session.env.random() * PAUSE_MORE)
    local slots = {}
    for slot in pairs(session.unsettled) do slots[#slots + 1] = slot end
    for _, slot in ipairs(slots) do duties.settle(session, slot, false) end
  end
  session.working = false
end

--- Adds one.
-- @tparam Session session
-- @tparam table slot
-- @tparam table duty see above
function duties.add(session, slot, duty)
  local owed = session.unsettled[slot] or {}
  owed[#owed + 1], session.unsettled[slot] = duty, owed
  if session.working then return end
  session.working = true
  session.env.detach(work, session)
end

--- Drops one that is settled.
-- @tparam Session session
-- @tparam table slot
-- @tparam table duty
function duties.drop(session, slot, duty)
  local owed = session.unsettled[slot] or {}
  for i, one in ipairs(owed) do
    if one == duty then table.remove(owed, i) end
  end
  if #owed == 0 then session.unsettled[slot] = nil end
end

-- @return whether it was written
local function put(session, slot, duty, one, version, memory)
  local text = record.text(one, session.env.nonce())
  local results, problem, code = session.store:swap { { name = slot.name, version = version, text = text, memory = memory,
    frees = not duty.quiet, quiet = duty.quiet } }
  if not results then return nil, problem, code end
  if results[1] == nil then return nil, "nobody knows whether it was written" end
  if results[1] then session.seen:learn(slot, one) end
  if results[1] and duty.job then runs.note_marked(duty.job) end
  return results[1] ~= false
end

-- S16: what became of the run is written in the same step, so that nobody begins it in between.
local function freed(session, duty, base, memory)
  local one = rule.free(base, duty.epoch, memory)
  one.orders = ranks.with(one.orders, session.node, 0) -- who gives back does not wait
  if duty.job then one.runs = runs.after(one.runs, duty.job, session.node) end
  return one
end

-- S4: nobody's, with the claim's own epoch, over the version and in the memory that the claim was made at: then the claim comes
-- too late. S5: a release names the memory in which the term was known to be ours.
local function put_blindly(session, slot, duty)
  return put(session, slot, duty, freed(session, duty, duty.base, duty.memory), duty.over, duty.memory)
end

-- What stands there: if it is ours it is emptied. In another memory the others wait all the same (S9).
local function put_over(session, slot, duty)
  local sent = session.env.now()
  local answers, problem, code = session.store:look { slot.name }
  if not answers then return nil, problem, code end
  local answer = answers[slot.name]
  local seen
  seen, problem = session.env.atomic(session.seen.note, session.seen, slot, answer, sent)
  if not seen then return nil, problem, "store" end
  local found = seen.record
  if not rule.is_ours(session:me(), found, duty.at, duty.epoch) or found.memory ~= answer.memory then
    if duty.job and runs.tell_of(found and found.runs, duty.job, session.node) then runs.note_marked(duty.job) end
    return true -- an earlier try may have written it
  end
  local one = freed(session, duty, found, answer.memory)
  local wrote, why, kind = put(session, slot, duty, one, answer.version, answer.memory)
  if wrote == false then return nil, "the record changed while it was given back", "store" end
  return wrote, why, kind
end

local function settle_one(session, slot, duty)
  if not duty.failed then
    local wrote, problem, code = put_blindly(session, slot, duty)
    if wrote ~= false then return wrote, problem, code end
    duty.failed = true
  end
  return put_over(session, slot, duty)
end

local function settle_all(session, slot, run)
  while session.unsettled[slot] do
    local duty = session.unsettled[slot][1]
    duty.settling = true -- from now on a claim that is still under way wins nothing
    local fine, problem, code = settle_one(session, slot, duty)
    if slot.run ~= run then return nil, "it was given up", "store" end
    if not fine then return nil, problem, code end
    session.env.atomic(duties.drop, session, slot, duty)
  end
  return true
end

-- A claim that is under way, by a task which may have been cancelled.
local function is_asked(session, slot)
  local duty = session.unsettled[slot][1]
  return duty.asked and session.env.now() - duty.asked <= session.patience
end

--- Settles what is owed of an election.
-- @tparam Session session
-- @tparam table slot
-- @bool is_over whether its candidate knows that no claim of its own is under way
-- @treturn boolean true when nothing is owed any more; or nil, message, code
function duties.settle(session, slot, is_over)
  if not session.unsettled[slot] then return true end
  if not is_over and is_asked(session, slot) then return nil, "a claim is under way", "store" end
  return joined(session.env, slot, session.patience, function(run) return settle_all(session, slot, run) end)
end

return duties
