--- The names that this node has registered, and its writes on their way: pure.
-- @internal crown.registry.own_names

local elector = require "crown.registry.elector"
local rows = require "crown.core.rows"
local Writes = require "crown.registry.writes"

local OwnNames = {}
OwnNames.__index = OwnNames

local POST_BYTES = 25000  -- of writes in one message
local AT_ONCE = 1000      -- names that are registered again side by side
local IN_A_TURN = 500     -- names that are looked at before others get their turn
local WRITES_A_TURN = 50  -- of them
local LOOK_AGAIN = 0.5    -- seconds until what could not be registered again is tried once more
local WRITE_BYTES = 128   -- what a write needs besides its name and value, about

local SURE, UNSURE = 1, 0

-- Writes that come in one turn go out in one message.
local function post(self, leader, write)
  local posted, effects = self.posted, self.member.effects
  if posted and posted.to == leader and posted.bytes < POST_BYTES then
    posted.writes[#posted.writes + 1] = write
  else
    posted = { to = leader, writes = { write }, bytes = 0 }
    self.posted = posted
    effects.soon(function()
      if self.posted == posted then self.posted = nil end
      effects.send(leader, { kind = "write", writes = posted.writes })
    end)
  end
  posted.bytes = posted.bytes + #write.op.name + #(write.op.value or "") + WRITE_BYTES
end

-- Hands a write to whoever leads. Returns who that is; or nil and why it cannot be now.
local function try(self, request, op)
  local member = self.member
  local view = member.view
  if not member.joined or member.leaving then return nil, member.refused or "this node is not a member of the registry" end
  op.token = member.token
  if not view.leader then return nil, "the registry has no leader" end
  if elector.changing(view) then return nil, "the registry is changing over to " .. view.leader end
  if view.leader == member.id then
    if not member.authority then return nil, "the leader is not acting yet" end
    member.authority:write(member.id, op, function(result) self.writes:answered(request, result) end)
  elseif member.linked[view.leader] then
    post(self, view.leader, { request = request, op = op })
  else
    return nil, "there is no link to the leader " .. view.leader
  end
  return view.leader
end

--- Makes the list.
-- @tparam Member member
-- @treturn OwnNames its `writes` are of crown.registry.writes
function OwnNames.new(member)
  -- `held`: names that this node was told it has, with their values, and SURE where no later value may have come to count;
  -- `unsure`: others that it may have; `given_up`: the last write that gives a name up, while writes of that name are on
  -- their way; `place`: how far the look at what is missing has come; `surplus`: how far that at what is there and was given
  -- up; `again`: it has to be made once more.
  local self = setmetatable({ member = member, held = rows.new(), unsure = {}, given_up = {}, serial = 0, restoring = 0 },
    OwnNames)
  self.writes = Writes.new(function(request, op) return try(self, request, op) end, member.effects)
  return self
end

local function is_mine(self, owner, token)
  return owner == self.member.id and token == self.member.token
end

-- A leader that could not come by all that was acknowledged may have an older value.
local function is_missing(self, name, value, sure)
  local found, owner, token = self.member.replica:find(name)
  return not is_mine(self, owner, token) or sure == SURE and found ~= value
end

-- What is still missing is looked for once more, a while later: whoever could not answer may not be able to just yet.
local function look_again(self)
  if self.again then return end
  self.again = true
  self.member.effects.after(LOOK_AGAIN, function()
    self.again = false
    self:restore()
  end)
end

-- What was asked for may be there, or not.
local function doubt(self, name, value)
  local known = self.held:get(name)
  if known == nil then
    self.unsure[name] = true
  elseif known ~= value then
    self.held:put(name, known, UNSURE)
  end
end

-- What a write that was answered means for the names that are ours. One that was given up since stays so, however late the
-- yes comes; a yes of an earlier membership is one about the past.
local function settle(self, op, serial, fine, other)
  local name, given_up = op.name, self.given_up[op.name]
  if not self.writes:is_busy(name) then self.given_up[name] = nil end
  if op.what == "unregister" or given_up and given_up > serial then return end
  if fine == nil then doubt(self, name, op.value) else self.unsure[name] = nil end
  if fine then
    self.held:put(name, op.value, SURE)
    if op.token ~= self.member.token then look_again(self) end
  elseif self.held:get(name) ~= nil and fine == nil then
    look_again(self)
  elseif self.held:get(name) ~= nil then
    self.held:remove(name)
    self.member.effects.emit("oracle.registry.name_lost", { lost = name, owner = other.owner })
  end
end

--- Registers or unregisters a name.
-- @tparam table op `{ what =, name =, value = }`
-- @number timeout seconds
-- @tparam function done called with true; false and `{ owner =, value = }`; or nil, message, code
function OwnNames:write(op, timeout, done)
  self.serial = self.serial + 1
  local serial = self.serial
  if op.what == "unregister" then
    self.held:remove(op.name)
    self.unsure[op.name] = nil
    self.given_up[op.name] = serial
  end
  self.writes:add(op, timeout, function(fine, other, code)
    settle(self, op, serial, fine, other)
    done(fine, other, code)
  end)
end

local go_on

local function write_again(self, op)
  self.restoring = self.restoring + 1
  self:write(op, self.member.options.ttl, function(fine)
    self.restoring = self.restoring - 1
    if fine == nil and op.what == "unregister" then look_again(self) end
    if self.restoring == AT_ONCE / 2 then go_on(self) end
  end)
end

-- A name whose writes are on their way waits: what becomes of it is seen when the last of them is answered.
local function restore_one(self, place)
  local name, value, sure = self.held:at(place)
  if not is_missing(self, name, value, sure) then return end
  if self.writes:is_busy(name) then return look_again(self) end
  write_again(self, { what = "register", name = name, value = value })
end

-- Nor may an older copy bring back what was given up.
local function give_up_one(self, place)
  local name, _, owner, token, gone = self.member.replica.names:at(place)
  if not name or gone or not is_mine(self, owner, token) or self.held:get(name) ~= nil or self.unsure[name] then return end
  if not self.writes:is_busy(name) then write_again(self, { what = "unregister", name = name }) end
end

-- Looks at some rows, from the last one of so many on; returns from where there are more.
local function walk(self, count, from, fn)
  local place, looked = math.min(from or 0, count()), 0
  local most = math.min(AT_ONCE, self.restoring + WRITES_A_TURN)
  while place > 0 and self.restoring < most and looked < IN_A_TURN do
    fn(self, place)
    place, looked = math.min(place - 1, count()), looked + 1
  end
  return place > 0 and place or nil
end

local function look(self)
  local member = self.member
  if not member.joined or member.leaving then return end
  self.place = walk(self, function() return self.held:count() end, self.place, restore_one)
  self.surplus = walk(self, function() return member.replica.names:places() end, self.surplus, give_up_one)
  go_on(self)
end

-- In a turn of its own: however often it is asked for, a turn has one look.
go_on = function(self)
  if self.looking or not (self.place or self.surplus) or self.restoring >= AT_ONCE then return end
  self.looking = true
  self.member.effects.after(0, function()
    self.looking = false
    look(self)
  end)
end

--- Registers again what is not there, and gives up again what is there still: after a new join, or after a leader that could
-- not be asked for it. Each name is tried until a leader has answered.
function OwnNames:restore()
  self.place, self.surplus = self.held:count(), self.member.replica.names:places()
  go_on(self)
end

return OwnNames
