--- A member's copy of the names: pure. It knows how far it has come, `{ epoch, seq }`, and the highest epoch it has heard of;
-- whatever bears an older one is refused.
-- Changes are arrays: `{ "+", name, owner, token, value }`, `{ "-", name }`, `{ "x", owner, token }` (all names of an owner).
-- Values are JSON text, owners member ids, tokens the owners' join tokens.
--
-- Nothing here takes long, however many names there are: what is large is done in steps, while changes go on.
-- @internal crown.registry.replica

local Names = require "crown.registry.names"

local Replica = {}
Replica.__index = Replica

-- Bytes of names and values in one part of a snapshot: a frame has its bounds, and so has a turn of the loop.
local PART_BYTES = 25000
local ENTRY_BYTES = 16 -- what an entry needs besides its texts, about

--- Rows that are looked at for one part at most.
Replica.PART_ROWS = 2000

--- Makes an empty one.
-- @tparam[opt] table watchers an array of crown.registry.changes, which may be changed, that are told of each name that changes
-- @treturn Replica its `names` are of crown.registry.names; others after `adopt`
function Replica.new(watchers)
  return setmetatable({ names = Names.new(), epoch = 0, at = { epoch = 0, seq = 0 }, watchers = watchers or {}, discarded = {} },
    Replica)
end

-- Nobody needs these names any more. The collector would free them all in one turn.
local function discard(self, names)
  if names then table.insert(self.discarded, names) end
end

local function break_off(self)
  discard(self, self.gathered and self.gathered.names)
  self.gathered = nil
end

local function tell(self, name)
  for _, changes in ipairs(self.watchers) do changes:mark(name) end
end

--- Makes one change.
-- @tparam table change
function Replica:apply(change)
  local name = self.names:apply(change)
  if name then tell(self, name) end
end

--- Whether there is something for `sweep` to do.
-- @treturn boolean
function Replica:is_untidy()
  return self.names.sweeping ~= nil or self.discarded[1] ~= nil
end

--- Takes away what is nobody's any more, some at a time.
-- @number most rows that are looked at
-- @treturn boolean whether there is more to do
function Replica:sweep(most)
  if self.names.sweeping then
    self.names:sweep(most, function(name) tell(self, name) end)
  elseif self.discarded[1] and not self.discarded[1]:shrink(most) then
    table.remove(self.discarded, 1)
  end
  return self:is_untidy()
end

--- Who has a name.
-- @string name
-- @treturn string the value, as JSON; or nil
-- @treturn string the owner's member id
-- @treturn string the token of its join
-- @treturn string the owner's node
function Replica:find(name)
  return self.names:find(name)
end

--- How many names there are.
-- @treturn number
function Replica:count()
  return self.names.count
end

--- Whether one position is at least another.
-- @tparam table a `{ epoch, seq }`
-- @tparam table b
-- @treturn boolean
function Replica.reaches(a, b)
  if a.epoch ~= b.epoch then return a.epoch > b.epoch end
  return a.seq >= b.seq
end

--- Hears of an epoch.
-- @number epoch
-- @treturn boolean whether it is not older than one heard of before
function Replica:promise(epoch)
  if epoch < self.epoch then return false end
  self.epoch = epoch
  return true
end

--- Begins a walk over all names, for `part`.
-- @treturn table
function Replica:walk()
  return { names = self.names, place = self.names:places(), part = 0 }
end

--- The next part of a walk, of a size that fits a frame. Parts and the changes made between them, in the order in which they
-- come about, make a copy.
-- @tparam table walk
-- @tparam table header what the part bears besides `part`, `last` and `names`
-- @treturn table the part, its `last` true at the end; or nil where all the names have become others meanwhile
function Replica:part(walk, header)
  if walk.names ~= self.names then return nil end
  local names, bytes, place = {}, 0, math.min(walk.place, self.names:places())
  local stop = math.max(0, place - Replica.PART_ROWS)
  while place > stop and bytes < PART_BYTES do
    local name, value, owner, token, gone = self.names:at(place)
    if not gone then
      names[#names + 1] = { name, owner, token, value }
      bytes = bytes + #name + #value + #owner + #token + ENTRY_BYTES
    end
    place = place - 1
  end
  walk.place, walk.part = place, walk.part + 1
  local part = { part = walk.part, last = place == 0, names = names }
  for key, value in pairs(header) do part[key] = value end
  return part
end

--- Gathers parts as they come, in order.
-- @tparam table part with `epoch` and `seq`: the position of whoever made it, then
-- @string from who sends them
-- @treturn boolean true when the last one is in: `adopt` takes them; false to wait for more; nil when one is missing
function Replica:gather(part, from)
  if part.part == 1 then
    break_off(self)
    self.gathered = { from = from, epoch = part.epoch, seq = part.seq, next = 1, names = Names.new() }
  end
  local gathered = self.gathered
  if not gathered or gathered.from ~= from or gathered.next ~= part.part or gathered.epoch ~= part.epoch
    or gathered.seq ~= part.seq then
    break_off(self)
    return nil
  end
  for _, one in ipairs(part.names) do gathered.names:apply { "+", one[1], one[2], one[3], one[4] } end
  gathered.next = part.part + 1
  return part.last
end

--- Takes what was gathered.
function Replica:adopt()
  local gathered = self.gathered
  self.gathered = nil
  local old = self.names
  self.names = gathered.names
  local comparing = #self.watchers
  for _, changes in ipairs(self.watchers) do
    changes:replaced(old, self.names, function()
      comparing = comparing - 1
      if comparing == 0 then discard(self, old) end
    end)
  end
  if comparing == 0 then discard(self, old) end
  self.at = { epoch = gathered.epoch, seq = gathered.seq }
end

--- Takes changes of the leader's stream; those that come between the parts of a copy belong to that.
-- @number epoch
-- @number first the number of the first change
-- @tparam table changes
-- @treturn boolean whether they follow on what is here; nil when they do on what is gathered; false when on neither, and
-- the stream has to begin anew
function Replica:follow(epoch, first, changes)
  local gathered = self.gathered
  if gathered and gathered.epoch == epoch and first == gathered.seq + 1 then
    for _, change in ipairs(changes) do gathered.names:apply(change) end
    gathered.seq = gathered.seq + #changes
    return nil
  end
  if self.at.epoch ~= epoch or first ~= self.at.seq + 1 then return false end
  for _, change in ipairs(changes) do self:apply(change) end
  self.at.seq = self.at.seq + #changes
  return true
end

--- Goes on under a new term, whose leader began with what is here.
-- @number epoch
-- @tparam table from the position that it began with
-- @treturn boolean whether that is this one's
function Replica:resume(epoch, from)
  break_off(self) -- its link was lost
  if self.at.epoch == epoch then return true end
  if self.at.epoch ~= from.epoch or self.at.seq ~= from.seq then return false end
  self.at = { epoch = epoch, seq = 0 }
  return true
end

return Replica
