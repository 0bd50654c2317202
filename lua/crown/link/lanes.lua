--- A few tasks that do what many ask for, in the order of the questions: so many connections to a server and no more. What
-- waited for too long is not done at all, since nobody is left who wants it.
-- @internal crown.link.lanes

local core = require "crown.core"
local promise = require "crown.core.promise"
local Queue = require "crown.link.queue"

local Lanes = {}
Lanes.__index = Lanes

--- Makes them.
-- @number most tasks at once
-- @treturn Lanes
function Lanes.new(most)
  return setmetatable({ most = most, running = 0, most_running = 0, waiting = Queue.new() }, Lanes)
end

local function take(self)
  for one in self.waiting.pop, self.waiting do
    if one.over > core.now() then return one end
    one.answer:resolve(nil, "it waited too long for its turn", "timeout")
  end
  self.running = self.running - 1
end

local function run(self)
  local one = core.atomic(take, self)
  while one do
    local fine, first, second, third = pcall(one.fn)
    if fine then one.answer:resolve(first, second, third) else one.answer:resolve(nil, tostring(first)) end
    one = core.atomic(take, self)
  end
end

local function add(self, one)
  self.waiting:push(one)
  if self.running == self.most then return end
  self.running = self.running + 1
  self.most_running = math.max(self.most_running, self.running) -- connections are kept for the next questions
  core.detach(run, self)
end

--- Has something done, and waits for it.
-- @tparam function fn returns up to three values; it has to end by itself
-- @number patience seconds after which it is not begun any more
-- @return what it returned; nil and a message for an error in it
function Lanes:ask(fn, patience)
  local one = { fn = fn, answer = promise(), over = core.now() + patience }
  core.atomic(add, self, one)
  return one.answer:wait(math.huge)
end

return Lanes
