--- What a member does with what the others send: pure. Messages of an older epoch are refused, whoever sends them.
-- @module crown.registry.exchange

local messages = require "crown.registry.messages"

local exchange = {}

local receive = {}

function receive.append(member, from, message)
  local replica = member.replica
  if replica:follow(message.epoch, message.first, message.changes) then
    member.effects.send(from, { kind = "held", epoch = message.epoch, seq = replica.at.seq })
  else
    member.effects.send(from, { kind = "gap", epoch = message.epoch, part = false })
  end
end

function receive.snapshot(member, from, message)
  local whole = member.replica:gather(message, from)
  if whole then
    member.replica:adopt()
    member.effects.send(from, { kind = "held", epoch = message.epoch, seq = message.seq })
    member:restore()
  elseif whole == nil then
    member.effects.send(from, { kind = "gap", epoch = message.epoch, part = true })
  end
end

function receive.seek(member, from, message)
  if member.authority and member.authority.epoch < message.epoch then member:relinquish() end
  member.effects.send(from, { kind = "position", epoch = message.epoch, at = member.replica.at })
end

function receive.fetch(member, from, message)
  if member.authority and member.authority.epoch < message.epoch then member:relinquish() end
  local at = member.replica.at
  for _, part in ipairs(member.replica:parts { kind = "copy", term = message.epoch, epoch = at.epoch, seq = at.seq }) do
    member.effects.send(from, part)
  end
end

-- What a leader, or one that becomes it, says under its epoch.
local FENCED = { append = true, snapshot = true, seek = true, fetch = true }

function receive.held(member, from, message)
  if member.authority then member.authority:held(from, message.epoch, message.seq) end
end

function receive.gap(member, from, message)
  if member.authority and member.authority.epoch == message.epoch then member.authority:gap(from, message.part) end
end

function receive.stale(member, _, message)
  if message.epoch > member.replica.epoch then member:wake() end
end

function receive.position(member, from, message)
  if member.changeover and member.changeover.epoch == message.epoch then member.changeover:position(from, message.at) end
end

function receive.copy(member, from, message)
  if member.changeover and member.changeover.epoch == message.term then member.changeover:copy(from, message) end
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

-- The answers go back by the way that the writes came: whoever loses that way knows that there will be none.
function receive.write(member, from, message, reply)
  local answer = collect(member, reply)
  for _, write in ipairs(message.writes) do
    if member.authority then
      member.authority:write(from, write.op, function(result) answer(write.request, result) end)
    else
      answer(write.request, { retry = "this node does not lead" })
    end
  end
end

--- Takes a message of another member.
-- @tparam Member member
-- @string from the other's id
-- @tparam table message
-- @tparam function reply `reply(message)` goes back by the same link
-- @return true, or nil and why it is nonsense
function exchange.receive(member, from, message, reply)
  local fine, problem = messages.check(message)
  if not fine then return nil, problem end
  if member.over then return true end
  if FENCED[message.kind] and not member.replica:promise(message.epoch) then
    member.effects.send(from, { kind = "stale", epoch = member.replica.epoch })
    return true
  end
  if not receive[message.kind] then return nil, ("a message '%s' on the wrong way"):format(message.kind) end
  receive[message.kind](member, from, message, reply)
  return true
end

--- Takes what came back by a link of this member's own.
-- @tparam Member member
-- @tparam table message
-- @return true, or nil and why it is nonsense
function exchange.answered(member, message)
  local fine, problem = messages.check(message)
  if not fine or message.kind ~= "written" then return nil, problem or "an answer to nothing" end
  for _, answer in ipairs(message.answers) do
    if not member.over then member.writes:answered(answer.request, answer.result) end
  end
  return true
end

return exchange
