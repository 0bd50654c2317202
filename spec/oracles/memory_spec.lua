local memory = require "crown.oracles.memory"
local Player = require "support.oracle_candidate"
local testing = require "crown.testing"

testing.conformance("the memory oracle", function()
  return { module = memory, options = { path = "spec", ttl = 0.3 }, expires = true }
end)

describe("the memory oracle", function()
  it("has lost a lease that has run out, though nobody else has it", function()
    local one = Player.new(memory, { name = "expired", path = "spec", ttl = 5 })
    local clock = testing.fake_clock()
    local won = one:claim()[1]
    clock:advance(5)
    local verdict = one:refresh()[1]
    clock:restore()
    assert.same({ "granted", "denied" }, { won, verdict })
  end)
end)
