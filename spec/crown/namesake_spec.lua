-- Two candidates of one election with the same name: who sees the other refresh says so, once.
local crown = require "crown"
local eventually = require("crown.testing").eventually

describe("a candidate that is denied by a leader of its own name", function()
  local told, one

  before_each(function()
    told = {}
    crown.on("oracle.same_node", function(event) if event.name:find "^namesake" then told[#told + 1] = event.error end end)
  end)
  after_each(function() one:stop() end)

  -- Denied each time with what `answers` says next, the last one again and again. @return how often it was asked
  local function denied(name, options, answers)
    local asked = 0
    local oracle = { init = function() return {} end, refresh = function() return false end,
      claim = function()
        asked = asked + 1
        return false, answers[math.min(asked, #answers)]
      end }
    one = crown.elect { name = name, node = options.node, oracle = { oracle }, retry = 0.02, handlers = {} }
    return function() return asked end
  end

  local function holder(node, expires_in, more)
    local answer = { node = node, expires_in = expires_in, retry_in = 0.02 }
    for key, value in pairs(more or {}) do answer[key] = value end
    return answer
  end

  it("says once that there is another one", function()
    denied("namesake1", { node = "twin" }, { holder("twin", 0.05), holder("twin", 5), holder("twin", 0.05) })
    eventually(function() return #told == 1 end, 20)
    assert.matches("called 'twin', too: give each a name of its own", told[1])
    crown.sleep(0)
  end)

  it("says nothing of what is left of its own last term, of another's, or of what a store may have forgotten", function()
    for i, answers in ipairs { { holder("twin", 0.3), holder("twin", 0.2), holder("twin", 0.1) },
      { holder("other", 0.05), holder("other", 5), holder("other", 0.05) },
      { holder("twin", 0.05, { amnesia = true }), holder("twin", 5, { amnesia = true }), holder("twin", 0.05, { amnesia = true }) } } do
      local asked = denied("namesake2." .. i, { node = "twin" }, answers)
      eventually(function() return asked() >= (i == 1 and 3 or 2) end, 20)
      one:stop()
    end
    assert.same({}, told)
  end)
end)
