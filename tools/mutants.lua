--- Breaks the code on purpose, one slip at a time, and sees whether a test notices: docs/testing.md, "Mutants".
-- luajit tools/mutants.lua check | repath | run | report   [folder=PREFIX] [only=WORD] [sample=N] [todo=1|new] [narrow=1] [seconds=N]
-- [jobs=N]
package.path = "tools/?.lua;" .. package.path
local list = require "mutants.list"
local suites = require "mutants.suites"
local tree = require "mutants.tree"
local units = require "mutants.units"

local RESULTS, LEAST_MUTANTS, LEAST_SHARE = "build-mutants/results", 150, 0.95
local SURE = { "^runtime/election/", "^runtime/process/" } -- every mutant of these has to be killed

local function options()
  local found = {}
  for i = 2, #arg do
    local key, value = arg[i]:match "^(%w+)=(.*)$"
    assert(key, "what is '" .. arg[i] .. "'?")
    if value ~= "" then found[key] = value end
  end
  return found
end

local function has_to_die(record)
  if record.decides then return true end
  for _, pattern in ipairs(SURE) do
    if record.file:find(pattern) then return true end
  end
  return false
end

-- ---- check: the list is true ----

local function promises()
  local known = {}
  for rule in (list.read "docs/safety.md"):gmatch "\n| (%w+) " do known[rule] = true end
  return known
end

local function whereabouts(record)
  local found, pipe = {}, io.popen "git ls-files runtime lua"
  for path in pipe:lines() do
    if list.count(record, list.read(path) or "") == 1 then found[#found + 1] = path end
  end
  pipe:close()
  return found
end

local function problem_of(record, seen, known, rows)
  local text = record.file and list.read(record.file)
  if seen[record.id] then return "there is another of this name" end
  seen[record.id] = true
  if #record.before == 0 then return "says nothing of what it changes" end
  if #record.breaks == 0 and not record.equivalent then return "breaks what? (a rule's or promise's name in docs/safety.md, or -)" end
  if record.equivalent == "" then return "equivalent, but why?" end
  for _, rule in ipairs(record.breaks) do
    if rule ~= "-" and not known[rule] then return "docs/safety.md has no rule " .. rule end
  end
  local count = text and list.count(record, text) or 0
  if count ~= 1 then
    return ("stands %d times in %s; once in: %s"):format(count, record.file or "?", table.concat(whereabouts(record), ", "))
  end
  if not suites.of(rows, record.file) then return "spec/suites has no tests for " .. record.file end
end

local function check(records)
  local seen, known, rows, bad = {}, promises(), suites.load(), 0
  for _, record in ipairs(records) do
    local problem = problem_of(record, seen, known, rows)
    if problem then
      bad = bad + 1
      print(("%s:%d: %s: %s"):format(list.PATH, record.line, record.id, problem))
    end
  end
  if #records < LEAST_MUTANTS then
    bad = bad + 1
    print(("%s: %d mutants, at least %d are wanted"):format(list.PATH, #records, LEAST_MUTANTS))
  end
  if bad == 0 then print(("mutants: ok (%d)"):format(#records)) end
  return bad == 0
end

--- Follows code that moved to another file: rewrites the `in` lines of mutants that stand once elsewhere, and only there.
local function repath(records)
  local moved = {}
  for _, record in ipairs(records) do
    if list.count(record, list.read(record.file) or "") ~= 1 then
      local found = whereabouts(record)
      if #found == 1 then moved[record.id] = found[1] end
      print(record.id .. ": " .. (#found == 1 and "now in " .. found[1] or "lost: " .. table.concat(found, ", ")))
    end
  end
  local lines, id = {}, nil
  for line in io.lines(list.PATH) do
    id = line:match "^mutant (.*)$" or id
    lines[#lines + 1] = line:find "^in " and moved[id] and "in " .. moved[id] or line
  end
  local file = assert(io.open(list.PATH, "w"))
  file:write(table.concat(lines, "\n"), "\n")
  file:close()
  return true
end

-- ---- which ones ----

local function hash(text)
  local value = 5381
  for i = 1, #text do value = (value * 33 + text:byte(i)) % 2 ^ 32 end
  return value
end

-- The same N as long as the list does not change, spread over the folders.
local function sample(records, count)
  local order, turn, folders = {}, {}, {}
  for _, record in ipairs(records) do order[#order + 1] = record end
  table.sort(order, function(a, b) return hash(a.id) < hash(b.id) end)
  for _, record in ipairs(order) do
    local folder = list.folder(record)
    folders[folder] = (folders[folder] or 0) + 1
    turn[record] = folders[folder]
  end
  table.sort(order, function(a, b)
    if turn[a] ~= turn[b] then return turn[a] < turn[b] end
    return hash(a.id) < hash(b.id)
  end)
  local chosen = {}
  for i = 1, math.min(count, #order) do chosen[order[i]] = true end
  return chosen
end

local function digest(record)
  return ("%08x"):format(hash(record.before .. "\n>" .. record.after))
end

--- The last result of each mutant, as far as it has not changed since: `{ status, unit, test, seconds }` by id.
local function load_results(records)
  local current, results = {}, {}
  for _, record in ipairs(records) do current[record.id] = digest(record) end
  for line in (list.read(RESULTS) or ""):gmatch "[^\n]+" do
    local id, of, status, seconds, unit, test = line:match "^(%S+)\t(%S+)\t(%S+)\t(%S+)\t([^\t]*)\t(.*)$"
    if id and current[id] == of then
      results[id] = { status = status, seconds = tonumber(seconds), unit = unit, test = test }
    end
  end
  return results
end

local function choose(records, wanted, results)
  local living = {}
  for _, record in ipairs(records) do
    if not record.equivalent then living[#living + 1] = record end
  end
  local in_sample = wanted.sample and sample(living, tonumber(wanted.sample))
  local chosen = {}
  for _, record in ipairs(living) do
    local before = results[record.id]
    if (not in_sample or in_sample[record])
      and (not wanted.folder or record.file:find(wanted.folder, 1, true))
      and (not wanted.only or record.id:find(wanted.only, 1, true))
      and (not wanted.todo or not before or wanted.todo ~= "new" and before.status ~= "killed") then
      chosen[#chosen + 1] = record
    end
  end
  return chosen
end

-- ---- run ----

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
  for _, group in ipairs { { record.by }, narrow, wanted.narrow and {} or wide } do
    for _, unit in ipairs(group) do
      if not seen[unit] then all[#all + 1] = unit end
      seen[unit] = true
    end
  end
  return all
end

-- @return "killed", "survived", "unbuildable" or "untested"; unit, test
local function try(record, all, digest_of_tree)
  local text, broken = tree.read(record.file), 0
  local mutated = assert(list.apply(record, text))
  local status, by, test = "survived", "-", "-"
  for _, unit in ipairs(all) do
    local took = sound(unit, digest_of_tree)
    if took then
      tree.write(record.file, mutated)
      local fine, words = units.build(unit)
      if not fine then
        status, by, test = "unbuildable", unit, (words:match "error: ([^\n]*)" or words)
        break
      end
      local state, name = units.run(unit, took * 4 + 6)
      tree.write(record.file, text)
      if state ~= "passed" then
        status, by, test = "killed", unit, name
        break
      end
    else
      broken = broken + 1
    end
  end
  tree.write(record.file, text)
  if broken == #all then status = "untested" end
  return status, by, test
end

-- Tests mostly wait, so several share the work, each with a tree of its own: every N-th is one's share.
local function share(chosen, wanted)
  local number, of = (wanted.share or "1/1"):match "^(%d+)/(%d+)$"
  local mine = {}
  for i = tonumber(number), #chosen, tonumber(of) do mine[#mine + 1] = chosen[i] end
  tree.DIR = "build-mutants/tree" .. number
  return mine
end

local function run_jobs(records, wanted)
  local words, before = {}, choose(records, wanted, load_results(records))
  for i = 1, tonumber(wanted.jobs) do
    local own = { "luajit tools/mutants.lua run", ("share=%d/%d"):format(i, wanted.jobs) }
    for key, value in pairs(wanted) do
      if key ~= "jobs" then own[#own + 1] = ("%s='%s'"):format(key, value) end
    end
    words[i] = table.concat(own, " ") .. " & "
  end
  os.execute(table.concat(words) .. "wait")
  local results, done = load_results(records), {}
  for _, record in ipairs(before) do
    if results[record.id] then done[#done + 1] = record end
  end
  return done, results
end

local function run(records, wanted)
  os.execute "mkdir -p build-mutants"
  if tonumber(wanted.jobs or 1) > 1 then return run_jobs(records, wanted) end
  local rows, results = suites.load(), load_results(records)
  local chosen, started, done = share(choose(records, wanted, results), wanted), tree.now(), {}
  local of = tree.sync():match "^%S+"
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
    local file = assert(io.open(RESULTS, "a"))
    file:write(("%s\t%s\t%s\t%.1f\t%s\t%s\n"):format(record.id, digest(record), status, result.seconds, unit,
      (test:gsub("[\t\n]", " "))))
    file:close()
  end
  return done, results
end

-- ---- the table ----

local function judge(records, results)
  local rows, order, total = {}, {}, { killed = 0, all = 0, seconds = 0 }
  local bad = false
  for _, record in ipairs(records) do
    local folder, result = list.folder(record), results[record.id]
    local row = rows[folder]
    if not row then
      row = { killed = 0, all = 0, seconds = 0 }
      rows[folder], order[#order + 1] = row, folder
    end
    for _, sum in ipairs { row, total } do
      sum.all = sum.all + 1
      sum.killed = sum.killed + (result.status == "killed" and 1 or 0)
      sum.seconds = sum.seconds + result.seconds
    end
    if result.status ~= "killed" then
      local sure = has_to_die(record)
      print(("%-12s %s (%s)%s"):format(result.status, record.id, record.file, sure and ", which has to be killed" or ""))
      bad = bad or sure or result.status ~= "survived"
    end
  end
  table.sort(order)
  order[#order + 1] = "all"
  rows.all = total
  for _, folder in ipairs(order) do
    local row = rows[folder]
    print(("%-28s %4d of %4d killed  %5.1f %%  %6.0f s"):format(folder, row.killed, row.all, 100 * row.killed / math.max(1, row.all),
      row.seconds))
  end
  return not bad and total.killed >= LEAST_SHARE * total.all
end

local function report(records)
  local results, known = load_results(records), {}
  for _, record in ipairs(records) do
    if results[record.id] and not record.equivalent then known[#known + 1] = record end
  end
  return judge(known, results)
end

local records, wanted = list.load(), options()
local commands = {
  check = check,
  repath = repath,
  report = report,
  run = function()
    local done, results = run(records, wanted)
    return wanted.share and true or judge(done, results)
  end,
}
os.exit(assert(commands[arg[1]], "check, repath, run or report?")(records) and 0 or 1)
