local crown = require "crown"
local eventually = require("crown.testing").eventually
local Shared = require "crown.link.shared"

describe("a shared answer", function()
  it("serves all who asked before its run began, and nobody who asked later", function()
    local runs, gate = 0, require("crown.core.promise")()
    local shared = Shared.new(function()
      runs = runs + 1
      local run = runs
      if run == 1 then gate:wait() end
      return run
    end)
    local answers = {}
    local function ask() crown.spawn(function() table.insert(answers, (shared:ask(5))) end) end
    ask()
    ask()
    eventually(function() return runs == 1 end)
    ask()
    ask()
    gate:resolve(true)
    eventually(function() return #answers == 4 end)
    assert.same({ 1, 1, 2, 2 }, answers)
    assert.equal(3, shared:ask(5))
  end)

  it("is a failure for all when the function raises, and goes on", function()
    local broken = true
    local shared = Shared.new(function() if broken then error "no luck" end return "fine" end)
    local answer, problem = shared:ask(5)
    assert.is_nil(answer)
    assert.matches("no luck", problem)
    broken = false
    assert.equal("fine", shared:ask(5))
  end)
end)
