-- What check says of a failover where followers have to watch a lease, or to ask for it.
local failover = require "crown.election.failover"

describe("the longest failover in the explanation of a timing", function()
  local TEXT = "refresh every 1 s\nfailover    at most 3 s after the death\n"

  local function said(seconds, cool_down)
    local text = failover(TEXT, { failover = function(opts) return opts.more + seconds end }, { more = 1 }, cool_down or 0)
    return text:match "failover    at most (%S+) s after the death\n$"
  end

  it("is what the oracle says, and the cool-down, rounded up to a tenth of a second", function()
    assert.equal("2.4", said(1.31))
    assert.equal("2.3", said(1.3))
    assert.equal("47", said(1, 45))
    assert.equal("86401", said(86400))
  end)

  it("stays as it is where the oracle says nothing", function()
    assert.equal(TEXT, failover(TEXT, {}, {}, 45))
  end)
end)
