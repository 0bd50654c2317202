--- Names that have changed in a copy, for somebody who wants to hear of each: pure. He is told what a name has become, not
-- each step on the way, so that what waits for somebody slow is bounded by the names there are.
-- @internal crown.registry.changes

local Changes = {}
Changes.__index = Changes

local ROWS_AT_ONCE = 1000 -- that are compared in a turn

--- Makes an empty list.
-- @tparam function wake called when there is something, and nobody has been at it since `rest`
-- @treturn Changes
function Changes.new(wake)
  return setmetatable({ wake = wake, awake = false, names = {}, first = 1, last = 0, known = {}, copies = {} }, Changes)
end

local function rouse(self)
  if self.awake then return end
  self.awake = true
  self.wake()
end

local function add(self, name)
  if self.known[name] then return end
  self.last = self.last + 1
  self.names[self.last], self.known[name] = name, true
end

--- A name has changed.
-- @string name
function Changes:mark(name)
  add(self, name)
  rouse(self)
end

--- All the names have become others. Rows of owners who are gone may not have been told of yet.
-- @tparam Names old
-- @tparam Names new
-- @tparam function compared called when the old ones are needed no more
function Changes:replaced(old, new, compared)
  self.copies[#self.copies + 1] = { { names = old, other = new, place = old:places() },
    { names = new, other = old, place = new:places() }, compared = compared }
  rouse(self)
end

-- Looks at some rows of one copy, as the other one has them.
local function compare(self, walk)
  local place = math.min(walk.place, walk.names:places())
  local stop = math.max(0, place - ROWS_AT_ONCE)
  for i = place, stop + 1, -1 do
    local name, value, owner = walk.names:at(i)
    local its, other = walk.other:find(name)
    if value ~= its or owner ~= other then add(self, name) end
  end
  walk.place = stop
  return stop == 0
end

local function look(self)
  local walks = self.copies[1]
  if compare(self, walks[1]) then table.remove(walks, 1) end
  if #walks > 0 then return end
  table.remove(self.copies, 1)
  walks.compared()
end

--- Takes what has changed.
-- @number most names
-- @treturn table an array of names, which may be empty; nil when there is nothing more: `wake` is called then
function Changes:take(most)
  if self.copies[1] then look(self) end
  local names = {}
  while self.first <= self.last and #names < most do
    local name = self.names[self.first]
    names[#names + 1] = name
    self.names[self.first], self.known[name] = nil, nil
    self.first = self.first + 1
  end
  if names[1] or self.copies[1] then return names end
  self.awake = false
end

--- Ends it: copies that were still to be compared are needed no more.
function Changes:close()
  local copies = self.copies
  self.copies = {}
  for _, walks in ipairs(copies) do walks.compared() end
end

return Changes
