-- What the URLs of stores that crown-lua takes apart itself say: one way for all of them.
local crown = require "crown"
local Etcd = require "crown.etcd.client"
local nats_url = require "crown.nats.url"
local redis_url = require "crown.redis.url"
local run = require "support.run"
local tempdir = require "support.tempdir"
local url = require "crown.text.url"
local write_file = require "support.write_file"

describe("the URL of a store", function()
  it("has a login, hosts, a path and a query", function()
    assert.same({ scheme = "x+y", user = "jo:e", password = "p@:/?", hosts = "a,b:1", path = "c/d", query = "e=f" },
      url.split "x+y://jo%3ae:p%40%3a%2f%3f@a,b:1/c/d?e=f")
    assert.same({ scheme = "x", hosts = "", path = "", query = "" }, url.split "x://")
    assert.same({ scheme = "x", user = "u", hosts = "h", path = "", query = "" }, url.split "x://u@h")
    assert.same({ scheme = "x", hosts = "h", path = "", query = "e=u@x" }, url.split "x://h?e=u@x")
    assert.same({ scheme = "x", user = "u", password = "p@q", hosts = "h", path = "", query = "" }, url.split "x://u:p@q@h")
    for _, none in ipairs { "", "x", "x:", "x:/h", "://h", "X://h" } do assert.is_nil(url.split(none)) end
  end)

  it("says who logs in: what has no colon is what the store takes alone", function()
    local function login(parsed) return { parsed.user or false, parsed.password or false, parsed.token or false } end
    assert.same({ false, "secret", false }, login(redis_url.parse "redis://secret@h"))
    assert.same({ false, "secret", false }, login(redis_url.parse "redis://:secret@h"))
    assert.same({ "joe", "secret", false }, login(redis_url.parse "redis+unix://joe:secret@/run/x"))
    assert.same({ false, false, "secret" }, login(nats_url.parse "nats://secret@h"))
    assert.same({ "joe", "secret", false }, login(nats_url.parse "nats://joe:secret@h"))
    assert.same({ "joe", "", false }, login(Etcd.parse "etcd://joe@h"))
    assert.same({ "joe", "secret", false }, login(Etcd.parse "etcd://joe:secret@h"))
    assert.same({ false, false, false }, login(Etcd.parse "etcd://h"))
  end)

  it("has two hex digits behind each %, and shows nothing of it otherwise", function()
    local schemes = url.schemes()
    local own = tempdir()
    write_file(own .. "/own_oracle.lua", "return { init = function() return {} end, claim = error, refresh = error }")
    schemes[#schemes + 1] = "own_oracle"
    for _, scheme in ipairs(schemes) do
      for _, rest in ipairs { "joe:p%zz@h:1/d", "j%zz@h:1/d", "h:1/p%zz", "h:1/d?ca=p%zz", "h:1/d?p%zz=1",
        "h%zz/d", "h:1/p%4", "h:1/d?x=p%" } do
        local result = run({ "check", "--oracle", scheme .. "://" .. rest, "run", "x", "true" }, { env = { LUA_PATH = own .. "/?.lua;;" } })
        local said = result.stdout .. result.stderr
        assert.equal(2, result.code, scheme .. "://" .. rest .. ": " .. said)
        assert.truthy(said:find("a % in the URL begins no two hex digits: percent-encode it (%25)", 1, true), said)
        assert.is_nil(said:find("p%", 1, true) or said:find("j%", 1, true), said)
      end
    end
  end)

  it("has two hex digits behind each % also where a client or an option names it", function()
    local words = "a % in the URL begins no two hex digits: percent-encode it (%25)"
    for _, scheme in ipairs { "redis", "redis+unix", "redis+sentinel", "redis+cluster", "postgres" } do
      local client, problem = crown[scheme:match "^%l+"].connect(scheme .. "://joe:p%zz@h:1/d")
      assert.same({ nil, words }, { client, problem })
    end
    for oracle, text in pairs { redis = "redis://joe:p%zz@h", etcd = "etcd://joe:p%zz@h", nats_kv = "nats://joe:p%zz@h/B",
      postgres_lease = "postgres://joe:p%zz@h/d", http_lease = "http://joe:p%zz@h/x" } do
      local path = write_file(tempdir() .. "/app.lua",
        ("require('crown').elect { name = 'x', oracle = { %q, url = %q } }"):format(oracle, text))
      local result = run { "check", path }
      assert.equal(2, result.code, oracle .. ": " .. result.stdout .. result.stderr)
      assert.truthy((result.stdout .. result.stderr):find(words, 1, true), result.stdout .. result.stderr)
    end
    local several = run { "check", write_file(tempdir() .. "/app.lua",
      [[require("crown").elect { name = "x", oracle = { "redis", urls = { "redis://a", "redis://b", "redis://c:p%zz@c" } } }]]) }
    assert.truthy((several.stdout .. several.stderr):find(words, 1, true), several.stdout .. several.stderr)
  end)

  it("may have a zone behind the % of an IPv6 address", function()
    local result = run { "check", "--oracle", "http://[fe80::1%eth0]:1/d", "run", "x", "true" }
    assert.equal(0, result.code, result.stdout .. result.stderr)
  end)

  it("names hosts, IPv6 addresses among them, and a port each or none", function()
    assert.same({ "http://a:2379", "http://[::1]:2379", "http://[fe80::1]:5" },
      Etcd.parse("etcd://a,[::1],[fe80::1]:5/p").endpoints)
    assert.same({ "https://127.0.0.1:2379" }, Etcd.parse("etcds://").endpoints)
    assert.same({ { host = "a", port = 4222 }, { host = "::1", port = 5 } }, nats_url.parse("nats://a,[::1]:5/B").hosts)
    assert.same({ "/run/x", "B", "p/q" }, { redis_url.parse("redis+unix:///run/x?db=1").path, nats_url.parse("nats://h/B").bucket,
      Etcd.parse("etcd://h/p/q/").prefix })
  end)
end)
