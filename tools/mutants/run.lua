--- Makes one mutant after the other and runs the tests that should notice.
local choose = require "mutants.choose"
local list = require "mutants.list"
local suites = require "mutants.suites"
local tree = require "mutants.tree"
local units = require "mutants.units"

local BASELINE = "build-mutants/baseline"
local baseline = {} -- unit → how long it takes on the code as it is; false where it fails there
local usual = {}    -- the same of any code, for what to try first

local function load_baseline(digest_of_tree)
  for line in (list.read(BASELINE) or ""):gmatch "[^\n]+" do
    local of, seconds, unit = line:match "^(%S+) (%S+) (.*)$"
    usual[unit] = tonumber(seconds)
    if of == digest_of_tree then baseline[unit] = tonumber(seconds) end
  end
end

-- A unit that fails without any mutant would "kill" all of them.
local function sound(unit, digest_of_tree)
  if baseline[unit] == nil then load_baseline(digest_of_tree) end
  if baseline[unit] ~= nil then return baseline[unit] end
  assert(units.build(unit))
  local state, test, seconds
  for _ = 1, 2 do
    state, test, seconds = units.run(unit)
    if state == "passed" then break end
  end
  baseline[unit] = state == "passed" and seconds
  if not baseline[unit] then
    print(("  %s fails as it is: %s"):format(unit, test))
    return false
  end
  os.execute(("echo '%s %.1f %s' >> %s"):format(digest_of_tree, seconds, unit:gsub("'", "'\\''"), BASELINE))
  return baseline[unit]
end

local function units_of(record, rows, wanted)
  local narrow, wide = suites.of(rows, record.file)
  narrow, wide = units.single(narrow), units.single(wide)
  local all, seen = {}, {}
  for _, group in ipairs { narrow, wide } do
    table.sort(group, function(a, b) return (usual[a] or 0) < (usual[b] or 0) end)
  end
  for _, group in ipairs { units.single { record.by }, narrow, wanted.narrow and {} or wide } do
    for _, unit in ipairs(group) do
      if not seen[unit] then all[#all + 1] = unit end
      seen[unit] = true
    end
  end
  return all
end

-- @return "passed", "failed", "hung" or "unbuildable", and what to say of it
local function run_mutated(record, unit, text)
  tree.write(record.file, assert(list.apply(record, text)))
  local fine, words = units.build(unit)
  local state, test = "unbuildable", words and words:match "error: ([^\n]*)" or words
  local most = usual[unit] and usual[unit] * 5 + 30
  if fine then state, test = units.run(unit, most) end
  -- Once may have been a busy host, unless it is the test that is known to notice.
  if state == "failed" and unit ~= record.by then state, test = units.run(unit, most) end
  tree.write(record.file, text)
  return state, test
end

-- @return "killed", "survived", "unbuildable" or "untested"; unit, test
local function try(record, all, digest_of_tree)
  local text, broken = tree.read(record.file), 0
  for _, unit in ipairs(all) do
    local state, test = run_mutated(record, unit, text)
    if state == "unbuildable" then return state, unit, test end
    -- It is the mutant that fails only where the code as it is does not.
    if state ~= "passed" and sound(unit, digest_of_tree) then return "killed", unit, test end
    broken = broken + (state ~= "passed" and 1 or 0)
  end
  return broken == #all and "untested" or "survived", "-", "-"
end

-- Tests mostly wait, so several share the work, each with a tree of its own: every N-th is one's share.
local function share(chosen, wanted)
  local number, of = (wanted.share or "1/1"):match "^(%d+)/(%d+)$"
  local mine = {}
  for i = tonumber(number), #chosen, tonumber(of) do mine[#mine + 1] = chosen[i] end
  return mine
end

local function run_jobs(records, wanted)
  local words, before = {}, choose.some(records, wanted, choose.results(records))
  for i = 1, tonumber(wanted.jobs) do
    local own = { "luajit tools/mutants.lua run", ("share=%d/%d"):format(i, wanted.jobs) }
    for key, value in pairs(wanted) do
      if key ~= "jobs" then own[#own + 1] = ("%s='%s'"):format(key, value) end
    end
    words[i] = table.concat(own, " ") .. " & "
  end
  os.execute(table.concat(words) .. "wait")
  local results, done = choose.results(records), {}
  for _, record in ipairs(before) do
    if results[record.id] then done[#done + 1] = record end
  end
  return done, results
end

--- Runs what the options ask for.
-- @treturn table the mutants that have a result now
-- @treturn table all results
return function(records, wanted)
  os.execute "mkdir -p build-mutants"
  if tonumber(wanted.jobs or 1) > 1 then return run_jobs(records, wanted) end
  local rows, results = suites.load(), choose.results(records)
  local chosen, started, done = share(choose.some(records, wanted, results), wanted), tree.now(), {}
  tree.take()
  local of = tree.sync(true):match "^%S+"
  load_baseline(of)
  for i, record in ipairs(chosen) do
    if wanted.seconds and tree.now() - started > tonumber(wanted.seconds) then
      print(("%d left for another time"):format(#chosen - i + 1))
      break
    end
    local from = tree.now()
    local all, before = units_of(record, rows, wanted), results[record.id]
    if before and before.status == "killed" then table.insert(all, 1, units.single({ before.unit })[1]) end
    local status, unit, test = try(record, all, of)
    local result = { status = status, unit = unit, test = test, seconds = tree.now() - from }
    results[record.id] = result
    done[#done + 1] = record
    print(("%-12s %-44s %5.1f s  %s: %s"):format(status, record.id, result.seconds, unit, test))
    io.flush()
    local file = assert(io.open(choose.RESULTS, "a"))
    file:write(("%s\t%s\t%s\t%.1f\t%s\t%s\n"):format(record.id, choose.digest(record), status, result.seconds, unit,
      (test:gsub("[\t\n]", " "))))
    file:close()
  end
  return done, results
end

