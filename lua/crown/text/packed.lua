--- Records of which there may be a hundred thousand. Their fields are known beforehand and stand in an array, which takes about
-- half as much memory as a table with names does. They are read and written by name all the same; a field that is not known
-- beforehand may be added to any of them, and makes that one larger.
-- @internal crown.text.packed

local is_there, new = pcall(require, "table.new")
if not is_there then new = function() return {} end end -- another Lua, which only needs more memory

local packed = {}

--- Makes a kind of records.
-- @tparam table fields an array of names, the fields that most of them have
-- @tparam[opt] table class where fields and methods are found that a record lacks
-- @treturn function makes a record: each call a new one, without any field set
function packed.kind(fields, class)
  local places, last = {}, #fields - 1
  for i, field in ipairs(fields) do places[field] = i - 1 end
  class = class or {}
  local kind = {
    __index = function(one, field)
      local place, value = places[field], nil
      if place then value = rawget(one, place) end
      if value == nil then return class[field] end
      return value
    end,
    __newindex = function(one, field, value)
      local place = places[field]
      if place or value ~= nil then rawset(one, place or field, value) end -- nil would make room for a field
    end,
  }
  return function() return setmetatable(new(last, 0), kind) end
end

return packed
