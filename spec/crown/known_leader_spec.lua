-- How status says who leads: lua/crown/text/known_leader.lua.
local known_leader = require "crown.text.known_leader"

describe("the leader that a candidate knows", function()
  local function said(one)
    return known_leader(one, function(seconds) return ("%g s"):format(seconds) end)
  end

  local BARS = { { reason = "paused", why = "a new disk", since = 60 } }

  it("is told with its age where the candidate asks nothing, since it may not lead", function()
    assert.equal("ann, 40 s ago", said { leader = "ann", phase = "following", barred = BARS, answered = 40 })
    assert.equal("ann, 2 s ago", said { leader = "ann", phase = "following", barred = BARS, answered = 2 })
    assert.equal("ann", said { leader = "ann", phase = "following", barred = BARS, answered = 1.9 })
    assert.equal("ann", said { leader = "ann", phase = "following", barred = BARS })
  end)

  it("is told as it is where the candidate asks, or leads still", function()
    assert.equal("ann", said { leader = "ann", phase = "following", answered = 40 })
    assert.equal("ann", said { leader = "ann", phase = "stepping down", barred = BARS, answered = 40 })
    assert.is_nil(said { phase = "following", barred = BARS, answered = 40 })
  end)
end)
