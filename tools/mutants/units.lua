--- Runs one unit of tests on the copy of the tree and tells which test failed.
local tree = require "mutants.tree"

local units = {}

local MOST_SECONDS = 300
local MOST_SECONDS_OF_C = 100 -- a test in C starts no server

--- The units of which each is one program: c/FOLDER is as many as the folder has tests.
function units.single(list)
  local found = {}
  for _, unit in ipairs(list) do
    local folder = unit:match "^c/([^/]+)$"
    local pipe = folder and io.popen("ls spec/c/" .. folder .. "/*_test.c")
    for path in pipe and pipe:lines() or function() end do
      found[#found + 1] = "c/" .. folder .. "/" .. path:match "([^/]+)%.c$"
    end
    if pipe then pipe:close() else found[#found + 1] = unit end
  end
  return found
end

--- What a unit's words mean. @return what to build, and the command
function units.plan(unit)
  local kind, rest = unit:match "^([^:/]+)[:/](.*)$"
  if kind == "c" then
    local path, case = rest:match "^(%S+) ?(.*)$"
    local target = "build/spec/c/" .. path
    return { target }, (case ~= "" and "TEST_FILTER=" .. case .. " " or "") .. "tools/alone.sh " .. target
  elseif kind == "simulate" then
    return { "build/simulate" }, "build/simulate --seeds " .. rest
  elseif kind == "registry" then
    return {}, "luajit spec/sim/registry.lua 1 " .. rest
  elseif kind == "register" then
    local world, clusters = rest:match "^(%l+):(%d+)$"
    return {}, ("luajit -joff spec/register/simulate.lua %s %s"):format(clusters, world)
  end
  local path, filter = unit:match "^(%S+) ?(.*)$"
  local words = filter ~= "" and (" --filter='" .. filter:gsub("'", "'\\''") .. "'") or ""
  return { "crown-lua", "test-helpers" }, "CROWN_LUA=$PWD/crown-lua CROWN_TICKER=$PWD/build/ticker tools/alone.sh $PWD/crown-lua "
    .. "$(command -v busted) --ignore-lua --run=default --no-keep-going -o TAP " .. path .. words
end

local function first_failure(output)
  local failed = output:match "%[  FAILED  %] ([%w_]+)\n" or output:match "%[  ERROR   %] ([%w_]+)\n"
    or output:match "not ok %d+ %- ([^\n]*)" or output:match "(seed [^\n]*)" or output:match "(Assertion [^\n]*)"
  return failed or output:match "([^\n]*)\n?$"
end

--- Builds for a unit. @return true, or nil and why not
function units.build(unit)
  return tree.build((units.plan(unit)))
end

--- What a unit has shown. @return "passed", "failed" or "hung"; the name of the first test that failed
function units.verdict(unit, code, output)
  local ran = unit:find "_spec%.lua" and (output:find "\nok 1 " or output:find "^ok 1 ")
    or not unit:find "_spec%.lua" and not output:find "Running 0 test"
  if code == 0 then return ran and "passed" or "failed", not ran and "no test ran" or nil end
  if code == 124 or code == 137 then return "hung", "it does not end" end
  return "failed", first_failure(output)
end

--- Runs a unit. @return as units.verdict does, and the seconds it took
function units.run(unit, seconds, patience)
  local _, command = units.plan(unit)
  local code, output, took = tree.run(command, seconds or unit:find "^c/" and MOST_SECONDS_OF_C or MOST_SECONDS, patience)
  local state, test = units.verdict(unit, code, output)
  return state, test, took
end

return units
