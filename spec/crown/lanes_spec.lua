local core = require "crown.core"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Lanes = require "crown.link.lanes"
local promise = require "crown.core.promise"

describe("lanes", function()
  local lanes, gates, begun, answers

  before_each(function() lanes, gates, begun, answers = Lanes.new(2), {}, {}, {} end)

  local function ask(number, patience)
    gates[number] = promise()
    crown.spawn(function()
      answers[number] = { lanes:ask(function()
        begun[#begun + 1] = number
        gates[number]:wait(600)
        return number
      end, patience) }
    end)
  end

  it("do so much at once and no more, in the order of the questions", function()
    for number = 1, 5 do ask(number, 600) end
    eventually(function() return lanes.waiting.last == 5 and #begun >= 2 end, 20)
    core.sleep(0) -- a third one would begin now
    assert.same({ 1, 2 }, begun)
    for _, gate in ipairs(gates) do gate:resolve(true) end
    eventually(function() return #answers == 5 end, 20)
    assert.same({ { 1 }, { 2 }, { 3 }, { 4 }, { 5 } }, answers)
    assert.same({ 1, 2, 3, 4, 5 }, begun)
  end)

  it("do not begin what has waited for too long", function()
    for number = 1, 2 do ask(number, 600) end
    eventually(function() return #begun == 2 end, 20)
    ask(3, -1)
    eventually(function() return lanes.waiting.last == 3 end, 20)
    for _, gate in ipairs(gates) do gate:resolve(true) end
    eventually(function() return #answers == 3 end, 20)
    assert.same({ nil, "it waited too long for its turn", "timeout" }, answers[3])
    assert.same({ 1, 2 }, begun)
  end)

  it("hand an error on, and go on", function()
    local value, problem = lanes:ask(function() error "no luck" end, 600)
    assert.is_nil(value)
    assert.matches("no luck", problem)
    assert.equal("fine", lanes:ask(function() return "fine" end, 600))
    eventually(function() return lanes.running == 0 end, 20)
  end)
end)
