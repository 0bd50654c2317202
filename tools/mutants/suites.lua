--- Which tests watch a file: spec/suites says it, for `make check` and for the mutants.
local suites = {}

suites.PATH = "spec/suites"

local function words(text)
  local found = {}
  for word in text:gmatch "%S+" do found[#found + 1] = word end
  return found
end

--- @return an array of `{ prefix, narrow = { UNIT… }, wide = { UNIT… } }`, the longest prefix first
function suites.load(path)
  local rows = {}
  for line in io.lines(path or suites.PATH) do
    local prefix, narrow, wide = line:match "^([^#%s]%S*)%s+([^|]*)|?(.*)$"
    if prefix then rows[#rows + 1] = { prefix = prefix, narrow = words(narrow), wide = words(wide) } end
  end
  table.sort(rows, function(a, b) return #a.prefix > #b.prefix end)
  return rows
end

local function expand(patterns)
  local units = {}
  for _, pattern in ipairs(patterns) do
    if pattern:find "[*?]" then
      local pipe = io.popen("ls -d " .. pattern .. " 2>/dev/null")
      for path in pipe:lines() do units[#units + 1] = path end
      pipe:close()
    else
      units[#units + 1] = pattern
    end
  end
  return units
end

--- The tests of a file. @return narrow ones, then wide ones; nil where no line speaks of the file
function suites.of(rows, file)
  if file:find "^spec/.*_spec%.lua$" then return { file }, {} end
  for _, row in ipairs(rows) do
    if file:sub(1, #row.prefix) == row.prefix then return expand(row.narrow), expand(row.wide) end
  end
end

return suites
