--- Questions of many, asked together: those that come within a moment go out at once, so many at most, one lot after the other.
-- A store's own class says how a lot is asked.
-- @internal crown.link.gathered

local core = require "crown.core"
local promise = require "crown.core.promise"
local Queue = require "crown.link.queue"

local Gathered = {}
Gathered.__index = Gathered

--- Makes one.
-- @tparam table options `ask(lot)`: asks for an array of questions, each with an `answer` that it resolves; `window` seconds
-- that a question waits for company; `most` in a lot; a question that counts for more than one has a `weight`
-- @treturn Gathered
function Gathered.new(options)
  return setmetatable({ ask_all = options.ask, window = options.window, most = options.most, waiting = Queue.new() }, Gathered)
end

-- Why it is not to be asked any more; nil: it is. It is the asker's function that says so: what fails there is his alone.
local function unwanted(one)
  local fine, wanted = true, true
  if one.wanted then fine, wanted = pcall(one.wanted) end
  if not fine then return tostring(wanted), "protocol" end
  if not wanted then return "it waited too long for its turn", "timeout" end
end

local function take(self)
  local lot, left = {}, self.most
  while true do
    local one = self.waiting:peek()
    if not one or (one.weight or 1) > left and #lot > 0 then break end
    self.waiting:pop()
    local problem, code = unwanted(one)
    if not problem then
      lot[#lot + 1] = one
      left = left - (one.weight or 1)
    else
      one.answer:resolve(nil, problem, code)
    end
  end
  self.sending = #lot > 0
  return lot
end

-- One after the other: a connection each would be many when thousands start.
local function send(self)
  core.sleep(self.window)
  local lot = core.atomic(take, self)
  while #lot > 0 do
    local fine, problem = pcall(self.ask_all, lot)
    for _, one in ipairs(lot) do -- where it has an answer, this one is ignored
      one.answer:resolve(nil, fine and "it was answered less than was asked" or tostring(problem), "protocol")
    end
    lot = core.atomic(take, self)
  end
end

local function add(self, one)
  self.waiting:push(one)
  if self.sending then return end
  self.sending = true
  core.detach(send, self)
end

--- Asks, and waits for the answer.
-- @tparam table one the question; `wanted()`, if there, is asked right before it is sent: whether anybody still waits
-- @return what `answer` was resolved with; or nil, message, code
function Gathered:ask(one)
  one.answer = promise()
  core.atomic(add, self, one)
  return one.answer:wait(math.huge)
end

return Gathered
