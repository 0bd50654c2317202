--- What is known of names, two fields each: pure. It can be walked in steps while it changes: from the last row to the first,
-- since a row that goes is filled with the last one, which such a walk has seen already. What is added meanwhile is not
-- seen.
--
-- A table that grows is copied at once, and the collector looks at a table at once. So that neither takes long however many
-- names there are, rows lie in many small tables.
-- @module crown.registry.rows

local Rows = {}
Rows.__index = Rows

local SHARDS = 256 -- tables that tell where a name's row is
local ROOM = 1024  -- rows in a table of them

--- Makes an empty one.
-- @treturn Rows its `count` is how many there are
function Rows.new()
  return setmetatable({ count = 0, shards = {}, names = {}, firsts = {}, seconds = {} }, Rows)
end

local byte, floor = string.byte, math.floor

-- Names are often alike but for some letters near their ends.
local function shard_of(name)
  local size = #name
  local a, b, c = byte(name, -3, -1)
  local d, e, f = byte(name, floor(size / 2), floor(size / 2) + 2)
  return (size + (a or 0) + (b or 0) * 7 + (c or 0) * 29 + (d or 0) * 3 + (e or 0) * 11 + (f or 0) * 53) % SHARDS + 1
end

local function places_of(self, name)
  local shard = shard_of(name)
  local places = self.shards[shard]
  if not places then
    places = {}
    self.shards[shard] = places
  end
  return places
end

local function set(self, place, name, first, second)
  local table_at = floor((place - 1) / ROOM) + 1
  local names = self.names[table_at]
  if not names then
    names = {}
    self.names[table_at], self.firsts[table_at], self.seconds[table_at] = names, {}, {}
  end
  local at = (place - 1) % ROOM + 1
  names[at], self.firsts[table_at][at], self.seconds[table_at][at] = name, first, second
end

--- A row.
-- @number place from 1 to `count`
-- @return its name and both fields, or nil
function Rows:at(place)
  local table_at = floor((place - 1) / ROOM) + 1
  local names = self.names[table_at]
  if not names then return nil end
  local at = (place - 1) % ROOM + 1
  return names[at], self.firsts[table_at][at], self.seconds[table_at][at]
end

--- Takes a name, or changes its fields.
-- @string name
-- @param first not nil
-- @param second not nil
function Rows:put(name, first, second)
  local places = places_of(self, name)
  local place = places[name]
  if not place then
    place = self.count + 1
    self.count, places[name] = place, place
  end
  set(self, place, name, first, second)
end

--- Drops a name.
-- @string name
function Rows:remove(name)
  local places, last = places_of(self, name), self.count
  local place = places[name]
  if not place then return end
  local moved, first, second = self:at(last)
  set(self, place, moved, first, second)
  places_of(self, moved)[moved] = place
  places[name] = nil
  set(self, last, nil, nil, nil)
  self.count = last - 1
end

--- The fields of a name.
-- @string name
-- @return both, or nil
function Rows:get(name)
  local places = self.shards[shard_of(name)]
  local place = places and places[name]
  if not place then return nil end
  local _, first, second = self:at(place)
  return first, second
end

return Rows
