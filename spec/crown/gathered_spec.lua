-- Questions that are asked together.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Gathered = require "crown.link.gathered"

describe("questions that are asked together", function()
  it("go on to be asked when it cannot be said whether one of them is wanted", function()
    local gathered = Gathered.new { window = 0, most = 10, ask = function(lot)
      for _, one in ipairs(lot) do one.answer:resolve "yes" end
    end }
    local answers = {}
    local function ask(i, wanted)
      crown.spawn(function() answers[i] = { gathered:ask { wanted = wanted } } end)
    end
    ask(1, function() error "nobody is there any more" end)
    ask(2, function() return true end)
    eventually(function() return answers[1] and answers[2] end)
    ask(3)
    eventually(function() return answers[3] end)
    assert.is_nil(answers[1][1])
    assert.matches("nobody is there any more", answers[1][2])
    assert.same({ { "yes" }, { "yes" } }, { answers[2], answers[3] })
  end)

  it("are told that they have no answer, or why asking failed", function()
    local answers = {}
    for what, ask in pairs { ["less than was asked"] = function() end, ["no way"] = function() error("no way", 0) end } do
      local gathered = Gathered.new { window = 0, most = 10, ask = ask }
      crown.spawn(function() answers[what] = { gathered:ask {} } end)
      eventually(function() return answers[what] end)
      assert.same({ nil, "protocol" }, { answers[what][1], answers[what][3] })
      assert.matches(what, answers[what][2])
    end
  end)
end)
