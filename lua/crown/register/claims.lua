--- Claims: what a candidate writes to lead an election, and what it answers.
-- @internal crown.register.claims

local cleaning = require "crown.register.cleaning"
local duties = require "crown.register.duties"
local limits = require "crown.register.limits"
local obey = require "crown.register.obey"
local packed = require "crown.text.packed"
local place = require "crown.register.place"
local ranks = require "crown.register.ranks"
local record = require "crown.register.record"
local rule = require "crown.register.rule"

local claims = {}

local term_of = packed.kind { "member", "epoch", "patrol", "text", "number", "ends", "memory", "limit" }

-- In one claim. Of many that begin together on a new store each may settle the place, lose the race for the record, and learn
-- who holds it, with a look each; and the holder may change meanwhile.
local LOOKS_MOST = 8
local SAY_AGAIN = 0.5 -- seconds until a leader tells its level again where it may not have been written
local CHANGED = "the record changed while it was looked at"
local GIVEN_UP = "the claim was given up"

--- What a refresh or a claim that was granted answers.
-- @tparam Session session
-- @tparam table slot with a term
-- @number began when it was asked for
-- @return true, delay, grant
function claims.grant(session, slot, began)
  local term = slot.term
  local past = math.max(0, began - session.sent)
  local anchor = began - past
  local ends = math.min(limits.unseen(session, term), limits.of(session, term))
  local lasts = math.min(session.ttl, ends - anchor)
  term.number, term.ends = session.number, anchor + lasts
  session.first_end = math.min(session.first_end, term.ends)
  local left = lasts - past
  past = lasts - left -- so that both make the whole again, whatever was rounded
  local delay = math.min(session:next_refresh(began), math.max(0, left / 2)) -- S6 may have made it short
  return true, delay, { ttl = left, past = past > 0 and past or nil, epoch = term.epoch,
    refresher = session.renewals }
end

-- Any server's mark is true, so of several each may say it.
local function note_runs(job, seen)
  if not job then return end
  job.ran, job.defers, job.held = seen.ran or job.ran, seen.defers or job.defers, seen.held or job.held
end

local function denial(session, slot, seen, sent, found)
  if seen.doubted and not found.doubt then slot.back = true end
  return { node = seen.node, epoch = seen.epoch, amnesia = seen.doubted, back = slot.back, stands = seen.stands,
    asks_in = seen.asks_in, unsure = seen.is_free or seen.unsure, ordered = seen.ordered,
    wait = math.max(0, seen.wait - (session.env.now() - sent)) }
end

-- @string text that the claim wrote: where another one stands there by now the next look tells of what that says
local function win(session, member, one, duty, answer, text)
  local slot = member.slot
  local term = term_of()
  term.member, term.epoch, term.patrol, term.text, term.memory = member, one.epoch, duty.asked, text, answer.memory
  term.number, term.ends, term.limit = 0, math.huge, duty.limit
  slot.term = term
  limits.note(session, term)
  session.terms[slot.name], session.led = slot, session.led + 1
  session.most = math.max(session.most, session.led)
  slot.orders, member.waits, member.level_told = nil, nil, nil -- what was ordered of the term before is over
  cleaning.note(session, slot.holder) -- same (order): nobody else runs before all of this is noted
  member:stand(true) -- same (order): as above
  session.seen:learn(slot, one)
  session.seen:stands(slot, answer)
end

-- Whether what was claimed may be led: the life in which it was claimed goes on.
local function may_win(session, one)
  return one.at == session.at and session:is_live()
end

-- @return "won", "lost", or nil, message, code
local function took(session, member, seen, one, duty, text, version)
  if duty.settling then return nil, GIVEN_UP, "store" end
  if version == nil then return nil, "nobody knows whether the claim was written" end
  if version == false then
    duty.failed = true
    return "look"
  end
  if not may_win(session, one) then
    duty.over, duty.base = version, one
    return nil, "the session ended during the claim", "store"
  end
  duties.drop(session, member.slot, duty)
  win(session, member, one, duty, { version = version, text = text, memory = seen.memory }, text)
  return "won"
end

-- S1: false proves nothing, since a request may have been carried out twice. What has our session, life and epoch is ours.
local function took_twice(session, member, one, duty, text, answer)
  local slot = member.slot
  if duty.settling then return nil, GIVEN_UP, "store" end
  local now_seen, problem = session.seen:note(slot, answer, session.env.now())
  if not now_seen then return nil, problem, "store" end
  local found = now_seen.record
  if rule.is_ours(session:me(), found, one.at, one.epoch) then
    if not may_win(session, one) or found.memory ~= answer.memory then
      return nil, "the session ended during the claim", "store"
    end
    duties.drop(session, slot, duty)
    win(session, member, one, duty, answer, text)
    return "won"
  end
  duties.drop(session, slot, duty)
  return "lost"
end

local function write_claim(session, member, seen, one, duty)
  local env, name = session.env, member.slot.name
  local text = record.text(one, env.nonce())
  local results, problem, code = member.store:swap { { name = name, version = seen.version, text = text, memory = seen.memory,
    quiet = member.quiet } }
  if not results then return nil, problem, code end
  local what, why, kind = env.atomic(took, session, member, seen, one, duty, text, results[1])
  if what ~= "look" then return what, why, kind end
  local answers
  answers, problem, code = member.store:look { name }
  if not answers then return nil, problem, code end
  return env.atomic(took_twice, session, member, one, duty, text, answers[name])
end

-- S4: what the claim may leave behind is noted before it is sent, since the task that claims may be cancelled at any time.
-- @return as of `claim`, or "lost": another one was faster
local function take(session, member, seen, one, began)
  local env, slot = session.env, member.slot
  if not may_win(session, one) then return nil, "the session ended before the claim", "store" end
  local duty = { over = seen.version, base = seen.record, memory = seen.memory, at = one.at, epoch = one.epoch,
    asked = env.now(), limit = limits.now(session), quiet = member.quiet }
  duties.add(session, slot, duty)
  local won, problem, code = write_claim(session, member, seen, one, duty)
  duty.asked = nil
  if won ~= "won" then return won, problem, code end
  return env.atomic(claims.grant, session, slot, began)
end

-- S17: since when nobody holds it, or the session that does is over. What others write beside that changes nothing. A record is
-- seen when it is answered, which may be long after the question was sent.
local function note_free(slot, seen, sent)
  local found = seen.record
  local state = ("%.0f %s"):format(found.epoch, tostring(found.by))
  if slot.free ~= state then slot.free, slot.free_since = state, sent - math.min(0, seen.stood) end
  return sent - slot.free_since
end

local function judge(session, member, seen, sent)
  local me = session:me(member.trusts, member)
  local what, one = rule.claim(me, seen)
  if what ~= "denied" or not one.is_free then return what, one end
  seen.free = note_free(member.slot, seen, sent)
  return rule.claim(me, seen)
end

-- What is known already of the session that holds an election is enough to deny: thousands that one holds need no look each. All
-- else needs a look.
local function known_to_stand(session, member, seen, holder, sent)
  if not holder.found then return "look" end
  seen.holder, seen.quiet, seen.lives = holder.found, sent - holder.since, holder.renewed
  local what, one = judge(session, member, seen, sent)
  if what == "denied" then return what, one, seen end
  return "look"
end

-- What the rule says to what was seen.
local function decide(session, member, answers, sent)
  local slot = member.slot
  local seen, problem = session.seen:note(slot, answers[slot.name], sent)
  if not seen then return nil, problem end
  obey.note(session, member, seen.record)
  local by = seen.record and seen.record.by
  if not by or by == session.name then
    slot.holder = nil
  elseif slot.holder and slot.holder.name == by then
    local holder
    holder, problem = session.seen:note(slot.holder, answers[by], sent)
    if not holder then return nil, problem end
    local age, found = answers[by].age, holder.record
    seen.holder, seen.quiet = found, holder.stood
    seen.lives = holder.renewed or found and age and age >= 0 and age < found.ttl
  else
    slot.holder = session.seen:of(by)
    return known_to_stand(session, member, seen, slot.holder, sent)
  end
  local what, one = judge(session, member, seen, sent)
  return what, one, seen
end

-- S17: what it writes beside a leader. @return the record; whether it asks that to go; the seconds until it will
local function wish(session, member, seen)
  local now, me, rank = session.env.now(), session:me(member.trusts, member), member.rank
  member.waits = member.waits or now
  me.waited = now - math.max(member.waits, rank and rank.since or member.waits)
  me.asked_ago, me.told_ago = now - (member.asked or -math.huge), ranks.told_ago(member.level_told, rank, now)
  me.within = ranks.within(session.ttl, member.retry)
  return rule.ask(me, seen)
end

-- It stands from now on, and not from the next look.
local function note_written(session, slot, one, answer)
  session.seen:learn(slot, one)
  session.seen:stands(slot, answer)
end

-- Writes what changes nothing of who leads. @return the version; false: another one was faster; nil: nobody knows
local function put_beside(session, member, seen, one)
  local text = record.text(one, session.env.nonce())
  local results = member.store:swap { { name = member.slot.name, version = seen.version, memory = seen.memory, text = text } }
  local version = results and results[1]
  if version then
    session.env.atomic(note_written, session, member.slot, one, { version = version, text = text, memory = seen.memory })
  end
  return version
end

-- S16: has what was lost to a lower one left to it the next time. @return false: another one was faster; or nil
local function rise(session, member, seen)
  local one = session.env.atomic(rule.rise, session:me(member.trusts, member), seen)
  if one and put_beside(session, member, seen, one) == false then return false end
end

-- @return the seconds until it asks the leader to go, or nil; false: another one was faster
local function stand_by(session, member, seen)
  local found = seen.record
  if not member.rank and not (found.orders and found.orders.ranks) then return nil end
  local one, asks, left = session.env.atomic(wish, session, member, seen)
  if not one then return left end
  local before, told_before, now = member.asked, member.level_told, session.env.now()
  member.level_told = ranks.telling(member.rank, now) -- also where there is no answer
  if asks then member.asked = now end
  local version = put_beside(session, member, seen, one)
  if version == false then member.asked, member.level_told = before, told_before end
  if not version then return version end
  return left
end

-- @return as of `claim`, or "lost": another one was faster
local function doubt(session, member, seen, one)
  local slot, text = member.slot, record.text(one, session.env.nonce())
  local results, problem, code = member.store:swap { { name = slot.name, version = seen.version, memory = seen.memory,
    text = text } }
  if not results then return nil, problem, code end
  if not results[1] then return "lost" end
  session.env.atomic(note_written, session, slot, one, { version = results[1], text = text, memory = seen.memory })
  slot.back = slot.back or seen.record and not seen.record.doubt
  return false, { amnesia = true, wait = rule.standing_time(one.doubt), back = slot.back }
end

-- Who only follows needs no session: it is renewed for a claim that the rule allows.
-- @return true; or what the claim answers
local function ready(session)
  session.wait = nil
  local fine, problem, code = session:renew()
  if fine then return true end
  if session.wait then return false, { wait = session.wait } end
  return nil, problem, code
end

-- Judges once more what was seen, by the life that there is now; unless something else has been seen since.
local function decide_again(session, member, answers, sent)
  local slot = member.slot
  local answer = answers[slot.name]
  if slot.version ~= answer.version or slot.text ~= answer.text or slot.memory ~= answer.memory then return "look" end
  return decide(session, member, answers, sent)
end

-- What a store brought with the news of a change is like the answer to a look, but for two things: it may be old, and it says not
-- how long it stands. So it is not noted, and nothing is done by it but a claim over it, which comes about only if it stands.
-- @return the record to write, and what it is written over; or nil
local function by_news(session, member, news)
  local slot = member.slot
  slot.news = nil
  local found = record.read(news, slot.name)
  if not found then return nil end
  local seen = { record = found, memory = found.memory, version = news.version, stood = 0, serial = slot.serial,
    epoch = slot.epoch, back = found.serial < slot.serial or found.epoch < slot.epoch }
  local what, one = rule.claim(session:me(member.trusts, member), seen)
  if what == "write" then return one, seen end
end

-- @return as of `claim`, or "lost": it takes a look
local function contend_by(session, member, news, began)
  local env = session.env
  local one, seen = env.atomic(by_news, session, member, news)
  if one and session:is_short() then
    local fine, why, kind = ready(session)
    if not fine then return fine, why, kind end
    one, seen = env.atomic(by_news, session, member, news)
  end
  if not one then return "lost" end
  return take(session, member, seen, one, began)
end

-- @return whether nothing is left to tell; false: another one was faster, or nobody knows
local function say_level(session, member, term)
  local name = member.slot.name
  local answers = member.store:look { name }
  if not answers then return false end
  local found = record.read(answers[name], name)
  if not (found and rule.is_ours(session:me(), found, session.at, term.epoch)) then return true end
  local level = ranks.level(member.rank)
  local wanted = ranks.with(found.orders, session.node, level)
  if wanted == found.orders then return true end
  local text = record.text(rule.order(found, wanted), session.env.nonce())
  local results = member.store:swap { { name = name, version = answers[name].version, memory = answers[name].memory,
    text = text } }
  return results ~= nil and results[1] and level == ranks.level(member.rank)
end

--- S17: tells the level of a leader, which has changed; again, until it is told or the term has ended.
-- @tparam Session session
-- @tparam table member
function claims.say_rank(session, member)
  local slot, env = member.slot, session.env
  local term = slot.term
  if not term or member.says_level then return end
  member.says_level = true
  env.detach(function()
    while slot.term == term and not say_level(session, member, term) do env.sleep(SAY_AGAIN) end
    member.says_level = nil
  end)
end

--- Looks, and claims where the rule allows it; where the store has told what stands now, it claims at once.
-- @tparam Session session
-- @tparam table member
-- @number began when it was asked for
-- @return as of `claim` in crown.register.terms
function claims.contend(session, member, began)
  local env, slot = session.env, member.slot
  if slot.news then
    local won, second, third = contend_by(session, member, slot.news, began)
    if won ~= "lost" then return won, second, third end
  end
  for _ = 1, LOOKS_MOST do
    local names, sent = { slot.name, slot.holder and slot.holder.name }, env.now()
    local answers, problem, code = member.store:look(names)
    if not answers then return nil, problem, code end
    local what, one, seen = env.atomic(decide, session, member, answers, sent)
    if what == "write" and session:is_short() then
      local fine, why, kind = ready(session)
      if not fine then return fine, why, kind end
      what, one, seen = env.atomic(decide_again, session, member, answers, sent)
    end
    if not what then return nil, one, "store" end
    if what == "denied" then
      if seen.peer and member.store.marks and session.settled ~= seen.memory then place.settle(session, member.trusts) end
      local asks_in
      if one.stands then asks_in = stand_by(session, member, seen) elseif one.ran then asks_in = rise(session, member, seen) end
      if asks_in ~= false then
        note_runs(member.job, one)
        one.asks_in = asks_in
        return false, denial(session, slot, one, sent, seen.record)
      end
    end
    if what == "doubt" or what == "write" then
      local won, second, third
      if what == "doubt" then won, second, third = doubt(session, member, seen, one)
      else won, second, third = take(session, member, seen, one, began) end
      if won ~= "lost" then return won, second, third end
    end
    if what == "place" then
      local settled, wait, kind = place.settle(session, member.trusts)
      if settled == nil then return nil, wait, kind end
      if not settled then return false, { amnesia = true, wait = wait, back = kind } end
    end
  end
  return nil, CHANGED, "store"
end

return claims
