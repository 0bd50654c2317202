--- A register (crown.register.session) that many ask: looks and writes that are asked in one turn of the loop go out together,
-- and those that come while enough calls are under way wait for each other. A name that many look at is asked for once. A look is
-- answered by a call that was sent after it was asked. Records of different parts of a store never share a call, since parts
-- fail apart.
-- @internal crown.link.crowd

local core = require "crown.core"
local promise = require "crown.core.promise"
local Queue = require "crown.link.queue"

local Crowd = {}

local MOST = { look = 512, swap = 128 } -- names in a call
local CALLS = 2 -- under way at once, of each kind and part
local UNKNOWN = { look = "the store did not say what stands there", swap = "nobody knows whether it was written" }

-- --- one kind of question at one part

local Line = {}
Line.__index = Line

-- `by_name`: looks that wait, which others join; `again`: what goes first.
local function new_line(store, kind, is_urgent)
  return setmetatable({ store = store, kind = kind, is_urgent = is_urgent, waiting = Queue.new(), again = {}, by_name = {},
    calls = 0 }, Line)
end

local function next_of(self, skipped)
  local again = self.again
  if again[1] and not skipped[again[1]] then return table.remove(again, 1) end
  return self.waiting:pop()
end

-- Those who asked may have been cancelled.
local function is_wanted(one)
  for _, asker in ipairs(one.askers) do
    if not asker.gone then return true end
  end
end

-- A name stands in a call once: the second write of it comes with the next call.
local function take(self)
  local lot, names, skipped = {}, {}, {}
  self.gathering = false
  while #lot < MOST[self.kind] do
    local one = next_of(self, skipped)
    if not one then break end
    if names[one.name] then
      self.again[#self.again + 1], skipped[one] = one, true
    else
      if self.by_name[one.name] == one then self.by_name[one.name] = nil end
      if is_wanted(one) then lot[#lot + 1], names[one.name] = one, true end
    end
  end
  if #lot > 0 then return lot end
  self.calls = self.calls - 1
end

local function is_waiting(self)
  return self.again[1] or self.waiting:peek()
end

local function question(self, lot)
  if self.kind == "swap" then return lot end
  local names = {}
  for i, one in ipairs(lot) do names[i] = one.name end
  return names
end

local function settle(asker, place, result, problem, code)
  if result == nil then asker.problem, asker.code = problem, code else asker.results[place], asker.some = result, true end
  asker.left = asker.left - 1
  if asker.left > 0 then return end
  if asker.whole and asker.problem or not asker.some then
    asker.answer:resolve(nil, asker.problem, asker.code)
  else
    asker.answer:resolve(asker.results)
  end
end

local function deliver(self, lot, fine, results, problem, code)
  if not fine then results, problem = nil, tostring(results) end
  if results then problem, code = UNKNOWN[self.kind], "store" end
  for i, one in ipairs(lot) do
    local key = self.kind == "swap" and i or one.name
    for _, asker in ipairs(one.askers) do
      settle(asker, one.place or one.name, results and results[key], problem, code)
    end
  end
end

local spread

-- In a task of its own, which no asker's end ends.
local function send(self)
  if self.gathering then core.sleep(0) end
  local lot = core.atomic(take, self)
  while lot do
    core.atomic(spread, self)
    core.atomic(deliver, self, lot, pcall(self.store[self.kind], self.store, question(self, lot)))
    lot = core.atomic(take, self)
  end
end

function spread(self)
  if self.gathering or self.calls >= CALLS or not is_waiting(self) then return end
  self.calls = self.calls + 1
  core.detach(send, self)
end

local function push(self, one)
  if self.is_urgent(one.name) then self.again[#self.again + 1] = one else self.waiting:push(one) end
  if self.gathering or self.calls >= CALLS then return end
  self.gathering, self.calls = true, self.calls + 1
  core.detach(send, self)
end

local function join(self, name, asker)
  local one = self.by_name[name]
  if one then
    one.askers[#one.askers + 1] = asker
    return
  end
  one = { name = name, askers = { asker } }
  self.by_name[name] = one
  push(self, one)
end

-- --- all

local function line_of(self, kind, name)
  local part = self.store.part_of and self.store:part_of(name) or ""
  local lines = self.lines[kind]
  lines[part] = lines[part] or new_line(self.store, kind, self.is_urgent)
  return lines[part]
end

local function new_asker(count, whole)
  return { results = {}, left = count, whole = whole, answer = promise() }
end

local function add_looks(self, names)
  local asker = new_asker(#names, true)
  for _, name in ipairs(names) do join(line_of(self, "look", name), name, asker) end
  return asker
end

local function add_writes(self, writes)
  local asker = new_asker(#writes)
  for i, one in ipairs(writes) do
    push(line_of(self, "swap", one.name), { name = one.name, version = one.version, text = one.text, memory = one.memory,
      frees = one.frees, quiet = one.quiet, askers = { asker }, place = i })
  end
  return asker
end

local methods = {}

local function answered(asker, results, problem, code)
  if code == "cancelled" then asker.gone = true end
  return results, problem, code
end

local function ask(self, add, list)
  if #list == 0 then return {} end
  local asker = core.atomic(add, self, list)
  return answered(asker, asker.answer:wait(math.huge))
end

--- As the store's, and so is `swap`.
function methods:look(names)
  return ask(self, add_looks, names)
end

function methods:swap(writes)
  return ask(self, add_writes, writes)
end

--- Makes one.
-- @tparam table store
-- @tparam function is_urgent of a name: what is asked of it goes before what waits
-- @treturn table a store like it: what else the store has, this one has too
function Crowd.new(store, is_urgent)
  local self = { store = store, is_urgent = is_urgent, lines = { look = {}, swap = {} } }
  for name, method in pairs(methods) do self[name] = method end
  return setmetatable(self, { __index = function(_, name)
    local value = store[name]
    if type(value) ~= "function" then return value end
    local function passed_on(_, ...) return value(store, ...) end
    rawset(self, name, passed_on)
    return passed_on
  end })
end

return Crowd
