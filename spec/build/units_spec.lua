-- What tools/run-units.sh makes of a spec file that fails beside others.
local crown = require "crown"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

-- Fails at its first tries, and stops the process that watches the machine while it does.
local UNIT = [[
local path, fails, stands_still, word = %q, %d, %q == "yes", %q
local file = io.open(path, "r")
local before = file and #file:read "*a" or 0
if file then file:close() end
file = io.open(path, "a")
file:write "."
file:close()
describe("a file", function()
  it("is tried", function()
    if stands_still then
      local watcher = "pkill -%%s -f '^luajit tools/stillness.lua " .. path:match "^(.*)/" .. "/test$'"
      os.execute(watcher:format "STOP" .. " && sleep 0.5; " .. watcher:format "CONT")
    end
    assert(before >= fails, word .. " at try " .. before + 1)
  end)
end)
]]

-- Notes in which order its tests run, and fails at each.
local NOTING = [[
local path, name = %q, %q
describe("a file", function()
  for i = 1, 5 do
    it("is noted " .. i, function()
      local file = io.open(path, "a")
      file:write(name, i, " ")
      file:close()
      error "at each"
    end)
  end
end)
]]

describe("spec files in an order by a seed", function()
  -- In which order tests of several files run, one file after the other.
  local function order(seed)
    local dir, units = tempdir(), {}
    for i, name in ipairs { "a", "b", "c" } do
      units[i] = write_file(("%s/%s_spec.lua"):format(dir, name), NOTING:format(dir .. "/order", name))
    end
    local result = assert(crown.exec({ "tools/run-units.sh", "shuffled", unpack(units) },
      { timeout = 240, env = { LOGS = dir .. "/test", SHUFFLE = seed, JOBS = "1" } }))
    assert.equal(1, result.code)
    assert.matches("SEED=" .. seed .. "\n", result.stdout)
    assert.matches(" 0 passed +15 failed", result.stdout)
    return read_file(dir .. "/order"):sub(1, 15 * #"a1 ") -- then each file once more, alone
  end

  it("run all of them, however many fail, and the same way for the same seed", function()
    local one, other = order "1", order "2"
    assert.equal(one, order "1")
    assert.not_equal(one, other)
    for _, found in ipairs { one, other } do
      local files, tests = "", {}
      for name, i in found:gmatch "(%a)(%d) " do
        tests[name] = (tests[name] or "") .. i
        if #tests[name] == 1 then files = files .. name end
      end
      assert.is_true(files ~= "abc" or tests.a ~= "12345", found)
      for _, of in pairs(tests) do assert.equal(5, #of) end
    end
  end)
end)

describe("a spec file that fails beside others", function()
  local dir
  before_each(function() dir = tempdir() end)

  -- Runs a file that fails so often.
  local function run(fails, stands_still, word)
    local unit = write_file(dir .. "/a_spec.lua", UNIT:format(dir .. "/tries", fails, stands_still and "yes" or "no", word or "it failed"))
    local result = assert(crown.exec({ "tools/run-units.sh", "specs", unit }, { timeout = 240, env = { LOGS = dir .. "/test" } }))
    return result, #read_file(dir .. "/tries")
  end

  it("passes when it passes alone, and is told as unsteady with what it said", function()
    local result, tries = run(1)
    assert.same({ 0, 2 }, { result.code, tries }, result.stdout .. result.stderr)
    assert.matches("1 passed +0 failed", result.stdout)
    assert.matches("is unsteady", result.stdout)
    assert.matches("it failed at try 1", result.stdout)
    assert.equal("1 0\n", read_file(dir .. "/test/totals"))
  end)

  it("fails when it fails alone, too, and both are told", function()
    local result, tries = run(9)
    assert.equal(1, result.code)
    if not result.stdout:find "stood still" then assert.equal(2, tries) end
    assert.matches("it failed at try 1.*tried again, alone:.*it failed at try " .. tries, result.stdout)
    assert.matches("a_spec.lua:\n.*it failed at try " .. tries, read_file(dir .. "/test/failures"))
    assert.equal("0 1\n", read_file(dir .. "/test/totals"))
  end)

  it("is tried once more while the machine stands still, and no more than four times", function()
    local result, tries = run(2, true)
    assert.same({ 0, 3 }, { result.code, tries }, result.stdout .. result.stderr)
    dir = tempdir()
    result, tries = run(9, true)
    assert.same({ 1, 4 }, { result.code, tries }, result.stdout .. result.stderr)
    assert.matches("the machine stood still for %d", result.stdout)
  end)

  it("is not tried again when it broke a promise", function()
    local result, tries = run(1, false, "two ticked at once")
    assert.same({ 1, 1 }, { result.code, tries }) -- what it printed has the words by which this file would be judged itself
  end)
end)
