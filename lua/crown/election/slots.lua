--- Several leaders of one election: `slots = 3` makes the elections NAME.1, NAME.2 and NAME.3, each with one leader at most and
-- epochs of its own. A candidate takes part in all of them, and leads one at most.
-- @internal crown.election.slots

local core = require "crown.core"
local events = require "crown.election.events"
local names = require "crown.check.names"
local promise = require "crown.core.promise"
local schema = require "crown.check.schema"
local usage = require "crown.check.usage"

local slots = {}

--- The option of an election, as crown.check.schema has it.
slots.RULE = { type = "number", integer = true, least = 1, most = 64 }

local AGAIN = 5 -- seconds until a candidate looks again that waits while another slot is led here
local TURN = 3 -- seconds for which a call waits at most for that of another slot
local TAKES, TAKES_EACH = 5, 0.01 -- times, and seconds, in which a task takes what was answered
local WAKE = {} -- the message that a slot given up here sends to the others

-- --- one slot at a time

local Group = {}
Group.__index = Group

-- Whether the one that was won last may still have a tree, or is about to lead.
local function may_lead(election)
  local phase = election:status().phase
  return phase ~= "following" or election.granting
end

local function is_free(group, election)
  local holder = group.holder
  if holder == nil or holder == election then return true end
  if may_lead(holder) then return false end
  group.holder = nil
  return true
end

local function take(group, election)
  if not is_free(group, election) then return false end
  group.holder = election
  return true
end

-- The grant is known to the core when the task that claimed has ended.
local function note_granting(election)
  election.granting = true
  core.detach(function()
    core.sleep(0)
    election.granting = nil
  end)
end

local function wake_others(group, election)
  for _, other in ipairs(group.elections) do
    if other ~= election then other:send(WAKE) end
  end
end

local function give_back(election)
  local abdicate = election.common.module.abdicate
  if abdicate then abdicate(election.state) end
  election.waits = nil
end

function Group:denial()
  return false, { error = ("this candidate leads '%s'"):format(self.holder and self.holder.name or "another slot"),
    retry_in = AGAIN }
end

local function pack(...) return { n = select("#", ...), ... } end

-- The core drops a call that it does not want any more, wherever that waits. What was asked goes on to its end all the same, in a
-- task of its own, so that no other slot waits for it for ever; and what it is granted then is given back.
local function carry_out(call, before, over)
  if before then before:wait(TURN) end
  call.results = pack(pcall(call.fn))
  call.answered:resolve()
  for _ = 1, TAKES do
    if call.taken then break end
    core.sleep(TAKES_EACH)
  end
  if not call.taken and call.results[2] == true then pcall(give_back, call.election) end
  over:resolve()
end

-- One call of the group's oracles at a time.
-- @return what it returns; an error of it is raised
function Group:in_turn(election, fn)
  local before, over, call = self.turn, promise(), { election = election, fn = fn, answered = promise() }
  self.turn = over
  core.detach(carry_out, call, before, over)
  call.answered:wait(math.huge)
  call.taken = true
  local results = call.results
  if not results[1] then error(results[2], 0) end
  return unpack(results, 2, results.n)
end

-- Those that have asked before may stand in a queue of the store, where they would keep the others from leading.
local function settle(group, election, verdict, ...)
  if verdict ~= true then return verdict, ... end
  if core.atomic(take, group, election) then
    note_granting(election)
    wake_others(group, election)
    return verdict, ...
  end
  group:in_turn(election, function() give_back(election) end)
  return group:denial()
end

--- Asks an oracle for a slot, where this candidate leads no other one.
-- @tparam Election election of the slot
-- @tparam function ask the oracle's claim or handle_info
-- @param[opt] message for handle_info
-- @return as the oracle
function Group:ask(election, ask, message)
  if not election.waits and not core.atomic(is_free, self, election) then return self:denial() end
  return settle(self, election, self:in_turn(election, function()
    if not core.atomic(is_free, self, election) then
      if election.waits then give_back(election) end
      return self:denial()
    end
    election.waits = true
    return ask(election.state, message)
  end))
end

--- What a candidate does with a message: others than the group's own are the oracle's, and wait while another slot is led here.
-- @tparam Election election of the slot
-- @tparam table module the oracle's
-- @param message
-- @return as of an oracle's handle_info
function Group:hear(election, module, message)
  if message == WAKE then return self:ask(election, module.claim) end
  if not module.handle_info or not core.atomic(is_free, self, election) then return nil end
  if self.holder == election then return module.handle_info(election.state, message) end
  return self:ask(election, module.handle_info, message)
end

--- Gives a slot back, or a claim that the core does not want any more.
-- @tparam Election election of the slot
-- @param answer what the oracle's abdicate gets
function Group:abdicate(election, answer)
  local abdicate = election.common.module.abdicate
  self:in_turn(election, function()
    election.waits = nil
    if abdicate then abdicate(election.state, answer) end
  end)
  if self.holder ~= election then return end
  self.holder = nil
  wake_others(self, election)
end

-- --- all of them, as crown.elect returns them

local Slots = {}
Slots.__index = Slots

--- Several elections as one object, as crown.elect returns it.
slots.Elections = Slots

--- The slot that is led here, or the first one.
-- @treturn Election
function Slots:current()
  for _, one in ipairs(self.elections) do
    if one:status().phase ~= "following" then return one end
  end
  return self.elections[1]
end

function Slots:status() return self:current():status() end

function Slots:is_leader() return self:current():is_leader() end

function Slots:send(message)
  for _, one in ipairs(self.elections) do one:send(message) end
  return true
end

function Slots:abdicate() self:current():abdicate() end

function Slots:stop()
  for _, one in ipairs(self.elections) do one:stop() end
end

local function with_number(child, variable, number)
  if type(child) ~= "table" then return child end
  local copy = {}
  for key, value in pairs(child) do copy[key] = value end
  if copy[1] ~= nil and copy.command == nil then copy = { command = copy } end
  local env = { [variable] = tostring(number) }
  for name, value in pairs(type(copy.env) == "table" and copy.env or {}) do env[name] = value end
  if copy.env == nil or type(copy.env) == "table" then copy.env = env end
  return copy
end

--- The options of one of several elections.
-- @tparam table given those of all
-- @string field the option that says how many there are
-- @string variable of the environment that tells a child its number
-- @number number
-- @treturn table
function slots.option_of(given, field, variable, number)
  local copy = {}
  for key, value in pairs(given) do copy[key] = value end
  copy[field], copy.name = nil, ("%s.%d"):format(given.name, number)
  copy.child = with_number(given.child, variable, number)
  return copy
end

--- Checks what several elections have in common.
-- @string where how messages name the election
-- @tparam table given the options
-- @string field the option that says how many there are
-- @tparam table rule of that
-- @raise a usage error that names the option
function slots.check(where, given, field, rule)
  schema.check_value(where, field, given[field], rule)
  schema.check_value(where, "name", given.name, names.rule { required = "every election has a name" })
  if given.follower_child then
    usage.error("%s: follower_child has no place beside %s: a leader of one follows in all others", where, field)
  end
  if given.preempt then
    usage.error("%s: preempt has no place beside %s: it would ask the leaders of all of them to go", where, field)
  end
  if type(given.child) == "table" and given.child.mode == "signal" then
    usage.error("%s: child: mode 'signal' has no place beside %s: it would run a command for each of them", where, field)
  end
  local longest = ("%s.%d"):format(given.name, given[field])
  if #longest > names.MOST then
    usage.error("%s: name: with its %s a name has at most %d characters", where, field, names.MOST)
  end
end

--- A command that ends by itself, and ends its election with that, ends them all.
-- @tparam table self `elections`
function slots.end_together(self)
  events.listen({ "process.terminating" }, function(event)
    for _, one in ipairs(self.elections) do
      if one.name == event.name then return self:stop() end
    end
  end)
end

--- Declares the elections of all slots.
-- @tparam function elect declares one: its options, the group → Election
-- @string where how messages name the election
-- @tparam table given the options, with `slots`
-- @treturn Slots `name`, `elections`
-- @raise a usage error that names the option
function slots.elect(elect, where, given)
  slots.check(where, given, "slots", slots.RULE)
  local group = setmetatable({ elections = {} }, Group)
  local self = setmetatable({ name = given.name, elections = group.elections }, Slots)
  for number = 1, given.slots do
    group.elections[number] = elect(slots.option_of(given, "slots", "CROWN_SLOT", number), group)
  end
  slots.end_together(self)
  return self
end

return slots
