--- Who is to hear of which lease, for a client that all elections of this runtime share. It holds nobody: an election that has
-- ended, and that nobody knows any more, is left out.
-- @internal crown.oracle.followers

local core = require "crown.core"

local Followers = {}
Followers.__index = Followers

-- Those on one lease, where they are several. Each of them holds it, so it is there as long as one of them is.
local Several = { __mode = "k" }

local function is_several(there) return getmetatable(there) == Several end

--- Makes one.
-- @treturn Followers
function Followers.new()
  return setmetatable({ by_name = setmetatable({}, { __mode = "v" }) }, Followers)
end

-- A member may follow more than one server.
local function join(self, several, member)
  several[member] = true
  member.several = member.several or {}
  member.several[self] = several
end

local function add(self, name, member)
  local there = self.by_name[name]
  if not there then
    self.by_name[name] = member
    return
  end
  local several = there
  if not is_several(there) then
    several = setmetatable({}, Several)
    self.by_name[name] = several
    join(self, several, there)
  end
  join(self, several, member)
end

--- Adds an election's state, for as long as somebody holds it.
-- @string name of the lease
-- @tparam table member its field `several` is used here
function Followers:add(name, member)
  core.atomic(add, self, name, member)
end

local function put_all(list, there)
  if not is_several(there) then
    list[#list + 1] = there
    return
  end
  for member in pairs(there) do list[#list + 1] = member end
end

local function listed(there)
  local list = {}
  put_all(list, there)
  return list
end

local function once(there, before)
  if not before then return there end
end

local function all(self)
  local list = {}
  for _, there in pairs(self.by_name) do put_all(list, there) end
  return list
end

local function following(list, before)
  local at = before and list.at or 0
  list.at = at + 1
  return list[at + 1]
end

--- Those on one lease: mostly one, for which no table is made.
-- @string name
-- @treturn function an iterator, for `for`
function Followers:of(name)
  local there = self.by_name[name]
  if there and is_several(there) then return following, core.atomic(listed, there) end
  return once, there
end

--- All of them.
-- @treturn table an array
function Followers:all()
  return core.atomic(all, self)
end

return Followers
