local claim_number = require "crown.oracle.claim_number"
local core = require "crown.core"

describe("the numbers of claims", function()
  it("rise, also where the clock has not moved on", function()
    local last = claim_number(0)
    local ahead = last + 1e6
    assert.equal(ahead + 1, claim_number(ahead))
    assert.is_true(claim_number(last) > last)
  end)

  it("rise from one runtime to the next, which knows none of before, whatever becomes of the wall clock", function()
    local before, time = core.now(), os.time
    os.time = function() return 1 end -- luacheck: ignore
    local number = claim_number(0)
    os.time = time -- luacheck: ignore
    assert.is_true(number >= math.floor(before * 1e6))
    assert.is_true(number <= core.now() * 1e6) -- and so stay below those of a later runtime
  end)
end)
