--- Writes down in the list what noticed each mutant, so that it is tried first from then on.
local choose = require "mutants.choose"
local list = require "mutants.list"

-- A test's name as a pattern for busted: its letters, and anything for the rest.
local function pattern_of(name)
  return (name:gsub("[^%w ]", "."):gsub("%s+$", ""))
end

local function words_of(result)
  if result.test == "it does not end" or result.unit:find "^c/[^/]+$" then return nil end
  local unit = result.unit:match "^%S+"
  if unit:find "%.lua" then return unit .. " " .. pattern_of(result.test) end
  if unit:find "^c/" and result.test:find "^[%w_]+$" then return unit .. " " .. result.test end
  return unit
end

-- @treturn boolean true
return function(records)
  local results, lines, id = choose.results(records), {}, nil
  for line in io.lines(list.PATH) do
    id = line:match "^mutant (.*)$" or id
    local result = id and results[id]
    local words = result and result.status == "killed" and words_of(result)
    if words and line:find "^%- " and not lines[#lines]:find "^%- " then lines[#lines + 1] = "by " .. words end
    if not (words and line:find "^by ") then lines[#lines + 1] = line end
  end
  local file = assert(io.open(list.PATH, "w"))
  file:write(table.concat(lines, "\n"), "\n")
  assert(file:close())
  return true
end
