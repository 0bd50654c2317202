--- What a member does with what the others ask it, and with what they answer: pure. An answer goes back by the way that the
-- question came, so whoever loses that way knows that there will be none. Questions of an older epoch are refused, whoever
-- sends them.
-- @internal crown.registry.exchange

local messages = require "crown.registry.messages"

local exchange = {}

local asked, answered = {}, {}

local ROOM = 1000000    -- bytes that wait to go to somebody, above which the next part of a copy waits too
local ROOM_PAUSE = 0.01 -- seconds until that is looked at again

function asked.resume(member, _, message, reply)
  local replica = member.replica
  if replica:resume(message.epoch, message.from) then
    reply { kind = "held", epoch = message.epoch, seq = replica.at.seq }
    member.own:restore()
  else
    reply { kind = "gap", epoch = message.epoch, part = true }
  end
end

function asked.append(member, _, message, reply)
  local replica = member.replica
  local follows = replica:follow(message.epoch, message.first, message.changes)
  member:tidy()
  if follows then
    reply { kind = "held", epoch = message.epoch, seq = replica.at.seq }
  elseif follows == false then
    reply { kind = "gap", epoch = message.epoch, part = false }
  end
end

function asked.snapshot(member, from, message, reply)
  local whole = member.replica:gather(message, from)
  if whole then
    member.replica:adopt()
    reply { kind = "held", epoch = message.epoch, seq = member.replica.at.seq }
    member.own:restore()
  elseif whole == nil then
    reply { kind = "gap", epoch = message.epoch, part = true }
  end
  member:tidy()
end

function asked.seek(member, _, message, reply)
  reply { kind = "position", epoch = message.epoch, at = member.replica.at }
end

-- Part by part, as quickly as they are taken. Nobody changes these names any more but a later leader, and then the one that
-- asked has come too late.
local function send_copy(member, copy, reply, waiting)
  if member.over or member.replica.at ~= copy.at or copy.at.seq ~= copy.header.seq then return end
  local function next_one() send_copy(member, copy, reply, waiting) end
  if waiting and waiting() > ROOM then return member.effects.after(ROOM_PAUSE, next_one) end
  local part = member.replica:part(copy.walk, copy.header)
  if not part then return end
  reply(part)
  if not part.last then member.effects.after(0, next_one) end
end

function asked.fetch(member, _, message, reply, waiting)
  local at = member.replica.at
  send_copy(member, { at = at, walk = member.replica:walk(),
    header = { kind = "copy", term = message.epoch, epoch = at.epoch, seq = at.seq } }, reply, waiting)
end

-- Answers that come in one turn go back in one message.
local function collect(member, reply)
  local answers = {}
  return function(request, result)
    answers[#answers + 1] = { request = request, result = result }
    if #answers > 1 then return end
    member.effects.soon(function()
      local collected = answers
      answers = {}
      reply { kind = "written", answers = collected }
    end)
  end
end

function asked.write(member, from, message, reply)
  local answer = collect(member, reply)
  for _, write in ipairs(message.writes) do
    if member.authority then
      member.authority:write(from, write.op, function(result) answer(write.request, result) end)
    else
      answer(write.request, { retry = "this node does not lead" })
    end
  end
end

-- What a leader, or one that becomes it, asks under its epoch.
local FENCED = { resume = true, append = true, snapshot = true, seek = true, fetch = true }

-- Whoever hears of a later epoch has let go of its own: the names may become another one's from now on.
local function is_fenced(member, message)
  if not FENCED[message.kind] then return false end
  if not member.replica:promise(message.epoch) then return true end
  if member.authority and member.authority.epoch < message.epoch then member:relinquish() end
  return false
end

--- Takes a question of another member.
-- @tparam Member member
-- @string from the other's id
-- @tparam table message
-- @tparam function reply `reply(message)` goes back by the same link
-- @tparam[opt] function waiting tells how many bytes of replies are still to go there
-- @return true, or nil and why it is nonsense
function exchange.receive(member, from, message, reply, waiting)
  local fine, problem = messages.check(message)
  if fine and not asked[message.kind] then problem = ("a message '%s' on the wrong way"):format(message.kind) end
  if problem then return nil, problem end
  if member.over then return true end
  if is_fenced(member, message) then
    reply { kind = "stale", epoch = member.replica.epoch }
  else
    asked[message.kind](member, from, message, reply, waiting)
  end
  return true
end

function answered.held(member, from, message)
  if member.authority then member.authority:held(from, message.epoch, message.seq) end
end

function answered.gap(member, from, message)
  if member.authority and member.authority.epoch == message.epoch then member.authority:gap(from, message.part) end
end

function answered.stale(member, _, message)
  if message.epoch > member.replica.epoch then member:wake() end
end

function answered.position(member, from, message)
  if member.changeover and member.changeover.epoch == message.epoch then member.changeover:position(from, message.at) end
end

function answered.copy(member, from, message)
  if member.changeover and member.changeover.epoch == message.term then member.changeover:copy(from, message) end
end

function answered.written(member, _, message)
  for _, answer in ipairs(message.answers) do member.own.writes:answered(answer.request, answer.result) end
end

--- Takes an answer that came back by a link of this member's own.
-- @tparam Member member
-- @string from the id of the member at its other end
-- @tparam table message
-- @return true, or nil and why it is nonsense
function exchange.answered(member, from, message)
  local fine, problem = messages.check(message)
  if fine and not answered[message.kind] then problem = ("an answer '%s' to nothing"):format(message.kind) end
  if problem then return nil, problem end
  if not member.over then answered[message.kind](member, from, message) end
  return true
end

return exchange
