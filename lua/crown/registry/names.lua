--- Names with their values and owners: pure. The rows lie in C (crown.core.rows), where the collector does not look at them, and
-- where nothing takes long however many there are. They can be walked in steps while they change: from the last place to the
-- first.
--
-- An owner is a member's id and the token of its join. The names of one who is gone are no more at once; their rows are taken
-- away in steps.
-- @internal crown.registry.names

local elector = require "crown.registry.elector"
local rows = require "crown.core.rows"

local Names = {}
Names.__index = Names

local NUMBERS = 2 ^ 32 - 1 -- what crown.core.rows holds beside a name

--- Makes an empty one.
-- @treturn Names its `count` is how many there are; `sweeping` is set while rows of owners who are gone are to be taken away
function Names.new()
  -- `owners`: by id and token; `known`: the same by number, also those who are gone, while there are rows of theirs.
  return setmetatable({ rows = rows.new(), count = 0, owners = {}, known = {}, numbers = 0 }, Names)
end

local function owner_of(self, owner, token)
  local joins = self.owners[owner]
  return joins and joins[token]
end

-- Whoever gives up his last name and registers another one has a new number each time, so they begin again some day.
local function new_owner(self, owner, token)
  local number = self.numbers
  repeat number = number % NUMBERS + 1 until not self.known[number]
  local known = { owner = owner, token = token, node = elector.node_of(owner), number = number, count = 0 }
  self.owners[owner] = self.owners[owner] or {}
  self.owners[owner][token], self.known[number], self.numbers = known, known, number
  return known
end

local function forget(self, known)
  local joins = self.owners[known.owner]
  joins[known.token] = nil
  if not next(joins) then self.owners[known.owner] = nil end
end

-- A row is an owner's no more.
local function leave(self, number)
  local known = self.known[number]
  known.count = known.count - 1
  if not known.gone then
    self.count = self.count - 1
    if known.count == 0 then forget(self, known) end
  end
  if known.count == 0 then self.known[number] = nil end
end

local apply = {}

apply["+"] = function(self, change)
  local name, owner, token = change[2], change[3], change[4]
  local known = owner_of(self, owner, token) or new_owner(self, owner, token)
  local before = self.rows:put(name, change[5], known.number) -- raises where memory is out
  known.count, self.count = known.count + 1, self.count + 1
  if before then leave(self, before) end
  return name
end

apply["-"] = function(self, change)
  local before = self.rows:remove(change[2])
  if not before then return nil end
  leave(self, before)
  return change[2]
end

apply["x"] = function(self, change)
  local known = owner_of(self, change[2], change[3])
  if not known then return end
  known.gone = true
  forget(self, known)
  self.count = self.count - known.count
  self.sweeping = self.rows:count()
end

--- Makes one change.
-- @tparam table change `{ "+", name, owner, token, value }`, `{ "-", name }` or `{ "x", owner, token }`
-- @treturn string the name that is another one now, if there is one
function Names:apply(change)
  return apply[change[1]](self, change)
end

--- Takes rows away whose owners are gone, some at a time.
-- @number most rows that are looked at
-- @tparam function tell `tell(name)`, for each
function Names:sweep(most, tell)
  local place = math.min(self.sweeping, self.rows:count())
  local stop = math.max(0, place - most)
  for i = place, stop + 1, -1 do
    local name, _, number = self.rows:at(i)
    if self.known[number].gone then
      self.rows:remove(name)
      leave(self, number)
      tell(name)
    end
  end
  self.sweeping = stop > 0 and stop or nil
end

--- Who has a name.
-- @string name
-- @treturn string the value, as JSON; or nil
-- @treturn string the owner's member id
-- @treturn string the token of its join
-- @treturn string the owner's node
function Names:find(name)
  local value, number = self.rows:get(name)
  local known = value and self.known[number]
  if not known or known.gone then return nil end
  return value, known.owner, known.token, known.node
end

--- How many places there are: as many as names, and those that are still to be swept away.
-- @treturn number
function Names:places()
  return self.rows:count()
end

--- What is at a place.
-- @number place
-- @treturn string the name; nil where there is none (any more)
-- @treturn string its value
-- @treturn string its owner
-- @treturn string the owner's token
-- @treturn boolean whether the owner is gone
function Names:at(place)
  local name, value, number = self.rows:at(place)
  if not name then return nil end
  local known = self.known[number]
  return name, value, known.owner, known.token, known.gone == true
end

--- Drops rows of what nobody needs any more, so that the collector need not do it at once.
-- @number most
-- @treturn boolean whether there are more
function Names:shrink(most)
  return self.rows:shrink(most)
end

--- Those who have names.
-- @treturn table an array of `{ owner =, token =, count = }`
function Names:all_owners()
  local found = {}
  for _, joins in pairs(self.owners) do
    for _, known in pairs(joins) do found[#found + 1] = known end
  end
  return found
end

return Names
