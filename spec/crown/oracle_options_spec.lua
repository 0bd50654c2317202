local store_options = require "crown.oracle.options"

describe("an oracle's options", function()
  local RULES = { url = { type = "string", required = true }, ttl = { type = "number" } }
  local CLIENTS = { nkey = true, ca = true }

  local function check(opts) return store_options.check("x", opts, RULES, CLIENTS) end

  it("reach the store's client also from a table", function()
    assert.equal("nats://h/B?nkey=/etc/a%20key", check({ url = "nats://h/B", nkey = "/etc/a key" }).url)
    assert.equal("nats://h/B?tls=1&ca=/ca.crt", check({ url = "nats://h/B?tls=1&ttl=5", ca = "/ca.crt" }).url)
  end)

  it("give way to what the URL says", function()
    assert.equal("nats://h/B?nkey=one", check({ url = "nats://h/B?nkey=one", nkey = "two" }).url)
  end)

  it("are named when nobody knows them, but for those that every oracle is given", function()
    assert.equal(5, check({ url = "nats://h/B", ttl = 5, crown_name = "x", node = "n", token = "t" }).ttl)
    local fine, problem = pcall(check, { url = "nats://h/B", nkeys = "x" })
    assert.is_false(fine)
    assert.matches("nkeys", tostring(problem))
  end)

  it("make a timing: a third of the TTL, a fourth for a question", function()
    assert.same({ 15, 5 }, { store_options.timing({}, 15) })
    assert.same({ 6, 1 }, { store_options.timing({ duration = 6, refresh = 1 }, 15) })
    assert.equal(1.5, store_options.timeout({}, 6))
    assert.equal(5, store_options.timeout({}, 60))
    assert.equal(0.7, store_options.timeout({ timeout = 0.7 }, 60))
  end)
end)
