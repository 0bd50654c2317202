--- Runs the tests that watch a file, the narrow and quick ones first, some at a time, until one fails.
local executed = require "slips.executed"
local sources = require "slips.sources"
local suites = require "mutants.suites"
local tree = require "mutants.tree"
local units = require "mutants.units"

local tests = { HOME = "build-slips" }

local WIDTH = 8                       -- at a time: specs and tests of processes mostly wait
local AT_FIRST = { 4, 12, math.huge }  -- so many are built and run, then so many more: most slips are found by the first
local PATIENCE = 2                    -- of a test by itself, when others ran beside it at first
local UNKNOWN_SECONDS = 120           -- for one whose time on healthy code is not known
local MOST_TIMES, MORE_SECONDS = 4, 5 -- of its healthy time
local TIMES, KILLERS, SOUND = tests.HOME .. "/times", tests.HOME .. "/killers", tests.HOME .. "/sound"

local TOGETHER = "mkdir -p build/slip.logs && tools/slips/together.sh %d build/slip.list build/slip.logs"

local rows, healthy, digest = nil, {}, nil

local function lines_of(path)
  return (sources.read(path) or ""):gmatch "[^\n]+"
end

local function note(path, ...)
  local file = assert(io.open(path, "a"))
  file:write(table.concat({ ... }, "\t"), "\n")
  file:close()
end

--- Reads what earlier runs have left.
-- @string of what the tests depend on
-- @number until_s when the time is over
function tests.load(of, until_s)
  rows, digest, tests.until_s = suites.load(), of, until_s
  for line in lines_of "build/test-times" do -- what `make test` has left
    local unit, ms = line:match "^(%S+) (%d+)$"
    if unit then healthy[unit:gsub("^build/spec/c/", "c/")] = tonumber(ms) / 1000 end
  end
  for line in lines_of(TIMES) do
    local unit, seconds = line:match "^(.*)\t(.*)$"
    if unit then healthy[unit] = tonumber(seconds) end
  end
end

local function time_of(unit) return executed.seconds(unit) or healthy[unit] or 0 end

-- The units of a group by themselves, without those that do not execute the function.
local function narrowed(group, file, func)
  local found = {}
  for _, unit in ipairs(units.single(group)) do
    for _, part in ipairs(executed.parts(unit)) do
      if executed.may(part, file, func) then found[#found + 1] = part end
    end
  end
  return found
end

--- The tests of a file. What killed another slip of it comes first.
-- @string file
-- @param[opt] only_narrow leaves out what stands behind the bar in spec/suites
-- @string[opt] func name of a function of C: without tests of which `make executed` knows that they do not execute it
function tests.of(file, only_narrow, func)
  local killers, chosen, seen = {}, {}, {}
  for line in lines_of(KILLERS) do
    local of, unit = line:match "^(.*)\t(.*)$"
    if of == file then killers[unit] = (killers[unit] or 0) + 1 end
  end
  local narrow, wide = suites.of(rows, file)
  for _, group in ipairs { narrow, only_narrow and {} or wide } do
    group = narrowed(group, file, func)
    table.sort(group, function(a, b)
      if (killers[a] or 0) ~= (killers[b] or 0) then return (killers[a] or 0) > (killers[b] or 0) end
      return time_of(a) < time_of(b)
    end)
    for _, unit in ipairs(group) do
      if not seen[unit] then chosen[#chosen + 1] = unit end
      seen[unit] = true
    end
  end
  return chosen
end

--- Tests in short: how many of each folder.
function tests.told(chosen)
  local counts, order = {}, {}
  for _, unit in ipairs(chosen) do
    local folder = unit:match "^(.*)/[^/]+$" or unit
    if not counts[folder] then order[#order + 1] = folder end
    counts[folder] = (counts[folder] or 0) + 1
  end
  for i, folder in ipairs(order) do
    if counts[folder] > 1 then order[i] = ("%d of %s"):format(counts[folder], folder) end
  end
  return table.concat(order, ", ")
end

local function most_of(unit)
  local seconds = healthy[unit] or executed.seconds(unit)
  return math.ceil(seconds and seconds * MOST_TIMES + MORE_SECONDS or UNKNOWN_SECONDS)
end

-- @return the first that failed or hung: its unit, state and the test's name; or nil
local function run_together(chosen)
  local list, targets, wanted = {}, {}, {}
  for i, unit in ipairs(chosen) do
    local needs, command = units.plan(unit)
    list[i] = ("%d\t%s\n"):format(most_of(unit), command)
    for _, target in ipairs(needs) do
      if not wanted[target] then targets[#targets + 1] = target end
      wanted[target] = true
    end
  end
  local built, words = tree.build(targets)
  if not built then return chosen[1], "unbuildable", words:match "error: ([^\n]*)" or words end
  tree.write("build/slip.list", table.concat(list))
  local code, output = tree.run(TOGETHER:format(WIDTH), math.max(1, tests.until_s - tree.now()))
  if code == 124 or code == 137 then return chosen[1], "late", "" end
  for number, ended in output:gmatch "(%d+) (%d+) %d+\n" do
    local unit = chosen[tonumber(number)]
    local state, test = units.verdict(unit, tonumber(ended), tree.read("build/slip.logs/" .. number) or "")
    if state ~= "passed" then return unit, state, test end
  end
  return nil
end

--- Does a test pass on the code as it is? One that fails would "kill" every slip.
function tests.sound(unit)
  for line in lines_of(SOUND) do
    local of, name, state = line:match "^(.*)\t(.*)\t(.*)$"
    if of == digest and name == unit then return state == "passed" end
  end
  assert(units.build(unit))
  local state, test, seconds
  for _ = 1, 2 do
    state, test, seconds = units.run(unit, nil, PATIENCE)
    if state == "passed" then break end
  end
  note(SOUND, digest, unit, state)
  if state == "passed" then
    healthy[unit] = seconds
    note(TIMES, unit, ("%.2f"):format(seconds))
  else
    print(("  %s fails as it is: %s"):format(unit, test))
  end
  return state == "passed"
end

-- Tests of the core are exact; of others one that failed once may have been disturbed.
local function fails_again(unit, state)
  if state == "unbuildable" or state == "late" or unit:find "^c/election" or unit:find "^simulate" then return true end
  return (units.run(unit, PATIENCE * most_of(unit), PATIENCE)) ~= "passed"
end

--- Runs tests on what is planted.
-- @return the first that failed, its state, and what of it failed; nil when all passed
function tests.run(chosen)
  local left = { unpack(chosen) }
  for _, most in ipairs(AT_FIRST) do
    local part = {}
    while #part < most and #left > 0 do part[#part + 1] = table.remove(left, 1) end
    while #part > 0 do
      local unit, state, test = run_together(part)
      if not unit then break end
      if fails_again(unit, state) then return unit, state, test end
      for i = #part, 1, -1 do
        if part[i] == unit then table.remove(part, i) end
      end
    end
  end
  return nil
end

function tests.note_killer(file, unit) note(KILLERS, file, unit) end

return tests
