--- The rule by which candidates hold elections in a register. It is pure: it knows no clock, no store and no other candidate, but
-- what it is told of them. docs/safety.md lists its paragraphs, S1 to S17, with their tests.
--
-- A runtime keeps one record of its own in the register, its session, and renews it. An election's record names the session that
-- holds it. A session is over for a candidate that has seen one version of its record stand for long enough by its own clock.
--
-- `me`: `session` (its name), `at` (the number of its life), `node`, `time` (of day, in ms), `longest` (the longest TTL that it
-- knows of), `floor` (seconds that a TTL may last which it does not know: amnesia_wait), `trusts` (a record that is missing at
-- first was never there), `remembers` (the store loses nothing, ever), `marks` (it keeps a
-- mark of each record that is deleted, with a version and no text, and has another memory when it has lost all), `whole` (all its
-- records have one memory, sessions and elections alike), `settled` (the memory in which what is missing is new, where that is
-- known), `least` (no lower epoch is granted, or nil), `job` (of crown.register.runs, or nil),
-- `rank` and what else crown.register.ranks has to know.
-- `seen`: `record` or false; `memory` that answered; `stood`, seconds for which it stands by our own clock; `back`, whether it
-- is older than what was seen before; `epoch` and `serial`, the highest that were seen; `holder`, the record of the session that
-- holds it, or false; `quiet`, seconds for which that stands; `free`, seconds for which the candidate knows that
-- it may be claimed, or nil; `lives`, whether that was renewed before our eyes, or less than its
-- TTL ago by the store's clock; `time`: of day by that clock, in ms, or nil; `peer`: `{ node =, epoch =, wait = }` where one that
-- writes no records has written over it.
--
-- Such a peer lives by the store's clock, as Elixir's Crown does in Postgres. So nobody claims for the `wait` seconds until its
-- lease is over by that. No other time of a store permits anything.
-- @internal crown.register.rule

local orders = require "crown.register.orders"
local ranks = require "crown.register.ranks"
local record = require "crown.register.record"
local runs = require "crown.register.runs"

local rule = {}

local LEAST_DOUBT = 1 -- seconds: epochs begin at the second of the day where they were lost, and must not come again

--- What clocks may drift apart within a lease, and what a process may be late.
-- @number ttl in seconds
-- @treturn number seconds
function rule.margin(ttl)
  return ttl / 100 + math.min(0.25, ttl / 8)
end

--- For how long a candidate has to see one version stand until a lease is over.
-- @number ttl in seconds
-- @treturn number seconds
function rule.standing_time(ttl)
  return ttl + rule.margin(ttl)
end

--- Seconds until a term ends by which no look has shown that the election is still ours (S6).
-- @number ttl
-- @treturn number from the sending of the last look that did
function rule.patrol_time(ttl)
  return 2 * ttl - rule.margin(ttl)
end

local function emptied(base)
  local one = record.after(base)
  one.by, one.at, one.node, one.doubt, one.directive = nil, nil, nil, nil, nil
  return one
end

-- S8: a record that is missing, older than what was seen, or of another memory is overwritten by a doubt. Nobody may claim that
-- before it has stood for twice the longest TTL: the holder's session lives on while its election's record is gone, until S6
-- ends the term. Epochs go on at the time of day: the last ones may be lost.
local function doubt_time(me)
  return 2 * math.max(me.longest, me.floor, LEAST_DOUBT / 2)
end

-- The store's where that tells it, since hosts' clocks are apart, and an epoch must not come again.
local function time_of(me, seen) return seen.time or me.time end

-- A doubt over nothing, by somebody who had seen nothing there. No other write has the serial 0, so a reader knows such a doubt
-- from all that may have been lost: nobody has led here since it was written, nor before where the store was never emptied. A
-- candidate that trusts an empty store takes it for nothing.
local NEVER_USED = 0

local function is_never_used(seen)
  if not seen.record then return seen.serial < 0 and not seen.version and not seen.peer end
  return seen.record.serial == NEVER_USED and not seen.back and seen.record.memory == seen.memory
end

--- The doubt that is written over what was seen.
-- @tparam table me
-- @tparam table seen
-- @treturn table record
function rule.doubt(me, seen)
  local one = emptied(seen.record)
  one.serial = is_never_used(seen) and NEVER_USED or math.max(one.serial, seen.serial + 1)
  one.epoch = math.max(seen.epoch, seen.record and seen.record.epoch or 0, time_of(me, seen))
  one.memory, one.doubt = seen.memory, doubt_time(me)
  return one
end

-- S1: the write that grants raises the epoch, over the version that was seen and in the memory that answered.
local function held(me, seen, epoch)
  local one = emptied(seen.record)
  one.epoch, one.memory, one.by, one.at, one.node = math.max(epoch, me.least or 0), seen.memory, me.session, me.at, me.node
  one.orders = ranks.claimed(orders.without(one.orders), me)
  one.runs = runs.claimed(one.runs, me.job, me.node, me.time / 1000)
  return one
end

-- S2: a session is over when one version of its record has stood, in one memory, for its TTL and the margin. A life that came
-- after the election's is proof that the election's is over; of one that came before it nothing is known before both have stood.
-- @return the seconds that are left, at most 0 when it is over
local function left_of(seen)
  local at, holder = seen.record.at, seen.holder
  if at < holder.at or holder.over and at <= holder.over then return 0 end
  local stood = at == holder.at and seen.quiet or math.min(seen.quiet, seen.stood)
  return rule.standing_time(holder.ttl) - stood
end

local function denied(record_seen, wait, is_doubted, stands, is_unsure)
  return "denied", { node = record_seen.node, epoch = record_seen.epoch, wait = wait, doubted = is_doubted, stands = stands,
    unsure = is_unsure }
end

local function claim_missing(me, seen)
  if me.remembers then return "write", held(me, seen, seen.epoch + 1) end
  if me.marks then
    local is_known = seen.serial >= 0 or seen.version and not seen.peer
    if is_known then return "doubt", rule.doubt(me, seen) end
    if me.settled ~= seen.memory then return "place" end
    return "write", held(me, seen, math.max(seen.epoch + 1, time_of(me, seen)))
  end
  if me.trusts and seen.serial < 0 then return "write", held(me, seen, math.max(seen.epoch + 1, time_of(me, seen))) end
  return "doubt", rule.doubt(me, seen)
end

-- A record of another memory that a session holds is left to that for one TTL (S9), then doubted. The doubt must be written, not
-- only waited for: its record is what newcomers see.
--
-- Where all of a store has one memory, no term of an earlier one lasts for longer than that TTL unless it has been written again:
-- see crown.register.limits. So there that is enough for whatever may have been lost, and each counts for itself.
local function claim_foreign(me, seen)
  local found = seen.record
  local left = rule.standing_time(math.max(me.longest, me.floor)) - seen.stood
  local is_held = found.by and found.by ~= me.session
  if left > 0 and (is_held or me.whole) then return denied(found, left, not is_held, false, is_held) end
  if me.whole then return "write", held(me, seen, math.max(found.epoch + 1, time_of(me, seen))) end
  return "doubt", rule.doubt(me, seen)
end

local function claim_doubted(me, seen)
  local found = seen.record
  local is_trusted = me.trusts and is_never_used(seen)
  if not is_trusted and found.doubt < doubt_time(me) then return "doubt", rule.doubt(me, seen) end
  local left = is_trusted and 0 or rule.standing_time(found.doubt) - seen.stood
  if left > 0 then return denied(found, left, true) end
  return "write", held(me, seen, math.max(found.epoch + 1, time_of(me, seen)))
end

local function claim_allowed(me, seen)
  local found = seen.record
  if seen.peer and seen.peer.wait > 0 then return denied(seen.peer, seen.peer.wait) end
  if not found then return claim_missing(me, seen) end
  if seen.back then return "doubt", rule.doubt(me, seen) end
  if found.memory ~= seen.memory then return claim_foreign(me, seen) end
  if found.doubt then return claim_doubted(me, seen) end
  if found.by and found.by ~= me.session then
    if seen.holder == nil then return "look" end
    if not seen.holder then return "doubt", rule.doubt(me, seen) end
    local left = left_of(seen)
    if left > 0 then return denied(found, left, false, true, not seen.lives) end
  end
  return "write", held(me, seen, found.epoch + 1)
end

-- S17: who waits and has a higher level comes first, for a bounded time; not where an operator has said who does. What is our own
-- session's nobody else may claim.
local function wait_for_higher(me, seen)
  local found = seen.record
  if found.by == me.session or found.orders and found.orders.to == me.node then return nil end
  local open = found.by and 0 or orders.open_for(found.orders, me.node, seen.stood, me.time / 1000)
  return ranks.wait(found.orders, me, found.by and found.node, math.max(seen.free or 0, open))
end

--- What a candidate may do.
-- @tparam table me see above
-- @tparam table seen see above
-- @treturn string "write" or "doubt": the record is to be written over the one that was seen; "denied"; "look": the session that
-- holds it has not been looked at; "place": nobody knows yet whether what is missing is new
-- @treturn table the record, or who holds it: `{ node =, epoch =, wait = seconds, doubted = boolean, stands = boolean, unsure =
-- boolean, ordered = }`, `stands` where that is a session which is not over, `unsure` where nobody knows yet whether the holder
-- lives, `ordered`, in words, what an operator orders against it (S15), or what has become of a run (S16): `ran` is the mark of
-- that, `defers` whether it only leaves the others the first turn, `held` whether nobody may begin it yet; `is_free` where it is
-- only left to those with a higher level (S17)
function rule.claim(me, seen)
  local found, time = seen.record, me.time / 1000
  if found and found.runs and me.job then
    local ran, wait, why = runs.ran(found.runs, me.job, time)
    if ran then return "denied", { epoch = found.epoch, wait = wait, ordered = why, ran = ran } end
  end
  local what, one = claim_allowed(me, seen)
  if what ~= "write" or not found then return what, one end
  local wait = orders.wait(found.orders, me.node, seen.stood, time)
  if wait then return "denied", { epoch = found.epoch, wait = wait, ordered = orders.words(found.orders, time) } end
  local left, why, defers = runs.wait(found.runs, me.job, me.node, seen.stood, time, me.now)
  if left then return "denied", { epoch = found.epoch, wait = left, ordered = why, defers = defers, held = not defers } end
  left, why = wait_for_higher(me, seen)
  if left then return "denied", { epoch = found.epoch, wait = left, ordered = why, is_free = true } end
  return what, one
end

local function placed(me, seen, doubt)
  local one = record.after(seen.record)
  local is_new = is_never_used(seen)
  one.serial = is_new and doubt and NEVER_USED or math.max(one.serial, seen.serial + 1)
  one.memory, one.node, one.doubt = seen.memory, me.node, doubt
  one.longest = math.max(me.longest, one.longest or 0)
  one.lost = doubt and not is_new or nil
  return one
end

--- S13: what is missing is new in a memory for which that was written, by somebody who saw a doubt of the whole place stand there
-- as long as one of an election; or who trusts a place in which nobody has been before.
-- @tparam table me see above
-- @tparam table seen as above, of the store's record
-- @treturn string "fine"; "write": the record is to be written over the one that was seen; "wait"
-- @return that record, or seconds
function rule.place(me, seen)
  local found = seen.record
  if me.trusts and is_never_used(seen) then return "write", placed(me, seen) end
  if not found or seen.back or found.memory ~= seen.memory then return "write", placed(me, seen, doubt_time(me)) end
  if not found.doubt then
    if found.longest < me.longest then return "write", placed(me, seen) end
    return "fine"
  end
  if found.doubt < doubt_time(me) then return "write", placed(me, seen, doubt_time(me)) end
  local left = rule.standing_time(found.doubt) - seen.stood
  if left > 0 then return "wait", left end
  return "write", placed(me, seen)
end

--- Whether an election's record says that a term of ours stands: by session, life and epoch, never by the version, which
-- directives change.
-- @tparam table me
-- @tparam table|boolean found
-- @number at the term's life
-- @number epoch
-- @treturn boolean
function rule.is_ours(me, found, at, epoch)
  return found and found.by == me.session and found.at == at and found.epoch == epoch
end

--- S4, S5: nobody's. The epoch stays; where a claim may yet be carried out it is the claim's own, which that uses up.
-- @tparam table|boolean base the record that it is written over
-- @number epoch
-- @string memory
-- @treturn table record
function rule.free(base, epoch, memory)
  local one = emptied(base)
  one.epoch, one.memory = epoch, memory
  return one
end

--- S9: the same term, in the memory of a store that was restarted.
-- @tparam table base
-- @string memory
-- @treturn table record
function rule.vouch(base, memory)
  local one = record.after(base)
  one.memory = memory
  return one
end

--- S10: an operator's wish, which changes nothing else.
-- @tparam table base
-- @string directive
-- @treturn table record
function rule.direct(base, directive)
  local one = record.after(base)
  one.directive = directive
  return one
end

--- S15: what operators order of all candidates, which changes nothing else.
-- @tparam table base
-- @tparam[opt] table wanted see crown.register.orders; nil: nothing any more
-- @treturn table record
function rule.order(base, wanted)
  local one = record.after(base)
  one.orders = wanted
  return one
end

--- S17: what a candidate that waits writes beside a leader: its own level, and a hand-over to itself where that is due.
-- @tparam table me see above
-- @tparam table seen see above
-- @treturn table record, or nil: nothing is to be written
-- @treturn boolean whether it asks the leader to go
-- @treturn number seconds until it will, or nil
function rule.ask(me, seen)
  local found = seen.record
  local is_led = found and found.by and found.by ~= me.session and not found.doubt
  if not is_led or seen.back or seen.peer or found.memory ~= seen.memory then return nil end
  local wanted, asks, left = ranks.asked(found.orders, me, found.node)
  return wanted and rule.order(found, next(wanted) and wanted or nil), asks, left
end

--- S16: what a candidate writes that finds its run over: its own level, where a lower one stands.
-- @tparam table me see above
-- @tparam table seen see above
-- @treturn table record, or nil: nothing is to be written
function rule.rise(me, seen)
  local found = seen.record
  if seen.back or seen.peer or found.doubt or found.memory ~= seen.memory then return nil end
  local marks = runs.risen(found.runs, me.job, me.node)
  return marks and rule.mark(found, marks)
end

--- S16: the marks of runs, and nothing else.
-- @tparam table base
-- @tparam[opt] table marks see crown.register.runs; nil: none any more
-- @treturn table record
function rule.mark(base, marks)
  local one = record.after(base)
  one.runs = marks
  return one
end

--- S5: a session's record, when every tree of this life and of those before has gone.
-- @tparam table base
-- @treturn table record
function rule.over(base)
  local one = record.after(base)
  one.over = one.at
  return one
end

--- S3: a session's record, in this life.
-- @tparam table me `at`, `ttl`, `node`
-- @tparam table|boolean base
-- @string memory
-- @treturn table record
function rule.renewal(me, base, memory)
  local one = record.after(base)
  one.memory, one.at, one.ttl, one.node, one.over = memory, me.at, me.ttl, me.node, nil
  return one
end

return rule
