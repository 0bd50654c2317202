--- What is known of names, two fields each: pure. It can be walked in steps while it changes: from the last row to the first,
-- since a row that goes is filled with the last one, which such a walk has seen already. What is added meanwhile is not
-- seen.
-- @module crown.registry.rows

local Rows = {}
Rows.__index = Rows

--- Makes an empty one.
-- @treturn Rows its `count` is how many there are
function Rows.new()
  return setmetatable({ count = 0, places = {}, names = {}, firsts = {}, seconds = {} }, Rows)
end

--- Takes a name, or changes its fields.
-- @string name
-- @param first not nil
-- @param second not nil
function Rows:put(name, first, second)
  local place = self.places[name]
  if not place then
    place = self.count + 1
    self.count, self.places[name], self.names[place] = place, place, name
  end
  self.firsts[place], self.seconds[place] = first, second
end

--- Drops a name.
-- @string name
function Rows:remove(name)
  local place, last = self.places[name], self.count
  if not place then return end
  local moved = self.names[last]
  self.names[place], self.firsts[place], self.seconds[place] = moved, self.firsts[last], self.seconds[last]
  self.places[moved] = place
  self.places[name], self.names[last], self.firsts[last], self.seconds[last] = nil, nil, nil, nil
  self.count = last - 1
end

--- The fields of a name.
-- @string name
-- @return both, or nil
function Rows:get(name)
  local place = self.places[name]
  if not place then return nil end
  return self.firsts[place], self.seconds[place]
end

--- A row.
-- @number place from 1 to `count`
-- @return its name and both fields, or nil
function Rows:at(place)
  return self.names[place], self.firsts[place], self.seconds[place]
end

return Rows
