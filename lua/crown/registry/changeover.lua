--- How a new leader comes by the names: pure. Its own copy will do when it has all that was ever acknowledged, which the store
-- knows; else it asks the members it can reach, the old leader among them, and takes the copy of one that has. Whoever is
-- asked refuses every older epoch from then on, so an old leader hands over and lets go in one step.
--
-- `effects`: `now()`, `after(seconds, fn)`, `send(id, message)`, `emit(event, fields)`.
-- @internal crown.registry.changeover

local Replica = require "crown.registry.replica"

local Changeover = {}
Changeover.__index = Changeover

local function best_of(self)
  local best, from = self.replica.at, nil
  for id, at in pairs(self.positions) do
    if not Replica.reaches(best, at) then best, from = at, id end
  end
  return best, from
end

local function finish(self)
  if self.over then return end
  self.over = true
  local at, committed = self.replica.at, self.committed
  if not Replica.reaches(at, committed) then
    self.effects.emit("oracle.registry.names_missed", { epoch = self.epoch, held = at.seq, held_epoch = at.epoch,
      committed = committed.seq, committed_epoch = committed.epoch })
  end
  self.done()
end

local function fetch(self, from)
  self.fetching, self.came = from, false
  self.effects.send(from, { kind = "fetch", epoch = self.epoch })
end

-- A link may outlive a membership: somebody who was thrown out may be the last to have it all.
local function all_asked(self)
  for id in pairs(self.asked) do
    if not self.positions[id] then return false end
  end
  for id in pairs(self.members) do
    if id ~= self.me and not self.positions[id] then return false end
  end
  return true
end

local function look(self)
  if self.over or self.fetching then return end
  local best, from = best_of(self)
  if not Replica.reaches(best, self.committed) then
    if not all_asked(self) then return end
    self.tried = true -- nobody has it any more
  end
  if from then
    fetch(self, from)
  elseif not self.flushing then
    finish(self)
  end
end

-- Nobody who has it all was to be had in time: the best that can be reached has to do, unless that is not wanted.
local function fall_back(self)
  if self.over then return end
  if self.fetching and self.came then -- it is large, or the way is slow
    self.came = false
    return self:limit()
  end
  local best, from = best_of(self)
  self.flushing = nil
  if from and not self.tried and (not self.strict or Replica.reaches(best, self.committed)) then
    self.tried = true
    fetch(self, from)
  elseif self.strict and not Replica.reaches(self.replica.at, self.committed) and not all_asked(self) then
    self.fetching, self.tried = nil, nil
    for id in pairs(self.asked) do self.effects.send(id, { kind = "seek", epoch = self.epoch }) end
  else
    return finish(self)
  end
  self:limit()
end

--- Gives up waiting after the snapshot time-out.
function Changeover:limit()
  self.effects.after(self.timeout, function() fall_back(self) end)
end

--- Begins one.
-- @tparam table options `me`, `epoch`, `replica`, `members` (the map), `committed` (the position of the last acknowledged
-- write), `from` (the old leader, where it is still there to hand over), `timeout` seconds, `strict`: not without all that was
-- acknowledged while a member that may have it is still to be asked
-- @tparam table peers ids that can be sent to, as keys
-- @tparam table effects
-- @tparam function done called once the replica holds what the term begins with
-- @treturn Changeover its `parts` is how many parts of a copy have come
function Changeover.new(options, peers, effects, done)
  local self = setmetatable({ epoch = options.epoch, replica = options.replica, committed = options.committed,
    me = options.me, members = options.members, timeout = options.timeout, strict = options.strict, effects = effects,
    done = done, positions = {}, asked = {}, parts = 0 }, Changeover)
  self.flushing = options.from and peers[options.from] and options.from
  self:limit()
  for id in pairs(peers) do self:linked(id) end
  look(self)
  return self
end

--- Takes a new member map.
-- @tparam table members
function Changeover:set_members(members)
  self.members = members
  look(self)
end

--- A member can be sent to.
-- @string id
function Changeover:linked(id)
  if self.over then return end
  self.asked[id] = true
  self.effects.send(id, { kind = "seek", epoch = self.epoch })
end

--- A member cannot be reached any more.
-- @string id
function Changeover:unlinked(id)
  self.asked[id], self.positions[id] = nil, nil
  if self.flushing == id then self.flushing = nil end
  if self.fetching == id then self.fetching = nil end
  look(self)
end

--- A member says how far its copy has come.
-- @string id
-- @tparam table at `{ epoch, seq }`
function Changeover:position(id, at)
  if self.over then return end
  self.positions[id] = at
  if self.flushing == id then self.flushing = nil end
  look(self)
end

--- A part of the copy that was asked for.
-- @string id
-- @tparam table part
function Changeover:copy(id, part)
  if self.over or self.fetching ~= id then return end
  self.came, self.parts = true, self.parts + 1
  local whole = self.replica:gather(part, id)
  if whole == false then return end
  if whole then
    self.replica:adopt()
    if self.tried or Replica.reaches(self.replica.at, self.committed) then return finish(self) end
  end
  self.fetching = nil
  look(self)
end

--- Ends it without a result.
function Changeover:close()
  self.over = true
end

return Changeover
