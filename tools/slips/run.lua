--- Makes one slip after the other, in a copy of the tree, and runs the tests that should notice.
local plant = require "slips.plant"
local results = require "slips.results"
local tests = require "slips.tests"
local tree = require "mutants.tree"

local run = {}

local OTHERWISE = { unbuildable = "refused", late = "late" } -- neither killed nor not

-- @return "killed" or "survived"; the tests that did; what failed
local function judge(one, narrow)
  local chosen = tests.of(one.file, narrow, one.name)
  while true do
    local unit, state, test = tests.run(chosen)
    if not unit then return #chosen > 0 and "survived" or "untested", tests.told(chosen), "" end
    if OTHERWISE[state] then return OTHERWISE[state], unit, test end
    plant.take_out(one, one.text)
    if tests.sound(unit) then
      tests.note_killer(one.file, unit)
      return "killed", unit, test
    end
    for i = #chosen, 1, -1 do
      if chosen[i] == unit then table.remove(chosen, i) end
    end
    plant.put(one)
  end
end

local function try(one, narrow)
  if one.same then return "same", "", one.same end
  local state, text = plant.put(one)
  one.text = text
  local unit, test = "", ""
  if state == "planted" then state, unit, test = judge(one, narrow) end
  plant.take_out(one, text)
  return state, unit, test
end

-- Several work side by side, each in a copy of its own: a slip is of the first that claims it.
local function claimed(directory, number)
  return os.execute(("mkdir %s/%d 2>/dev/null"):format(directory, number)) == 0
end

--- Works on a list of slips until so many have a verdict or the time is over.
-- @tparam table order
-- @tparam table options `directory` of this run, `n`, `until_s`; `narrow`: only the tests that spec/suites names first
function run.work(order, options)
  tree.take(tests.HOME)
  local of = tree.sync(true):match "^%S+"
  plant.prepare()
  tests.load(of, options.until_s)
  for number, one in ipairs(order) do
    if tree.now() > options.until_s or results.verdicts(options.directory) >= options.n then break end
    if claimed(options.directory, number) then
      local from = tree.now()
      local state, unit, test = try(one, options.narrow)
      results.add(options.directory, one, state, unit, test, tree.now() - from)
    end
  end
end

return run
