--- A member's copy of the names: pure. It knows how far it has come, `{ epoch, seq }`, and the highest epoch it has heard of;
-- whatever bears an older one is refused.
-- An entry is `{ value = JSON text, owner = member id, token = the owner's join token }`. Changes are arrays:
-- `{ "+", name, owner, token, value }`, `{ "-", name }`, `{ "x", owner, token }` (all names of an owner).
-- @module crown.registry.replica

local Replica = {}
Replica.__index = Replica

-- Bytes of names and values in one part of a snapshot: a frame has its bounds.
local PART_BYTES = 200000

--- Makes an empty one.
-- @treturn Replica
function Replica.new()
  return setmetatable({ names = {}, count = 0, owners = {}, epoch = 0, at = { epoch = 0, seq = 0 } }, Replica)
end

local function owner_key(owner, token)
  return owner .. "\n" .. token
end

local function remove(self, name)
  local entry = self.names[name]
  if not entry then return end
  local key = owner_key(entry.owner, entry.token)
  local left = self.owners[key].count - 1
  if left > 0 then self.owners[key].count = left else self.owners[key] = nil end
  self.names[name] = nil
  self.count = self.count - 1
end

local function put(self, name, owner, token, value)
  remove(self, name)
  local key = owner_key(owner, token)
  local known = self.owners[key] or { owner = owner, token = token, count = 0 }
  known.count = known.count + 1
  self.owners[key] = known
  self.names[name] = { value = value, owner = owner, token = token }
  self.count = self.count + 1
end

local function remove_owner(self, owner, token)
  local gone = {}
  for name, entry in pairs(self.names) do
    if entry.owner == owner and entry.token == token then gone[#gone + 1] = name end
  end
  for _, name in ipairs(gone) do remove(self, name) end
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

--- All names, in parts that fit a frame each.
-- @tparam table header what each part bears besides `part`, `parts` and `names`
-- @treturn table the parts
function Replica:parts(header)
  local parts, names, bytes = {}, {}, 0
  local function close()
    local part = { part = #parts + 1, names = names }
    for key, value in pairs(header) do part[key] = value end
    parts[#parts + 1] = part
    names, bytes = {}, 0
  end
  for name, entry in pairs(self.names) do
    names[#names + 1] = { name, entry.owner, entry.token, entry.value }
    bytes = bytes + #name + #entry.value + #entry.owner + #entry.token + 16
    if bytes > PART_BYTES then close() end
  end
  if #names > 0 or #parts == 0 then close() end
  for _, part in ipairs(parts) do part.parts = #parts end
  return parts
end

--- Gathers parts as they come, in order.
-- @tparam table part with `epoch` and `seq`: the position that they make
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
  return part.part >= part.parts
end

--- Takes what was gathered.
function Replica:adopt()
  local gathered = self.gathered
  self.gathered = nil
  self.names, self.owners, self.count = gathered.copy.names, gathered.copy.owners, gathered.copy.count
  self.at = { epoch = gathered.epoch, seq = gathered.seq }
end

--- Takes changes of the leader's stream.
-- @number epoch
-- @number first the number of the first change
-- @tparam table changes
-- @treturn boolean whether they follow on what is here; if not, the stream has to begin anew
function Replica:follow(epoch, first, changes)
  if self.at.epoch ~= epoch or first ~= self.at.seq + 1 then return false end
  for _, change in ipairs(changes) do self:apply(change) end
  self.at.seq = self.at.seq + #changes
  return true
end

return Replica
