-- Large whole numbers keep every digit: an epoch is a fencing token, and Oban's are microseconds since 1970.
local crown = require "crown"
local program = require "support.program"
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local MICROSECONDS = 1795303190837211
local LARGEST = 2 ^ 53

local function script(text)
  return write_file(tempdir() .. "/app.lua", text)
end

describe("a large whole number", function()
  it("is exact in JSON", function()
    for _, number in ipairs { MICROSECONDS, -MICROSECONDS, LARGEST, 99999999999999, 100000000000000 } do
      local text = crown.json.encode { epoch = number, inside = { { number } }, text = "1e+15", half = 0.5 }
      assert.truthy(text:find(('"epoch":%d'):format(number), 1, true), text)
      assert.truthy(text:find(('[[%d]]'):format(number), 1, true), text)
      assert.truthy(text:find('"text":"1e+15"', 1, true), text)
      assert.truthy(text:find('"half":0.5', 1, true), text)
      assert.equal(number, crown.json.decode(text).epoch)
    end
    assert.equal(("%d"):format(MICROSECONDS), crown.json.encode(MICROSECONDS))
    assert.equal(1e300, crown.json.decode(crown.json.encode { 1e300 })[1])
  end)

  it("is not the only one: each number is read again as what it was, in as few digits as that takes", function()
    for _, number in ipairs { 2 ^ 60, -2 ^ 63, 2 ^ 53 + 2, 0.1 + 0.2, 1 / 3, 5e-324, 1.7976931348623157e308, 1e15 + 0.5 } do
      assert.equal(number, crown.json.decode(crown.json.encode { number })[1])
    end
    assert.equal("[0.1,1.5,0.30000000000000004]", crown.json.encode { 0.1, 1.5, 0.1 + 0.2 })
  end)

  it("leaves what it stands in as it was, and what JSON cannot hold an error", function()
    local value = { epoch = MICROSECONDS, list = { crown.json.null } }
    crown.json.encode(value)
    assert.equal(MICROSECONDS, value.epoch)
    assert.equal(crown.json.null, value.list[1])
    local fine, problem = pcall(function() crown.json.encode { epoch = MICROSECONDS, fn = print } end)
    assert.is_false(fine)
    assert.matches("numbers_spec.lua:%d+: Cannot serialise function", problem)
    local round = { epoch = MICROSECONDS }
    round.round = round
    assert.has_error(function() crown.json.encode(round) end)
  end)

  it("is exact in the log, in status and in what a leader's file says", function()
    local directory = tempdir()
    local path = script(([[
      local crown = require "crown"
      local Oracle = {}
      function Oracle.init() return setmetatable({}, { __index = Oracle }) end
      function Oracle.claim() return true, 1, { ttl = 10, epoch = %d } end
      Oracle.refresh = Oracle.claim
      crown.elect { name = "large", oracle = { Oracle }, handlers = { won = function(term)
        crown.log.info("here", { number = term.epoch })
        crown.spawn(function()
          local result = crown.exec { arg[1], "status", "--json" }
          print(result.stdout)
          os.exit(0)
        end)
      end } }
    ]]):format(MICROSECONDS))
    local result = run({ path, program }, { env = { CROWN_DIRECTORY = directory } })
    local digits = ("%d"):format(MICROSECONDS)
    assert.truthy(result.stderr:find("here number=" .. digits, 1, true), result.stderr)
    assert.truthy(result.stderr:find("epoch=" .. digits, 1, true), result.stderr)
    assert.truthy(result.stdout:find('"epoch":' .. digits, 1, true), result.stdout)
  end)
end)
