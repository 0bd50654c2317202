-- A load balancer that hangs: what is sent is acknowledged, and nobody reads it. Who only listens to a real store through it asks
-- for a sign of life, and hears on another connection what it missed.
local crown = require "crown"
local Etcd = require "support.etcd"
local EtcdClient = require "crown.etcd.client"
local EtcdWatch = require "crown.etcd.watch"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local Proxy = require "support.proxy"

local TIMEOUT = 0.5 -- seconds, as the clients are told: silence of a second is asked about

describe("a balancer that hangs is noticed by who listens through it:", function()
  it("a watch on etcd, which is told what happened meanwhile, once", function()
    local store = Etcd.start()
    local proxy = Proxy.start(store.port)
    local heard, missed = {}, 0
    local direct = EtcdClient.new({ endpoints = { store.client } }, 5)
    local watch = EtcdWatch.new { client = EtcdClient.new({ endpoints = { "http://127.0.0.1:" .. proxy.port } }, TIMEOUT),
      timeout = TIMEOUT, on_event = function(_, _, value) heard[#heard + 1] = value end, on_missed = function() missed = missed + 1 end }
    local function put(value) assert(direct:ask("/v3/kv/put", { key = "a2V5", value = value })) end
    assert(watch:over { key = "a2V5" })
    put "YQ=="
    eventually(function() return #heard == 1 end, 20)
    crown.sleep(3) -- it is opened anew meanwhile
    proxy:freeze_connections()
    put "Yg=="
    eventually(function() return #heard == 2 end, 20)
    put "Yw=="
    eventually(function() return #heard == 3 end, 20)
    assert.same({ { "YQ==", "Yg==", "Yw==" }, 0 }, { heard, missed })
    watch:close()
    proxy:destroy()
    store:destroy()
  end)

  it("a watch on etcd, though its beginning was compacted meanwhile", function()
    local store = Etcd.start()
    local direct = EtcdClient.new({ endpoints = { store.client } }, 5)
    local heard, missed = 0, 0
    local watch = EtcdWatch.new { client = EtcdClient.new({ endpoints = { store.client } }, TIMEOUT), timeout = TIMEOUT,
      on_event = function() heard = heard + 1 end, on_missed = function() missed = missed + 1 end }
    assert(watch:over { key = "a2V5" })
    local function put(key) return assert(direct:ask("/v3/kv/put", { key = key, value = "YQ==" })).header.revision end
    put "b3RoZXI="
    assert(direct:ask("/v3/kv/compaction", { revision = put "b3RoZXI=", physical = true }))
    eventually(function() return missed == 1 end, 20)
    crown.sleep(2.5)
    put "a2V5"
    eventually(function() return heard == 1 end, 20)
    assert.same({ 1, 0 }, { missed, watch:condition().reconnects })
    watch:close()
    store:destroy()
  end)

  it("a listener of Postgres, which is told that it may have missed something", function()
    local store = Postgres.start()
    local proxy = Proxy.start(store.port)
    local heard, missed = {}, 0
    local direct = assert(crown.postgres.connect(("postgres://crown@127.0.0.1:%d/crown"):format(store.port)))
    local client = assert(crown.postgres.connect(("postgres://crown@127.0.0.1:%d/crown"):format(proxy.port), { timeout = TIMEOUT * 4 }))
    assert(client:listen("news", function(payload) heard[#heard + 1] = payload end, function() missed = missed + 1 end))
    local function say(payload) assert(direct:query("SELECT pg_notify('news', $1)", payload)) end
    eventually(function() -- it listens
      say "a"
      return #heard > 0
    end, 20)
    proxy:freeze_connections()
    eventually(function() return missed == 1 end, 40)
    heard = {}
    say "b"
    eventually(function() return heard[#heard] == "b" end, 20)
    client:close()
    direct:close()
    proxy:destroy()
    store:destroy()
  end)
end)
