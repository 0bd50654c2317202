--- JSON: lua-cjson, but whole numbers keep every digit up to 2^53 (it writes fourteen), or all numbers do, and a list may stay
-- a list when it is empty (it writes an object).
-- @internal crown.text.json

local core = require "crown.core"

local json = {}

local LEAST_CUT = 1e14 -- cjson writes smaller whole numbers in full
local CJSON, MOST = 14, 17 -- significant digits that it writes, and that any number can be read again from

-- What stands for a number until it is text; nobody outside knows it.
local MARK = ("number:%s:"):format(core.token)

-- A number of which cjson would cut digits: its text. `exact`: also where it is no whole one, or too large for one.
local function uncut(number, exact)
  local size = math.abs(number)
  if number % 1 == 0 and size >= LEAST_CUT and size <= 2 ^ 53 then return ("%d"):format(number) end
  for digits = CJSON, exact and MOST or CJSON do
    local text = ("%%.%dg"):format(digits):format(number)
    if tonumber(text) == number then return digits > CJSON and text or nil end
  end
end

local function with_marks(value, path, exact)
  if type(value) == "number" then
    local text = uncut(value, exact)
    return text and MARK .. text or value
  end
  if type(value) ~= "table" then return value end
  if path[value] then error("cannot encode a table that contains itself", 0) end
  path[value] = true
  local copy = {}
  for key, one in pairs(value) do copy[key] = with_marks(one, path, exact) end
  path[value] = nil
  return copy
end

local function marked(value, exact)
  return (core.json.encode(with_marks(value, {}, exact)):gsub('"' .. MARK:gsub("%p", "%%%0") .. '([-+.e%d]+)"', "%1"))
end

--- Encodes a value.
-- @param value what lua-cjson takes
-- @param ... the keys whose values are lists, also when they are empty
-- @treturn string
-- @raise when the value holds what JSON cannot
function json.encode(value, ...)
  local text = core.json.encode(value)
  if text:find("e+1", 1, true) and text:find "%de%+1[45]" then -- the first is quick, and seldom there
    text = marked(value, false)
  end
  for _, key in ipairs { ... } do
    -- Inside a string the quotes would be escaped, so this finds keys alone.
    text = text:gsub(('"%s":{}'):format(key), ('"%s":[]'):format(key))
  end
  return text
end

--- Encodes a value so that each of its numbers is read again as what it was.
-- @param value what lua-cjson takes
-- @treturn string
-- @raise at the caller, when the value holds what JSON cannot
function json.exact(value)
  local fine, problem = pcall(core.json.encode, value)
  if not fine then error(problem, 2) end
  return marked(value, true)
end

local function is_list(value)
  local count = 0
  for _ in pairs(value) do count = count + 1 end
  return count > 0 and count == #value
end

local function write(value, path)
  if type(value) ~= "table" then return json.encode(value) end
  if path[value] then error("cannot encode a table that contains itself", 0) end
  path[value] = true
  local parts, list = {}, is_list(value)
  for key, one in pairs(value) do
    if list then parts[key] = write(one, path) else parts[#parts + 1] = json.encode(tostring(key)) .. ":" .. write(one, path) end
  end
  path[value] = nil
  if not list then table.sort(parts) end
  return (list and "[%s]" or "{%s}"):format(table.concat(parts, ","))
end

--- Encodes a value with the keys of each table in their order: Lua's own order is another one each time.
-- @param value what lua-cjson takes; a table with holes is an object
-- @treturn string
-- @raise when the value holds what JSON cannot
function json.ordered(value)
  return write(value, {})
end

--- Encodes for others than this runtime: a store may hold what is no UTF-8, and so no JSON. Each such byte becomes U+FFFD.
-- @param value what lua-cjson takes
-- @param ... the keys whose values are lists
-- @treturn string
function json.valid(value, ...)
  return core.utf8(json.encode(value, ...))
end

--- The same, as a line for programs.
-- @param value what lua-cjson takes
-- @param ... the keys whose values are lists
-- @treturn string
function json.line(value, ...)
  return json.valid(value, ...) .. "\n"
end

--- Decodes what has to be an object: of a list, too, Lua would make a table, in which nothing is missed by its name.
-- @string text
-- @treturn table or nil: it is no JSON, or no object
function json.object(text)
  if not text:find "^%s*{" then return nil end
  local fine, found = pcall(core.json.decode, text)
  return fine and found or nil
end

--- Decodes a list.
-- @string text
-- @treturn table or nil: it is none
function json.list(text)
  if not text:find "^%s*%[" then return nil end
  local fine, found = pcall(core.json.decode, text)
  return fine and found or nil
end

return json
