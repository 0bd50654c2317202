local memory = require "crown.oracles.memory"
local Player = require "support.oracle_candidate"
local record = require "crown.register.record"
local rule = require "crown.register.rule"
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

  it("is told of what others write, and not of its own writes where it is alone on its lock", function()
    local alone = Player.new(memory, { name = "alone", path = "told" })
    alone:win()
    alone:abdicate()
    assert.same({}, alone.messages)
    local one, two = Player.new(memory, { name = "one", path = "told", lock = "both" }),
      Player.new(memory, { name = "two", path = "told", lock = "both" })
    one:win()
    assert.same({ "changed" }, two.messages)
    one:abdicate()
    assert.same({ "changed", "changed" }, two.messages)
  end)

  it("takes nothing from a later term of the same runtime by a release of an earlier one that comes late", function()
    local function player(node, token) return Player.new(memory, { name = "late", path = "late", node = node, token = token }) end
    local one, two = player("one", "one's"), player("two", "two's")
    one:win()
    local store, late = one.state.store, nil
    local swap = store.swap
    function store.swap(_, writes)
      late = late or writes
      return nil, "no answer", "timeout"
    end
    one:abdicate()
    store.swap = swap
    local again = player("one", "one's")
    assert.equal("granted", again:claim()[1])
    assert.equal("late", late[1].name)
    assert.same({ false }, store:swap(late))
    assert.equal("granted", again:refresh()[1])
    assert.equal("denied", two:claim()[1])
  end)

  it("tells those who follow a session that it was ended", function()
    local one = Player.new(memory, { name = "ended", path = "ended", node = "one", ttl = 60 })
    local two = Player.new(memory, { name = "ended", path = "ended", node = "two", ttl = 60 })
    one:win()
    two:claim()
    assert.equal("denied", two:claim()[1])
    while two:message() do end
    assert.truthy(one.state.session:renew())
    assert.is_nil(two:message()) -- a renewal wakes nobody
    local store, name = one.state.store, one.state.session.name
    local before = store:look({ name })[name]
    local over = record.text(rule.over(record.parse(before.text, name)), "the end's")
    assert.truthy(store:swap({ { name = name, version = before.version, memory = before.memory, text = over } })[1])
    assert.equal("changed", two:message()) -- before anybody looks
    assert.equal("granted", two:claim()[1])
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
