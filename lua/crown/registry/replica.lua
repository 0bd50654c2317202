--- A member's copy of the names: pure. It knows how far it has come, `{ epoch, seq }`, and the highest epoch it has heard of;
-- whatever bears an older one is refused.
-- Changes are arrays: `{ "+", name, owner, token, value }`, `{ "-", name }`, `{ "x", owner, token }` (all names of an owner).
-- Values are JSON text, owners member ids, tokens the owners' join tokens.
--
-- Nothing here takes long, however many names there are: what is large is done in steps, while changes go on.
-- @module crown.registry.replica

local Rows = require "crown.registry.rows"

local Replica = {}
Replica.__index = Replica

-- Bytes of names and values in one part of a snapshot: a frame has its bounds, and so has a turn of the loop.
local PART_BYTES = 25000
local ENTRY_BYTES = 16 -- what an entry needs besides its texts, about

--- Rows that are looked at for one part at most.
Replica.PART_ROWS = 2000

--- Makes an empty one.
-- @tparam[opt] table watchers an array of crown.registry.changes, which may be changed, that are told of each name that changes
-- @treturn Replica its `count` is how many names there are
function Replica.new(watchers)
  return setmetatable({ rows = Rows.new(), count = 0, owners = {}, epoch = 0, at = { epoch = 0, seq = 0 },
    watchers = watchers or {} }, Replica)
end

local function tell(self, name)
  for _, changes in ipairs(self.watchers) do changes:mark(name) end
end

local function owner_key(owner, token)
  return owner .. "\n" .. token
end

-- The names of an owner who is gone are no more; their rows are taken away in steps.
local function remove(self, name)
  local _, known = self.rows:get(name)
  if not known then return end
  self.rows:remove(name)
  tell(self, name)
  if known.gone then return end
  known.count = known.count - 1
  self.count = self.count - 1
  if known.count == 0 then self.owners[known.key] = nil end
end

local function put(self, name, owner, token, value)
  remove(self, name)
  local key = owner_key(owner, token)
  local known = self.owners[key]
  if not known then
    known = { owner = owner, token = token, count = 0, key = key }
    self.owners[key] = known
  end
  known.count = known.count + 1
  self.count = self.count + 1
  self.rows:put(name, value, known)
  tell(self, name)
end

local function remove_owner(self, owner, token)
  local known = self.owners[owner_key(owner, token)]
  if not known then return end
  known.gone = true
  self.owners[known.key] = nil
  self.count = self.count - known.count
  self.sweeping = self.rows.count
end

--- Makes one change.
-- @tparam table change
function Replica:apply(change)
  local kind = change[1]
  if kind == "+" then
    put(self, change[2], change[3], change[4], change[5])
  elseif kind == "-" then
    remove(self, change[2])
  elseif kind == "x" then
    remove_owner(self, change[2], change[3])
  end
end

--- Takes rows away that are nobody's any more, some at a time.
-- @number most rows that are looked at
-- @treturn boolean whether there is more to do
function Replica:sweep(most)
  local place, rows = self.sweeping, self.rows
  if not place then return false end
  place = math.min(place, rows.count)
  local stop = math.max(0, place - most)
  while place > stop do
    local name, _, known = rows:at(place)
    if known.gone then
      rows:remove(name)
      tell(self, name)
    end
    place = place - 1
  end
  self.sweeping = place > 0 and place or nil
  return place > 0
end

--- Who has a name.
-- @string name
-- @treturn string the value, as JSON; or nil
-- @treturn string the owner's member id
-- @treturn string the token of its join
function Replica:find(name)
  local value, known = self.rows:get(name)
  if not value or known.gone then return nil end
  return value, known.owner, known.token
end

--- A row of those that a walk from `rows.count` down to 1 sees.
-- @number place
-- @treturn string the name; nil where there is none (any more)
-- @treturn string its value
-- @treturn string its owner
-- @treturn string the owner's token
function Replica:row(place)
  local name, value, known = self.rows:at(place)
  if not name or known.gone then return nil end
  return name, value, known.owner, known.token
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
  return { rows = self.rows, place = self.rows.count, part = 0 }
end

--- The next part of a walk, of a size that fits a frame. Parts and the changes made between them, in the order in which they
-- come about, make a copy.
-- @tparam table walk
-- @tparam table header what the part bears besides `part`, `last` and `names`
-- @treturn table the part, its `last` true at the end; or nil where all the names have become others meanwhile
function Replica:part(walk, header)
  if walk.rows ~= self.rows then return nil end
  local names, bytes, place = {}, 0, math.min(walk.place, self.rows.count)
  local stop = math.max(0, place - Replica.PART_ROWS)
  while place > stop and bytes < PART_BYTES do
    local name, value, owner, token = self:row(place)
    if name then
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
    self.gathered = { from = from, epoch = part.epoch, seq = part.seq, next = 1, copy = Replica.new() }
  end
  local gathered = self.gathered
  if not gathered or gathered.from ~= from or gathered.next ~= part.part or gathered.epoch ~= part.epoch
    or gathered.seq ~= part.seq then
    self.gathered = nil
    return nil
  end
  for _, one in ipairs(part.names) do put(gathered.copy, one[1], one[2], one[3], one[4]) end
  gathered.next = part.part + 1
  return part.last
end

--- Takes what was gathered.
function Replica:adopt()
  local gathered = self.gathered
  self.gathered = nil
  for _, changes in ipairs(self.watchers) do changes:replaced(self.rows, gathered.copy.rows) end
  self.rows, self.owners, self.count = gathered.copy.rows, gathered.copy.owners, gathered.copy.count
  self.sweeping = gathered.copy.sweeping
  self.at = { epoch = gathered.epoch, seq = gathered.seq }
end

local function make_all(self, changes)
  for _, change in ipairs(changes) do self:apply(change) end
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
    make_all(gathered.copy, changes)
    gathered.seq = gathered.seq + #changes
    return nil
  end
  if self.at.epoch ~= epoch or first ~= self.at.seq + 1 then return false end
  make_all(self, changes)
  self.at.seq = self.at.seq + #changes
  return true
end

--- Goes on under a new term, whose leader began with what is here.
-- @number epoch
-- @tparam table from the position that it began with
-- @treturn boolean whether that is this one's
function Replica:resume(epoch, from)
  self.gathered = nil -- of a link that was lost
  if self.at.epoch == epoch then return true end
  if self.at.epoch ~= from.epoch or self.at.seq ~= from.seq then return false end
  self.at = { epoch = epoch, seq = 0 }
  return true
end

return Replica
