local build = require "crown.core.build"
local crown = require "crown"
local elections = require "crown.core.election"
local plain_program = require "support.plain_program"
local run = require "support.run"
local store_options = require "crown.oracle.options"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

describe("an oracle's options", function()
  local RULES = { url = { type = "string", required = true }, ttl = { type = "number" } }
  local CLIENTS = { nkey = true, ca = true, server_name = true }

  local function check(opts) return store_options.check("x", opts, RULES, CLIENTS) end

  it("reach the store's client also from a table", function()
    assert.equal("nats://h/B?nkey=/etc/a%20key", check({ url = "nats://h/B", nkey = "/etc/a key" }).url)
    assert.equal("nats://h/B?tls=1&server_name=db", check({ url = "nats://h/B?tls=1&ttl=5", server_name = "db" }).url)
  end)

  it("give way to what the URL says", function()
    assert.equal("nats://h/B?nkey=one", check({ url = "nats://h/B?nkey=one", nkey = "two" }).url)
  end)

  it("count in the URL of a table as they do in a URL alone, and are refused where both say something else", function()
    local function ttl_of(oracle)
      return run { "check", write_file(tempdir() .. "/app.lua", 'require("crown").elect { name = "x", oracle = ' .. oracle .. " }") }
    end
    for _, oracle in ipairs { '{ "redis", url = "redis://db?ttl=4" }', '{ "redis://db?ttl=4" }', '"redis://db?ttl=4"',
      '{ "redis", url = "redis://db?ttl=4", ttl = 4 }', '{ "postgres_lease", url = "postgres://db/app?sslmode=disable&ttl=4" }',
      '{ "etcd", url = "etcd://db/app?ttl=4" }', '{ "nats_kv", url = "nats://db/B?ttl=4" }',
      '{ "http_lease", url = "http://db/l?ttl=4" }' } do
      local result = ttl_of(oracle)
      assert.equal(0, result.code, oracle .. result.stderr)
      assert.matches("TTL%s+4 s", result.stdout, nil, oracle)
    end
    for _, oracle in ipairs { '{ "redis", url = "redis://db?ttl=4", ttl = 5 }', '{ "redis://db?ttl=4", ttl = 5 }' } do
      local result = ttl_of(oracle)
      assert.equal(2, result.code)
      assert.matches("app.lua:1: elect 'x': oracle: ttl is 4 in the URL and 5 beside it", result.stderr)
    end
  end)

  it("are named when nobody knows them, but for those that every oracle is given", function()
    assert.equal(5, check({ url = "nats://h/B", ttl = 5, crown_name = "x", node = "n", token = "t" }).ttl)
    local fine, problem = pcall(check, { url = "nats://h/B", nkeys = "x" })
    assert.is_false(fine)
    assert.matches("nkeys", tostring(problem))
  end)

  it("make a timing: a third of the TTL; for a question no more than a fourth, and than the core waits for a refresh", function()
    assert.same({ 15, 5 }, { store_options.timing({}, 15) })
    assert.same({ 6, 1 }, { store_options.timing({ duration = 6, refresh = 1 }, 15) })
    assert.is_true(store_options.timeout({}, 6, 2) < 1.5) -- a fourth, of which the core does not wait all
    assert.equal(0.25, store_options.timeout({}, 1, 0.333))
    assert.equal(5, store_options.timeout({}, 60, 20))
    assert.equal(0.7, store_options.timeout({ timeout = 0.7 }, 60, 20))
    for ttl = 1, 120 do
      local timeout = store_options.timeout({}, ttl, ttl / 3)
      local _, timing = elections.explain({}, ttl, ttl / 3)
      local left = timing.stop_at - ttl / 3
      assert.is_true(timeout <= math.max(left / 2, math.min(left, 1)) + 0.01 or timeout == 0.25)
    end
    assert.equal(0.05, store_options.timeout({}, 0.2, 0.07))
  end)

  it("take a lease of less than half a second only where keepers have real-time priority", function()
    for _, url in ipairs { "redis://db?ttl=", "postgres://db/app?duration=" } do
      for ttl, takes in pairs { ["0.1"] = "at least 0.2", ["0.2"] = "needs real%-time priority", ["0.49"] = "needs real%-time priority",
        ["0.5"] = false } do
        local words = { "check", "run", "--oracle", url .. ttl, "x", "true" }
        local ordinary = assert(crown.exec(plain_program(unpack(words))))
        assert.equal(takes and 2 or 0, ordinary.code, ordinary.stderr)
        if takes then assert.matches(takes, ordinary.stderr) end
        if build.kernel().real_time and ttl ~= "0.1" then assert.equal(0, run(words).code) end
      end
    end
  end)
end)
