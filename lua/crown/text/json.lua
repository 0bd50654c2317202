--- JSON for programs, in which a list stays a list when it is empty: lua-cjson 2.1 writes an empty table as an object.
-- @module crown.text.json

local core = require "crown.core"

local json = {}

--- Encodes an object.
-- @tparam table object
-- @param ... the keys whose values are lists, anywhere in it
-- @treturn string one line
function json.encode(object, ...)
  local text = core.json.encode(object)
  for _, key in ipairs { ... } do
    -- Inside a string the quotes would be escaped, so this finds keys alone.
    text = text:gsub(('"%s":{}'):format(key), ('"%s":[]'):format(key))
  end
  return text .. "\n"
end

return json
