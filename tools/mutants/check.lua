--- Is the list of mutants true, and does it cover what is promised?
local list = require "mutants.list"
local made = require "mutants.made"
local suites = require "mutants.suites"

local check = {}

local LEAST_MUTANTS = 150
local SAFETY = "docs/safety.md"

-- The rows of the tables in docs/safety.md: `{ rule =, tests = }`.
local function read_rules()
  local rules = {}
  for line in io.lines(SAFETY) do
    local rule, tests = line:match "^| (%u%d+) .*|([^|]*)|$"
    if rule then rules[#rules + 1] = { rule = rule, tests = tests } end
  end
  return rules
end

local function words_of(command)
  local pipe = io.popen(command)
  local text = pipe:read "*a"
  pipe:close()
  return text
end

-- Every test that a rule names is there: a file by its name, a case by its words.
local function untrue_names(rules)
  local bad, files = {}, words_of "ls spec/*/*_spec.lua spec/c/*/*_test.c"
  local texts = words_of "cat spec/*/*.lua spec/c/*/*.c lua/crown/testing/*.lua"
  for _, row in ipairs(rules) do
    for name in row.tests:gmatch "[%w_]+_spec" do
      if not files:find("/" .. name .. ".lua", 1, true) then bad[#bad + 1] = row.rule .. ": there is no " .. name end
    end
    for name in row.tests:gmatch "[%w_]+_test" do
      if not files:find("/" .. name .. ".c", 1, true) then bad[#bad + 1] = row.rule .. ": there is no " .. name end
    end
    for words in row.tests:gmatch '"([^"]+)"' do
      if not texts:find(words, 1, true) then bad[#bad + 1] = row.rule .. ": there is no test '" .. words .. "'" end
    end
  end
  return bad
end

local function unbroken(rules, records)
  local bad, broken = {}, {}
  for _, record in ipairs(records) do
    for _, rule in ipairs(record.equivalent and {} or record.breaks) do broken[rule] = true end
  end
  for _, row in ipairs(rules) do
    if not broken[row.rule] then bad[#bad + 1] = row.rule .. ": no mutant breaks it" end
  end
  return bad
end

local function whereabouts(record)
  local found, pipe = {}, io.popen "git ls-files runtime lua"
  for path in pipe:lines() do
    if list.count(record, list.read(path) or "") == 1 then found[#found + 1] = path end
  end
  pipe:close()
  return found
end

-- What `by` names is a unit that tools/mutants/units.lua can run; words behind it choose some of its tests.
local function is_unit(by)
  local path = by:match "^%S+"
  local test = path:match "^c/(.*)$"
  if test then path = "spec/c/" .. test .. ".c" end
  return path:find "^simulate:%d" or path:find "^registry:%d" or path:find "^register:%l+:%d+$"
    or (test or path:find "_spec%.lua$") and list.read(path) ~= nil
end

local function problem_of(record, seen, known, rows, operator_of)
  local text = record.file and list.read(record.file)
  if seen[record.id] then return "there is another of this name" end
  seen[record.id] = true
  if #record.before == 0 then return "says nothing of what it changes" end
  if #record.breaks == 0 and not record.equivalent then return "breaks what? (a rule's or promise's name in docs/safety.md, or -)" end
  if record.equivalent == "" then return "equivalent, but why?" end
  if record.by and not is_unit(record.by) then return "by what? There is no unit " .. record.by end
  for _, rule in ipairs(record.breaks) do
    if rule ~= "-" and not known[rule] then return "docs/safety.md has no rule " .. rule end
  end
  local count = text and list.count(record, text) or 0
  if count ~= 1 then
    return ("stands %d times in %s; once in: %s"):format(count, record.file or "?", table.concat(whereabouts(record), ", "))
  end
  if record.file:find "%.lua$" and not loadstring(list.apply(record, text)) then return "what it becomes is no Lua" end
  if not suites.of(rows, record.file) then return "spec/suites has no tests for " .. record.file end
  local operator = operator_of(record, text)
  if operator then return "the operator " .. operator .. " of tools/slips makes it by itself: leave it out" end
end

--- Tells what is wrong with the list, or with docs/safety.md.
-- @treturn boolean whether nothing is
function check.run(records)
  local seen, known, rows, rules, bad = {}, {}, suites.load(), read_rules(), {}
  local operator_of = made(records)
  for _, row in ipairs(rules) do known[row.rule] = true end
  for _, record in ipairs(records) do
    local problem = problem_of(record, seen, known, rows, operator_of)
    if problem then bad[#bad + 1] = ("%s:%d: %s: %s"):format(list.PATH, record.line, record.id, problem) end
  end
  for _, problem in ipairs(untrue_names(rules)) do bad[#bad + 1] = SAFETY .. ": " .. problem end
  for _, problem in ipairs(unbroken(rules, records)) do bad[#bad + 1] = SAFETY .. ": " .. problem end
  if #records < LEAST_MUTANTS then
    bad[#bad + 1] = ("%s: %d mutants, at least %d are wanted"):format(list.PATH, #records, LEAST_MUTANTS)
  end
  print(#bad == 0 and ("mutants: ok (%d, %d rules)"):format(#records, #rules) or table.concat(bad, "\n"))
  return #bad == 0
end

--- Follows code that moved to another file: rewrites the `in` lines of mutants that stand once elsewhere, and only there.
-- @treturn boolean true
function check.repath(records)
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

return check
