local memory = require "crown.oracles.memory"
local Player = require "support.oracle_candidate"
local testing = require "crown.testing"

testing.conformance("the memory oracle", function()
  return { module = memory, options = { path = "spec", ttl = 0.3 }, expires = true }
end)

describe("the memory oracle", function()
  it("lets one of two elections of a runtime lead that have the same lock", function()
    local one = Player.new(memory, { name = "same", path = "same", lock = "same", token = "this runtime's" })
    local two = Player.new(memory, { name = "other", path = "same", lock = "same", token = "this runtime's" })
    one:win()
    assert.equal("denied", two:claim()[1])
    assert.equal("granted", one:refresh()[1])
    two:abdicate()
    assert.equal("granted", one:refresh()[1])
    one:abdicate()
    assert.equal("granted", two:claim()[1])
    assert.equal("denied", one:refresh()[1])
  end)

  it("writes once for all elections of a runtime", function()
    local all, clock = {}, testing.fake_clock()
    for i = 1, 1000 do
      all[i] = Player.new(memory, { name = "many-" .. i, path = "many", ttl = 30, token = "this runtime's" })
      assert.equal("granted", all[i]:claim()[1])
    end
    local store = all[1].state.store
    local writes = store.writes
    for _ = 1, 3 do
      clock:advance(10)
      for _, one in ipairs(all) do assert.equal("granted", one:refresh()[1]) end
    end
    clock:restore()
    assert.equal(3, store.writes - writes)
  end)

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
