--- What came of each slip of a run: a file that several add to.
local slip = require "slips.slip"
local sources = require "slips.sources"

local results = {}

local VERDICTS = { killed = true, survived = true, untested = true }

local function clean(text) return (text:gsub("[\t\n]+", " ")) end

--- Adds one, and tells of it when it survived.
function results.add(directory, one, state, unit, test, seconds)
  local file = assert(io.open(directory .. "/results", "a"))
  file:write(table.concat({ state, clean(slip.name(one)), clean(unit), clean(test), ("%.1f"):format(seconds) }, "\t"), "\n")
  file:close()
  if VERDICTS[state] then
    local before, after = slip.lines(one, one.text)
    print(("%-9s %5.1f s  %s:%d %s: %s → %s  [%s%s]"):format(state, seconds, one.file, one.line, one.operator, before, after,
      clean(unit), test ~= "" and ": " .. clean(test) or ""))
    io.flush()
  end
end

--- @return all of a run, by the slips' names: `{ state, unit, test, seconds }`
function results.load(directory)
  local found = {}
  for line in (sources.read(directory .. "/results") or ""):gmatch "[^\n]+" do
    local state, name, unit, test, seconds = line:match "^(.-)\t(.-)\t(.-)\t(.-)\t(.-)$"
    found[name] = { state = state, unit = unit, test = test, seconds = tonumber(seconds) }
  end
  return found
end

--- How many were killed or not.
function results.verdicts(directory)
  local count = 0
  for _, result in pairs(results.load(directory)) do
    if VERDICTS[result.state] then count = count + 1 end
  end
  return count
end

--- What the name of a slip is in the file.
function results.name(one) return clean(slip.name(one)) end

return results
