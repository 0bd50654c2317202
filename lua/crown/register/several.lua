--- One election on several registers: the rule holds on each of them, and a candidate leads while most of them say so.
--
-- A member has `parts`, one for each register: a member as crown.register.terms has it, and its `session`.
-- A candidate leads where most registers have granted it an epoch that is no lower than the term's. The term's is the highest
-- that they granted. Any two majorities share a register, so it is higher than each earlier term's.
-- @internal crown.register.several

local terms = require "crown.register.terms"

local several = {}

local GRACE = 0.25 -- seconds that a register has for its answer when most of them have answered
local SILENT_PAUSE = 1 -- seconds until the next claim, where some give no answer and others are not to be believed yet
local DOUBTED_AND_SILENT = "not to be led yet: of its servers %d of %d may have lost records, and %d gave no answer"
local LEVELS_MOST = 3 -- claims that bring what was granted to one epoch
local SPLIT_PAUSE, SPLIT_MORE = 0.05, 0.25 -- seconds until the next claim, where candidates have a part of the registers each

-- --- asking all

-- Runs fn for a part when the part's last task has ended: the same candidate never has two questions at one register.
local function in_turn(env, part, fn)
  local before, mine = part.last, env.promise()
  part.last, part.busy = mine, (part.busy or 0) + 1
  env.detach(function()
    if before then before:wait(math.huge) end
    local fine, problem = pcall(fn)
    part.busy = part.busy - 1
    mine:resolve(fine, problem)
  end)
end

local function most_of(parts) return math.floor(#parts / 2) + 1 end

local function majority(member) return most_of(member.parts) end

-- Asks parts at once. @return by part what came, as far as it was there when `enough` said so, or a moment after most answered
local function ask(env, parts, what, enough)
  local answers, count, heard, done, is_done = {}, 0, 0, env.promise(), false
  local function finish()
    if is_done then return end
    is_done = true
    done:resolve()
  end
  for _, part in ipairs(parts) do
    in_turn(env, part, function()
      local fine, verdict, second, third = pcall(what, part)
      if fine then answers[part] = { verdict, second, third } else answers[part] = { nil, tostring(verdict) } end
      count, heard = count + 1, heard + (answers[part][1] ~= nil and 1 or 0)
      if count == #parts or enough(answers) then return finish() end
      if heard < most_of(parts) or is_done then return end
      env.detach(function()
        env.sleep(GRACE)
        finish()
      end)
    end)
  end
  if #parts > 0 then done:wait(math.huge) end
  return answers
end

-- --- what the parts hold

local function term_of(part)
  local term = part.slot.term
  return term and term.member == part and term or nil
end

-- The parts that count for a term of this epoch, those that end last first.
local function holding(env, member, epoch)
  local held, now = {}, env.now()
  for _, part in ipairs(member.parts) do
    local term = term_of(part)
    if term and term.epoch >= epoch and term.ends > now then held[#held + 1] = part end
  end
  table.sort(held, function(a, b) return term_of(a).ends > term_of(b).ends end)
  return held
end

local function highest(member)
  local epoch = 0
  for _, part in ipairs(member.parts) do epoch = math.max(epoch, part.slot.epoch) end
  return epoch
end

-- A term lasts until the first instant at which less than a majority holds it.
local function grant(env, member, epoch, began)
  local last = holding(env, member, epoch)[majority(member)]
  if not last then return nil, "most servers do not hold the lease", "store" end
  local past = math.max(0, began - last.session.sent)
  local left = math.min(last.session.ttl - past, term_of(last).ends - began) -- a part that was just won has no end yet
  return true, last.session:next_refresh(began), { ttl = left, past = past > 0 and past or nil, epoch = epoch }
end

-- --- claims

local function granted_epoch(member)
  local epoch = 0
  for _, part in ipairs(member.parts) do
    local term = term_of(part)
    if term then epoch = math.max(epoch, term.epoch) end
  end
  return epoch
end

-- The epoch of the term: the highest that was granted, once most of them hold it.
local function won_epoch(env, member)
  local epoch = granted_epoch(member)
  return #holding(env, member, epoch) >= majority(member) and epoch or nil
end

-- A claim that wins no majority ends nobody's wait: if others heard of it, and of its end, all would claim without end where one
-- register is free.
local function hush(member, is_quiet)
  for _, part in ipairs(member.parts) do part.quiet = is_quiet end
end

-- A claim of a part. What is granted after its round is over is given back.
local function claim_of(member, number, least)
  return function(part)
    if member.number ~= number then return nil, "the claim was given up" end
    part.least = least
    local verdict, second, third = terms.claim(part.session, part)
    if verdict and member.number ~= number then terms.release(part.session, part) end
    return verdict, second, third
  end
end

local function lower_parts(member, epoch)
  local lower = {}
  for _, part in ipairs(member.parts) do
    local term = term_of(part)
    if term and term.epoch < epoch then lower[#lower + 1] = part end
  end
  return lower
end

local function release_part(part)
  terms.release(part.session, part)
  return true
end

-- Who has most of the registers, or how long until most of them may be claimed.
local function denial(env, member, answers)
  local waits, doubted, granted, nodes, holder, back, stands, ordered, asks_in = {}, {}, 0, {}, nil, false, 0, nil, nil
  local is_left -- to a higher preference, for a moment
  for _, part in ipairs(member.parts) do
    local answer = answers[part] or {}
    local second = answer[1] == false and answer[2] or nil
    if answer[1] then granted = granted + 1 end
    if second and second.wait then
      waits[#waits + 1] = second.wait
      ordered = ordered or second.ordered
      is_left = is_left or second.unsure and not second.node
      if second.asks_in then asks_in = math.max(asks_in or 0, second.asks_in) end
      if second.stands then stands = stands + 1 end
      if second.amnesia then doubted[#doubted + 1], back = second.wait, back or second.back end
      local count = second.node and (nodes[second.node] or 0) + 1
      if count then nodes[second.node] = count end
      if count and count >= majority(member) then holder = second end
    end
  end
  table.sort(waits)
  table.sort(doubted)
  local needed, free = majority(member) - granted, #member.parts - #waits
  local is_doubted = not holder and doubted[1] ~= nil and #doubted >= needed
  local wait = free < majority(member) and waits[majority(member) - free]
  if is_doubted and needed > 0 then
    local silent = #member.parts - granted - #waits
    if silent >= needed then -- with those that may be back at any time there are enough
      return false, { wait = SILENT_PAUSE * (1 - env.random() / 4), back = back,
        ordered = DOUBTED_AND_SILENT:format(#doubted, #member.parts, silent) }
    end
    wait = doubted[needed]
  end
  if not wait or wait <= 0 then wait = SPLIT_PAUSE + env.random() * SPLIT_MORE end
  return false, { wait = wait, node = holder and holder.node, epoch = holder and holder.epoch, back = back,
    stands = holder and stands >= majority(member), ordered = not holder and not is_doubted and ordered or nil,
    unsure = holder and holder.unsure or not holder and is_left,
    amnesia = is_doubted or nil, asks_in = holder and asks_in }
end

-- Whether most of the registers say of the same candidate that it leads.
local function is_led(env, member, answers)
  local _, why = denial(env, member, answers)
  return why.node ~= nil
end

local function first_problem(member, answers)
  for _, part in ipairs(member.parts) do
    local answer = answers[part]
    if answer and answer[1] == nil then return answer[2], answer[3] end
  end
  return "one of them gives no answer", "timeout"
end

local function count_of(answers, verdict)
  local found = 0
  for _, answer in pairs(answers) do
    if answer[1] == verdict then found = found + 1 end
  end
  return found
end

local function too_few(member, answers)
  local problem, code = first_problem(member, answers)
  return nil, ("%d of %d servers granted, %d are needed: %s"):format(count_of(answers, true), #member.parts, majority(member),
    problem), code
end

local function lost_claim(env, member, answers)
  member.number = member.number + 1
  for _, part in ipairs(member.parts) do in_turn(env, part, function() release_part(part) end) end
  if count_of(answers, true) + count_of(answers, false) >= majority(member) then return denial(env, member, answers) end
  return too_few(member, answers)
end

-- Claims again where a lower epoch was granted. Another one may have led there meanwhile: then this epoch is the higher one, and
-- the others are lower.
-- @return the term's epoch; or nil
local function level(env, member, number)
  for _ = 1, LEVELS_MOST do
    local epoch = won_epoch(env, member)
    if epoch then return epoch end
    ask(env, lower_parts(member, granted_epoch(member)), claim_of(member, number, granted_epoch(member)),
      function() return won_epoch(env, member) ~= nil end)
    if member.number ~= number then return nil end
  end
  return won_epoch(env, member)
end

--- Claims an election on all registers; won where most of them grant it. As crown.register.terms.
-- @tparam table env as of crown.register.session
-- @tparam table member
-- @return as of crown.register.terms
function several.claim(env, member)
  local began = env.now()
  member.number, member.epoch = (member.number or 0) + 1, nil
  hush(member, true)
  local number, most = member.number, majority(member)
  local answers = ask(env, member.parts, claim_of(member, number, highest(member) + 1), function(answers)
    return count_of(answers, true) >= most or is_led(env, member, answers)
  end)
  if member.number ~= number then return nil, "the claim was given up" end
  if count_of(answers, true) < most then return lost_claim(env, member, answers) end
  local epoch = level(env, member, number)
  if member.number ~= number then return nil, "the claim was given up" end
  if not epoch then return lost_claim(env, member, answers) end
  member.epoch = epoch
  hush(member, false)
  return grant(env, member, epoch, began)
end

-- --- terms

-- @return false and why, where too few parts are left; or where the leader is asked to go
local function verdict_of(member, answers)
  local lost, why = 0, nil
  for _, part in ipairs(member.parts) do
    local answer = answers[part]
    if answer and answer[1] == false and answer[2] and answer[2].evicted then return false, answer[2] end
    if not term_of(part) then
      lost = lost + 1
      if answer and answer[1] == false and not (why and why.node) then why = answer[2] end
    end
  end
  if lost > #member.parts - majority(member) then
    return false, why or { error = "most servers do not hold this term any more" }
  end
end

-- A register that was away gets the term again, in an epoch of its own that is no lower. So does one that granted a lower epoch
-- after most had granted this one: it does not count, and without it the leader would not outlive the next register that fails.
local function restore(env, member)
  local number, epoch = member.number, member.epoch
  for _, part in ipairs(member.parts) do
    local term = term_of(part)
    if (not term or term.epoch < epoch) and part.busy == 0 then
      in_turn(env, part, function() claim_of(member, number, epoch)(part) end)
    end
  end
end

-- The parts that hold the term and are not asked already.
local function holders(member)
  local asked = {}
  for _, part in ipairs(member.parts) do
    if term_of(part) and part.busy == 0 then asked[#asked + 1] = part end
  end
  return asked
end

-- How many of those that count for the term have said so.
local function kept_by(member, answers, epoch)
  local found = 0
  for _, part in ipairs(member.parts) do
    local term, answer = term_of(part), answers[part]
    if answer and answer[1] and term and epoch <= term.epoch then found = found + 1 end
  end
  return found
end

--- Keeps a term, while most registers do.
-- @tparam table env
-- @tparam table member
-- @return as of crown.register.terms
function several.refresh(env, member)
  local began, epoch, most = env.now(), member.epoch, majority(member)
  if not epoch then return false, { error = "the lease in the store is not this term's" } end
  local answers = ask(env, holders(member), function(part) return terms.refresh(part.session, part) end, function(answers)
    return kept_by(member, answers, epoch) >= most or verdict_of(member, answers) == false
  end)
  if member.epoch ~= epoch then return nil, "the refresh was given up" end
  local verdict, why = verdict_of(member, answers)
  if verdict == false then return false, why end
  restore(env, member)
  if count_of(answers, true) < most then return too_few(member, answers) end
  return grant(env, member, epoch, began)
end

--- Gives an election back.
-- @tparam table env
-- @tparam table member
function several.release(env, member)
  member.number, member.epoch = (member.number or 0) + 1, nil
  ask(env, member.parts, release_part, function() return false end)
end

--- Looks at a term at once.
-- @tparam table env
-- @tparam table member
-- @return false and why, where it is over or is to end; else nothing
function several.look(env, member)
  local answers = ask(env, holders(member), function(part) return terms.look(part.session, part) end, function(answers)
    return verdict_of(member, answers) == false
  end)
  local verdict, why = verdict_of(member, answers)
  if verdict == false then return false, why end
end

return several
