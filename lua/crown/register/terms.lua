--- The elections of a session: claims, terms, and what of them may still stand in the store.
--
-- A slot is an election's place in a session: what was seen of its record (crown.register.seen); `holder`, what was seen of the
-- session that holds it; `news`, what the store has told and nobody has acted on; `term`, while one of ours leads; `undead`,
-- until when a term of ours may last whose tree has not been seen to go; `back`, whether it was doubted for another reason than
-- that there was none.
-- A member is a candidate in a slot: `slot`, `store`, `trusts`, `least` (its epochs are no lower), `quiet` (nobody needs to hear
-- what it claims and gives back), `job` (of crown.register.runs, or nil), and `tell()`, by which it hears that something has
-- changed. Its core has a deadline, `deadline()`, that a renewal of the session moves as long as its term stands, `stand(on)`:
-- then nothing is asked here. Whatever speaks against a term ends that at once, before anybody hears. `obey` and `remind`: see
-- crown.register.obey.
-- @internal crown.register.terms

local claims = require "crown.register.claims"
local confirming = require "crown.register.confirming"
local duties = require "crown.register.duties"
local ending = require "crown.register.ending"
local limits = require "crown.register.limits"
local obey = require "crown.register.obey"
local record = require "crown.register.record"
local rule = require "crown.register.rule"
local runs = require "crown.register.runs"

local terms = {}

local PATROL_ALL = 64 -- so many elections are looked at in each renewal, of more a part
local PATROL_MOST = 1024 -- are looked at together: the answers of a hundred thousand would take much memory
local PATROL_EACH = 1.5 -- delays since the last look at a term, after which it is looked at again

local CHANGED = "the record changed while it was looked at"

--- An election's place in a session.
-- @tparam Session session
-- @string name
-- @tparam[opt] table member which is to be its slot too, where there is none yet: of a hundred thousand elections each mostly has
-- one here, and one table takes less than two
-- @treturn table the slot, for as long as somebody holds it
function terms.slot(session, name, member)
  return session.seen:of(name, member)
end

-- --- the end of a term

local function take_out(session, slot)
  local term = slot.term
  slot.term, session.terms[slot.name], session.led = nil, nil, session.led - 1
  term.member:stand(false)
  return term
end

-- Until when its tree may last: later than we have said ourselves where renewals have moved the deadline.
local function ends_of(session, term)
  local deadline = term.member:deadline()
  if deadline then term.ends = math.max(term.ends, deadline + rule.margin(session.ttl)) end
  return term.ends
end

--- Ends a term that is over in the store. Its tree may last until the deadline that it was given.
-- @tparam Session session
-- @tparam table slot
-- @tparam table why what its candidate is told: `error`, `node`, `epoch`, `amnesia`
function terms.lose(session, slot, why)
  local term = take_out(session, slot)
  slot.undead = { member = term.member, ends = ends_of(session, term) }
  session.undead[slot], session.is_named = true, true
  term.member.lost = why
  term.member:tell()
end

--- Seconds until the last tree of terms that are over has gone, or passed its deadline.
-- @tparam Session session
-- @treturn number or nil: there is none
function terms.undead(session)
  local now, last = session.env.now(), nil
  for slot in pairs(session.undead) do
    if not slot.undead or slot.undead.ends <= now then
      slot.undead, session.undead[slot] = nil, nil
    else
      last = math.max(last or 0, slot.undead.ends - now)
    end
  end
  return last
end

-- S5: nobody's again. A session that others share goes on, so nothing would end the term in the store.
local function give_back(session, slot)
  local term = take_out(session, slot)
  duties.add(session, slot, { at = session.at, epoch = term.epoch, over = slot.version, memory = slot.memory,
    base = record.parse(term.text, slot.name), failed = slot.text ~= term.text, quiet = term.member.quiet,
    job = runs.now(term.member.job) })
  return term
end

-- S7: a tree that does not die is not waited for: nothing of the term goes on past its deadline, which nobody moves any more.
local function overdue(session, slot)
  give_back(session, slot).member.lost = { error = "the lease was not refreshed in time" }
end

-- Before `first_end` none is, and a hundred thousand are not looked at.
local function end_overdue(session)
  local now, first = session.env.now(), math.huge
  if now < session.first_end then return end
  for _, slot in pairs(session.terms) do
    if slot.term.ends <= now and ends_of(session, slot.term) <= now then overdue(session, slot)
    else first = math.min(first, slot.term.ends) end
  end
  session.first_end = first
end

--- Gives back the terms whose candidates did not refresh them before their deadline (S7).
-- @tparam Session session
function terms.end_overdue(session)
  session.env.atomic(end_overdue, session)
end

-- Its tree has gone: its candidate claims, or gives back.
local function end_own(session, member)
  local slot = member.slot
  local term = slot.term
  if term and term.member == member then give_back(session, slot) end
  if slot.undead and slot.undead.member == member then slot.undead, session.undead[slot] = nil, nil end
  if member.lost then member.lost = nil end
end

-- --- patrol

-- The names of the terms that are looked at now.
local function due(session)
  local names, before = {}, session.env.now() - PATROL_EACH * session.delay
  if session.led <= PATROL_ALL or session.moved then before = math.huge end
  if before < session.first_look or session.store.tells_all then return names end
  for name, slot in pairs(session.terms) do
    if slot.term.patrol <= before then names[#names + 1] = name end
  end
  return names
end

-- S6: the term goes on to be ours.
local function keep(session, slot, found, answer, sent)
  local term = slot.term
  session.seen:stands(slot, answer)
  term.text, term.memory = answer.text, answer.memory
  term.patrol = math.max(term.patrol, sent)
  limits.note(session, term)
  obey.note(session, term.member, found)
  if found.directive == "evict" and not term.evicted then
    term.evicted = true
    term.member:stand(false)
    term.member:tell()
  end
end

local function write_of(slot, one, answer, what)
  return { slot = slot, term = slot.term, what = what, name = slot.name, version = answer.version, memory = answer.memory,
    record = one }
end

-- Whether nothing has changed, as with most; or nothing is known: a look at an earlier term says nothing of this one.
local function is_unchanged(slot, term, answer, sent)
  if not term or slot.term ~= term or sent < term.patrol then return true end
  if answer.text ~= term.text or answer.version ~= slot.version or answer.memory ~= term.memory then return false end
  term.patrol = math.max(term.patrol, sent)
  return true
end

-- @return a write that is needed: S8, a doubt over what is missing or older; S9, the same term in another memory
local function judge(session, slot, term, answer, sent)
  if is_unchanged(slot, term, answer, sent) then return nil end
  local seen, problem = session.seen:note(slot, answer, sent)
  if not seen then
    if not answer.trouble then terms.lose(session, slot, { error = problem }) end -- somebody wrote over it
    return nil
  end
  local found, me = seen.record, session:me()
  if rule.is_ours(me, found, session.at, term.epoch) then
    if found.memory == answer.memory then return keep(session, slot, found, answer, sent) end
    if session:is_live() and session.env.now() < ends_of(session, term) then
      return write_of(slot, rule.vouch(found, answer.memory), answer, "vouch")
    end
    return nil
  end
  local peer = seen.peer
  if peer and peer.wait > 0 then
    terms.lose(session, slot, { node = peer.node, epoch = peer.epoch })
  elseif not found or seen.back then
    return write_of(slot, rule.doubt(me, seen), answer, "doubt")
  else
    terms.lose(session, slot, { node = found.node, epoch = found.epoch, amnesia = found.doubt and true })
  end
end

local function settle_write(session, one, version, sent)
  local slot = one.slot
  if not version or slot.term ~= one.term then return end
  session.seen:learn(slot, one.record)
  if one.what == "vouch" then
    local answer = { version = version, text = one.text, memory = one.memory }
    return keep(session, slot, one.record, answer, sent)
  end
  terms.lose(session, slot, { amnesia = true, epoch = one.record.epoch, error = "the store has no record of this term any more" })
end

-- The slots of names, and the terms that are in them now.
local function held(session, names)
  local slots, found = {}, {}
  for i, name in ipairs(names) do
    local slot = session.terms[name]
    if slot then slots[i], found[i] = slot, slot.term end
  end
  return slots, found
end

-- Looks at some terms. What was missing or older, and cannot be written over, was an old reading: it is not known.
-- @return true; or nil, message, code
local function look_at(session, names)
  local env = session.env
  local slots, looked_at = env.atomic(held, session, names)
  local sent = env.now()
  local answers, problem, code = session.store:look(names)
  if not answers then return nil, problem, code end
  local writes = {}
  for i, name in ipairs(names) do
    local one = slots[i] and env.atomic(judge, session, slots[i], looked_at[i], answers[name], sent)
    if one then
      one.text = record.text(one.record, env.nonce())
      writes[#writes + 1] = one
    end
  end
  if #writes == 0 then return true end
  sent = env.now()
  local results
  results, problem, code = session.store:swap(writes)
  if not results then return nil, problem, code end
  local all = true
  for i, one in ipairs(writes) do
    env.atomic(settle_write, session, one, results[i], sent)
    all = all and results[i]
  end
  if all then return true end
  return nil, CHANGED, "store"
end

--- S6: looks at the terms, since only an election's own record says that it is still ours. A look that fails is repeated with the
-- next renewal.
-- @tparam Session session
-- @tparam table run of the renewal, which may have been given up
function terms.patrol(session, run)
  local names = session.env.atomic(due, session)
  for first = 1, #names, PATROL_MOST do
    if session.run ~= run then return end
    local left = confirming.ask(session, { unpack(names, first, math.min(#names, first + PATROL_MOST - 1)) })
    if left and #left > 0 and session.run == run then look_at(session, left) end
  end
end

--- Whether each term was looked at, and is written in the memory of the session, so that the last renewal counts for it.
-- @tparam Session session
-- @number since the looks were sent no earlier than this instant
-- @treturn boolean
function terms.are_seen(session, since)
  if session.first_look >= since then return true end
  session.first_look = math.huge
  for _, slot in pairs(session.terms) do limits.note(session, slot.term) end
  return session.first_look >= since
end

-- --- claims and refreshes

-- Another election of this runtime on the same name: a session cannot tell its own terms apart in the store.
local function held_here(session, slot)
  local now, term, undead = session.env.now(), slot.term, slot.undead
  if term then return { node = session.node, epoch = term.epoch, wait = math.max(0, ends_of(session, term) - now) } end
  if undead and undead.ends > now then return { node = session.node, wait = undead.ends - now } end
end

--- Claims an election, as the contract of an oracle has it, but for `wait`, the seconds for which the claim is in vain.
-- @tparam Session session
-- @tparam table member
-- @return true, delay, grant; false, `{ node =, epoch =, amnesia =, back =, unsure =, wait = }`; or nil, message, code
function terms.claim(session, member)
  local env, slot = session.env, member.slot
  local began = env.now()
  session:use(member.store)
  env.atomic(end_own, session, member)
  local other = held_here(session, slot)
  if other then return false, other end
  local fine, problem, code = duties.settle(session, slot, true)
  if not fine then return nil, problem, code end
  return claims.contend(session, member, began)
end

-- What the oracle says of a term that is over, or of a wish that it ends.
local function told(session, member)
  local term, why = member.slot.term, member.lost
  if not term or term.member ~= member then
    if why then member.lost = nil end
    return false, why or { error = "the lease in the store is not this term's" }
  end
  if term.ends <= session.env.now() and ends_of(session, term) <= session.env.now() then
    overdue(session, member.slot)
    return told(session, member)
  end
  if term.evicted and not term.told then
    term.told = true
    return false, { evicted = true }
  end
end

-- What a refresh answers without a question: thousands of them come together.
local function renewed_before(session, member, began)
  local verdict, why = told(session, member)
  if verdict == false then return false, why end
  if session:is_newer(member.slot.term.number) then return claims.grant(session, member.slot, began) end
end

--- Keeps a term: by a renewal of the session that is newer than the one by which it was granted.
-- @tparam Session session
-- @tparam table member
-- @return as of an oracle's `refresh`
function terms.refresh(session, member)
  local env = session.env
  local began = env.now()
  session:use(member.store)
  local verdict, second, third = env.atomic(renewed_before, session, member, began)
  if verdict ~= nil then return verdict, second, third end
  local fine, problem, code = session:renew()
  verdict, second = env.atomic(told, session, member)
  if verdict == false then return false, second end
  if not fine then return nil, problem, code end
  if not session:is_live() then return nil, "the session is not renewed", "store" end
  return env.atomic(claims.grant, session, member.slot, began)
end

--- Gives an election back: its term, or a claim that may yet be carried out.
-- @tparam Session session
-- @tparam table member
function terms.release(session, member)
  session:use(member.store)
  session.env.atomic(end_own, session, member)
  ending.gather(session)
  duties.settle(session, member.slot, true)
  ending.forget(session)
end

--- Looks at a term at once: its record has changed.
-- @tparam Session session
-- @tparam table member
-- @return false and why, where it is over or is to end; else nothing
function terms.look(session, member)
  session:use(member.store)
  local verdict, why = session.env.atomic(told, session, member)
  if verdict == false then return false, why end
  local fine, problem, code = look_at(session, { member.slot.name })
  verdict, why = session.env.atomic(told, session, member)
  if verdict == false then return false, why end
  if not fine then return nil, problem, code end
end

return terms
