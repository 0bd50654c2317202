-- What the URLs of stores that crown-lua takes apart itself say: one way for all of them.
local Etcd = require "crown.etcd.client"
local nats_url = require "crown.nats.url"
local redis_url = require "crown.redis.url"
local url = require "crown.text.url"

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

  it("names hosts, IPv6 addresses among them, and a port each or none", function()
    assert.same({ "http://a:2379", "http://[::1]:2379", "http://[fe80::1]:5" },
      Etcd.parse("etcd://a,[::1],[fe80::1]:5/p").endpoints)
    assert.same({ "https://127.0.0.1:2379" }, Etcd.parse("etcds://").endpoints)
    assert.same({ { host = "a", port = 4222 }, { host = "::1", port = 5 } }, nats_url.parse("nats://a,[::1]:5/B").hosts)
    assert.same({ "/run/x", "B", "p/q" }, { redis_url.parse("redis+unix:///run/x?db=1").path, nats_url.parse("nats://h/B").bucket,
      Etcd.parse("etcd://h/p/q/").prefix })
  end)
end)
