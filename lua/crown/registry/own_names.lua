--- The names that this node has registered, and its writes on their way: pure.
-- @module crown.registry.own_names

local elector = require "crown.registry.elector"
local Writes = require "crown.registry.writes"

local OwnNames = {}
OwnNames.__index = OwnNames

local POST_BYTES = 200000 -- of writes in one message
local WRITE_BYTES = 128   -- what a write needs besides its name and value, about

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
  local self = setmetatable({ member = member, values = {} }, OwnNames)
  self.writes = Writes.new(function(request, op) return try(self, request, op) end, member.effects)
  return self
end

--- Registers or unregisters a name.
-- @tparam table op `{ what =, name =, value = }`
-- @number timeout seconds
-- @tparam function done called with true; false and `{ owner =, value = }`; or nil, message, code
function OwnNames:write(op, timeout, done)
  if op.what == "unregister" then self.values[op.name] = nil end
  self.writes:add(op, timeout, function(fine, other, code)
    if fine and op.what == "register" then self.values[op.name] = op.value end
    done(fine, other, code)
  end)
end

--- Registers again what is not there: after a new join, or after a leader that could not be asked for it.
function OwnNames:restore()
  local member = self.member
  if not member.joined or member.leaving then return end
  for name, value in pairs(self.values) do
    local entry = member.replica.names[name]
    if not entry or entry.owner ~= member.id or entry.token ~= member.token then
      self:write({ what = "register", name = name, value = value }, member.options.ttl, function(fine, other)
        if fine ~= false then return end
        self.values[name] = nil
        member.effects.emit("oracle.registry.name_lost", { lost = name, owner = other.owner })
      end)
    end
  end
end

return OwnNames
