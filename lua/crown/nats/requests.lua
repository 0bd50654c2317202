--- Questions on one connection to NATS: so many without an answer at once and no more, so that thousands that come together
-- are answered in time, each in its turn, instead of all too late. What goes on with something begun goes first.
-- @internal crown.nats.requests

local core = require "crown.core"
local promise = require "crown.core.promise"
local Queue = require "crown.link.queue"

local Requests = {}
Requests.__index = Requests

local MOST = 256 -- without an answer
local TOO_LONG = "it waited too long for its turn"
local SWEEP = 0.1 -- seconds from one look for overdue answers to the next

--- Makes them.
-- @tparam function send called with what goes out now, as it was given to ask, with its `id`; it may not wait
-- @treturn Requests
function Requests.new(send)
  return setmetatable({ send = send, pending = {}, open = 0, serial = 0, sweep_at = 0, begun = Queue.new(),
    new = Queue.new() }, Requests)
end

-- A question keeps its room for the whole of its time, also where nobody waits for it any more: the server may be at it.
local function sweep(self, now)
  if now < self.sweep_at then return end
  self.sweep_at = now + SWEEP
  for id, one in pairs(self.pending) do
    if one.over < now then self.pending[id], self.open = nil, self.open - 1 end
  end
end

-- What goes out next, if there is room for all of it.
local function pop(self)
  local line = self.begun:peek() and self.begun or self.new
  local one = line:peek()
  return one and self.open + one.count <= MOST and line:pop() or nil
end

local function take(self)
  local now = core.now()
  sweep(self, now)
  for one in pop, self do
    if one.over >= now then
      one.over, one.sent, self.open = now + one.timeout, true, self.open + one.count
      for id = one.id, one.id + one.count - 1 do self.pending[id] = one end
      return one
    end
    one.answer:resolve(nil, TOO_LONG, "busy")
  end
end

local function go_on(self)
  for one in function() return core.atomic(take, self) end do self.send(one) end
end

-- None once those who wait have been told that the connection is closed. One id for two would hand one the other's answer.
local function enter(self, one)
  if self.over then return nil end
  one.count = one.count or 1
  one.id, one.answer, one.over = self.serial + 1, promise(), core.now() + one.timeout
  self.serial = self.serial + one.count
  local line = one.new and self.new or self.begun
  line:push(one)
  return true
end

local function leave(self, id)
  local one = self.pending[id]
  if one then self.pending[id], self.open = nil, self.open - 1 end
  return one
end

--- Asks, and waits for the answer.
-- @tparam table one what send gets; `timeout` seconds for the answer, and as many for its turn; `new = true` where nothing is
-- begun by it yet; `count`, where it is that many questions, `MOST` at most, with an id each from `id` on: then `answers` gets
-- each in its place, and what is waited for is the last one
-- @return what the answer was; true for many; or nil, message, code: "busy" when it was not even sent
function Requests:ask(one)
  if not core.atomic(enter, self, one) then return nil, self.over, "closed" end
  go_on(self)
  local answer, problem, code = one.answer:wait(one.timeout)
  if code == "timeout" and one.sent then answer, problem, code = one.answer:wait(one.over - core.now()) end
  if answer or one.sent then return answer, problem, code end
  one.over = -math.huge -- it is not sent any more
  return nil, code == "timeout" and TOO_LONG or problem, code == "timeout" and "busy" or code
end

local function settle(one, id, answer)
  if not one.answers then return one.answer:resolve(answer) end
  one.answers[id - one.id + 1] = answer
  one.left = (one.left or one.count) - 1
  if one.left == 0 then one.answer:resolve(true) end
end

--- Hands an answer out.
-- @number id of the question
-- @param answer
function Requests:answer(id, answer)
  local one = core.atomic(leave, self, id)
  if not one then return end
  settle(one, id, answer)
  go_on(self)
end

local function take_denied(self, subject)
  local denied = {}
  for id, one in pairs(self.pending) do
    local asked = one.subject or one.words[3 * (id - one.id) + 1]
    if asked == subject then denied[id] = one end
  end
  for id in pairs(denied) do leave(self, id) end
  return denied
end

--- Tells those who have asked there that no right allows it: none of them gets an answer.
-- @string subject
-- @string reason
function Requests:deny(subject, reason)
  for id, one in pairs(core.atomic(take_denied, self, subject)) do
    if one.answers then settle(one, id, false) else one.answer:resolve(nil, reason, "store") end
  end
  go_on(self)
end

local function take_all(self, reason)
  local all = {}
  for _, one in pairs(self.pending) do all[#all + 1] = one end
  for _, line in ipairs { self.begun, self.new } do
    for one in line.pop, line do all[#all + 1] = one end
  end
  self.pending, self.open, self.over = {}, 0, reason
  return all
end

--- Tells all who wait that there will be no answer.
-- @string reason
function Requests:give_up(reason)
  for _, one in ipairs(core.atomic(take_all, self, reason)) do one.answer:resolve(nil, reason, "closed") end
end

return Requests
