--- Which functions of C each test executes: a table that `make executed` makes, by which the tests of a slip are chosen.
-- Cases of a C test that takes long stand there one by one, so that they can run side by side.
local hash = require "slips.hash"
local sources = require "slips.sources"
local tree = require "mutants.tree"

local executed = {}

local TABLE = "build-slips/executed" -- UNIT<tab>OF<tab>SECONDS<tab>FILE<tab>FUNCTION…, a line for each file
local BUILD = "build-executed"       -- programs that note what they execute: tools/slips/executed.c
local NOTED = BUILD .. "/places/"
local LONG_SECONDS = 1
local MOST_SECONDS = 300

-- The places that a program has noted. Most of the file is a hole.
local function places_of(path)
  local text, found, at = sources.read(path) or "", {}, 0
  repeat
    at = text:find("\1", at + 1, true)
    found[#found + 1] = at and ("%x\n"):format(at - 2) -- the call, not what follows it
  until not at
  return table.concat(found)
end

local function functions_of(program)
  local path = NOTED .. program:match "[^/]+$"
  local list, found = os.tmpname(), {}
  local file = assert(io.open(list, "w"))
  file:write(places_of(path))
  file:close()
  os.remove(path)
  local pipe = io.popen(("addr2line -f -e '%s' <%s"):format(program, list))
  for name in pipe:lines() do
    local source = pipe:read("*l"):match "(runtime/[^:]*%.c):"
    if source then
      found[source] = found[source] or {}
      found[source][name] = true
    end
  end
  pipe:close()
  os.remove(list)
  return found
end

-- @return what it has said, the seconds it took, and the functions; nothing when it fails
local function run(unit)
  local path, case = unit:match "^c/(%S+) ?(.*)$"
  local program = path and BUILD .. "/spec/c/" .. path or BUILD .. "/crown-lua"
  local command = path and ("TEST_FILTER=%s tools/alone.sh %s"):format(case == "" and "'*'" or case, program)
    or ("PROGRAM=%s tools/run-spec.sh %s"):format(program, unit)
  os.remove(NOTED .. program:match "[^/]+$")
  local from = tree.now()
  local pipe = io.popen(("timeout -k 2 %d sh -c \"%s\" 2>&1 </dev/null; echo ended $?"):format(MOST_SECONDS, command))
  local words = pipe:read "*a"
  pipe:close()
  if not words:find "ended 0\n$" then return nil end
  return words, tree.now() - from, functions_of(program)
end

-- Of the test as it is now: one that was changed since may execute something else.
local function digest_of(unit)
  local path = unit:match "^c/(%S+)"
  return hash(sources.read(path and "spec/c/" .. path .. ".c" or unit) or "")
end

local function write(file, unit, seconds, functions)
  for source, names in pairs(functions) do
    local list = {}
    for name in pairs(names) do list[#list + 1] = name end
    table.sort(list)
    file:write(("%s\t%.0f\t%.2f\t%s\t%s\n"):format(unit, digest_of(unit), seconds, source, table.concat(list, " ")))
  end
  file:flush()
end

--- Runs tests to see what they execute, and keeps it. The programs have been built.
-- @tparam table units
-- @treturn boolean whether all of them pass
function executed.make(units)
  local made = {}
  for _, unit in ipairs(units) do made[unit] = true end
  local kept = {}
  for line in (sources.read(TABLE) or ""):gmatch "[^\n]+" do
    if not made[line:match "^[^\t ]+"] then kept[#kept + 1] = line .. "\n" end
  end
  local file = assert(io.open(TABLE, "w"))
  file:write(table.concat(kept))
  local failed = 0
  for _, unit in ipairs(units) do
    local words, seconds, functions = run(unit)
    print(words and ("%6.2f s  %s"):format(seconds, unit) or "  fails   " .. unit)
    if not words then
      failed = failed + 1 -- it stays unknown, and runs for each slip
    elseif unit:find "^c/" and seconds > LONG_SECONDS then
      for case in words:gmatch "%[ RUN      %] ([%w_]+)\n" do
        local passed, of_case, its = run(unit .. " " .. case)
        if passed then write(file, unit .. " " .. case, of_case, its) end
      end
    else
      write(file, unit, seconds, functions)
    end
  end
  file:close()
  return failed == 0
end

local known, somebody, cases, seconds = nil, {}, {}, {}

local function note(unit, took, source, names)
  local test, case = unit:match "^(%S+) (.+)$"
  if test and not known[unit] then
    cases[test] = cases[test] or {}
    table.insert(cases[test], test .. " " .. case)
  end
  known[unit] = known[unit] or {}
  known[unit][source] = {}
  for name in names:gmatch "%S+" do
    known[unit][source][name], somebody[source .. " " .. name] = true, true
  end
  seconds[unit] = tonumber(took)
end

local function load()
  local digests = {}
  known = {}
  for line in (sources.read(TABLE) or ""):gmatch "[^\n]+" do
    local unit, of, took, source, names = line:match "^(.-)\t(.-)\t(.-)\t(.-)\t(.*)$"
    local test = unit:match "^%S+"
    digests[test] = digests[test] or ("%.0f"):format(digest_of(test))
    if digests[test] == of then note(unit, took, source, names) end
  end
end

--- A unit, or its cases where they are known one by one.
function executed.parts(unit)
  if not known then load() end
  return cases[unit] or { unit }
end

--- How long a unit took; nil when the table does not know it.
function executed.seconds(unit)
  if not known then load() end
  return seconds[unit]
end

--- May a unit notice a slip in a function of C? A unit that the table does not know, may, and any a function that it does not.
function executed.may(unit, file, func)
  if not known then load() end
  if not known[unit] or not func or not somebody[file .. " " .. func] then return true end
  return known[unit][file] ~= nil and known[unit][file][func] == true
end

return executed
