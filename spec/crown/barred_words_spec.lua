-- Why a candidate may not lead, as `status` and the page say it.
local barred = require "crown.text.barred"

local function span(seconds) return ("%d s"):format(seconds) end

describe("what bars a candidate", function()
  it("is told rule by rule, with how long and why", function()
    local one = { barred = { { reason = "never", since = 60, why = "it only follows" },
      { reason = "window", since = 5, why = "outside of Mon-Fri" } } }
    assert.equal("never for 60 s: it only follows; window for 5 s: outside of Mon-Fri", barred(one, span))
  end)

  it("is nothing where it may lead", function()
    assert.is_nil(barred({}, span))
  end)
end)
