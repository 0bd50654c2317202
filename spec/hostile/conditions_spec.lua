-- What is shown of connections, while their servers play tricks.
local conditions = require "crown.link.conditions"
local core = require "crown.core"
local crown = require "crown"
local EtcdClient = require "crown.etcd.client"
local eventually = require("crown.testing").eventually
local Hostile = require "support.hostile"
local Links = require "crown.registry.links"
local NatsBucket = require "crown.nats.bucket"
local EtcdWatch = require "crown.etcd.watch"
local RedisClient = require "crown.redis.client"
local RedisConnection = require "crown.redis.connection"
local Subscriber = require "crown.redis.subscriber"
local within = require("support.stillness").within

local function shown(store, server)
  for _, one in ipairs(conditions.all()) do
    if one.store == store and (not server or one.server == server) then return one end
  end
end

local function shows(state, store, server)
  return eventually(function()
    local one = shown(store, server)
    return one and one.state == state and one or error(one and one.state or "not shown")
  end, 20)
end

describe("a connection's condition", function()
  local server, client

  local function start(...)
    server = Hostile.start(...)
    return "127.0.0.1:" .. server.port
  end

  after_each(function()
    if client then client:close() end
    if server then server:destroy() end
    client, server = nil, nil
  end)

  it("goes from logging in over open to proven, and says when it was heard of", function()
    local place = start "hear AUTH\nwait 2\nsay +OK\\r\\n\nhear PING\nsay +PONG\\r\\n"
    client = assert(RedisClient.new("redis://:secret@" .. place, { timeout = 5 }))
    assert.is_nil(shows("logging in", "redis", place).answered)
    assert.is_number(shows("open", "redis", place).answered)
    local one = shows("proven", "redis", place)
    assert.is_true(one.answered > one.since) -- nothing was asked since
    assert.same({ 0, nil }, { one.reconnects, one.error })
  end)

  it("names the last error, and counts how often it was lost", function()
    local place = start("hear PING\nclose", "hear PING\nclose", "hear PING\nsay +PONG\\r\\n")
    client = assert(RedisClient.new("redis://" .. place, { timeout = 5 }))
    for _ = 1, 2 do
      assert(client:ready(20))
      client:call "PING"
    end
    eventually(function() return shown("redis", place).reconnects == 2 end, 20)
    assert.matches("^the server closed the connection; is it the right port", shown("redis", place).error)
    assert(client:ready(20))
    client:call "PING"
    shows("proven", "redis", place)
    assert.is_nil(shown("redis", place).error)
  end)

  it("is not proven, and has no last answer, while the server has said nothing", function()
    local place = start ""
    client = assert(RedisClient.new("redis://" .. place, { timeout = 5 }))
    shows("open", "redis", place)
    eventually(function() return client.link.state == "proven" end, 20) -- it has lasted
    local opened = shown("redis", place)
    assert.same({ "open", nil }, { opened.state, opened.answered })
  end)

  it("says in words that a server did not answer", function()
    local place = start ""
    client = assert(RedisClient.new("redis://:secret@" .. place, { timeout = 0.3 }))
    shows("broken", "redis", place)
    assert.matches("^no answer in time; is it the right port", shown("redis", place).error)
  end)

  it("is shown while TLS is being agreed upon, and not after close", function()
    local place = start ""
    client = assert(RedisClient.new("rediss://" .. place, { timeout = 20 }))
    shows("handshaking", "redis", place)
    client:close()
    client = nil
    assert.is_nil(shown("redis", place))
  end)

  it("shows no password", function()
    local place = start "close"
    client = assert(RedisClient.new("redis://joe:secret@" .. place, { timeout = 1 }))
    shows("broken", "redis", place)
    assert.is_nil(core.json.encode(conditions.all()):find "secret")
  end)

  it("is told of etcd's members, each by itself", function()
    local place = start "hear POST\nsay HTTP/1.1 503 X\\r\\nConnection: close\\r\\nContent-Length: 2\\r\\n\\r\\n{}"
    local well = Hostile.start "hear POST\nsay HTTP/1.1 200 X\\r\\nConnection: close\\r\\nContent-Length: 13\\r\\n\\r\\n{\"header\":{}}"
    local etcd = EtcdClient.new({ endpoints = { "http://" .. place, "http://127.0.0.1:" .. well.port } }, 5)
    assert.equal("not asked yet", shown("etcd", place).state)
    assert(etcd:ask("/v3/kv/range", {}))
    assert.equal("it answered 503", shown("etcd", place).error)
    assert.equal("broken", shown("etcd", place).state)
    assert.equal("proven", shown("etcd", "127.0.0.1:" .. well.port).state)
    well:destroy()
  end)

  it("is told of a watch on etcd, which is opened at growing pauses where it dies young", function()
    local place = start(Hostile.watch(Hostile.CREATED) .. "wait 0.01\nclose")
    local watch = EtcdWatch.new { client = EtcdClient.new({ endpoints = { "http://" .. place } }, 5), timeout = 5,
      on_event = function() end, on_missed = function() end }
    assert.is_nil(shown "etcd watch")
    assert(watch:over { key = "a2V5" })
    eventually(function() return shown("etcd watch", place).reconnects > 2 end, 20)
    assert.is_number(shown("etcd watch").answered)
    crown.sleep(2)
    watch:close()
    assert.is_true(server.count < 20, server.count .. " connections") -- at flat pauses there were fifty
    assert.is_nil(shown "etcd watch")
  end)

  it("is told of Postgres", function()
    local place = start("wait 0.01\n" .. Hostile.LETS_IN .. "close")
    client = assert(crown.postgres.connect(("postgres://x:secret@%s/x?sslmode=disable&target_session_attrs=any"):format(place)))
    assert(client:listen("news", function() end))
    eventually(function() return shown("postgres").reconnects > 1 end, 20)
    local one = shown "postgres"
    assert.equal(place .. "/x", one.server)
    assert.is_string(one.error)
  end)
end)

describe("a server that is there, and says nothing any more", function()
  local CLIENTS = {
    ["a client of Redis"] = { "", "redis", function(place) return RedisClient.new("redis://" .. place, { timeout = 1 }) end },
    ["a subscriber of Redis"] = { "", "redis channels", function(place) return Subscriber.new("redis://" .. place, 1) end },
    ["a client of NATS"] = { "say INFO {}\\r\\n\nhear PING\nsay PONG\\r\\n", "nats",
      function(place) return NatsBucket.at("nats://" .. place, { bucket = "B", timeout = 1 }) end },
  }
  for name, case in pairs(CLIENTS) do
    it("is left by " .. name, function()
      local server = Hostile.start(case[1])
      local client = assert(case[3]("127.0.0.1:" .. server.port))
      eventually(function() return server.count > 1 end, 20)
      assert.matches("^no answer to a ping; ", shown(case[2]).error)
      client:close()
      server:destroy()
    end)
  end

  it("is left no later where the login was given more time than a question", function()
    local server = Hostile.start ""
    local link = { timeout = 0.25, on_opening = function() end, logging_in = function() end }
    local connection = assert(RedisConnection.open({}, { host = "127.0.0.1", port = server.port }, 5, link))
    -- By the login's time it would be fifteen seconds.
    within(8, function() eventually(function() return connection.closed end, 20) end)
    server:destroy()
  end)

  it("is left by a client of NATS also where it talks on, and answers nothing that it is asked", function()
    local server = Hostile.start("say INFO {}\\r\\n\nhear PING\nsay PONG\\r\\n\ndrip " .. ("+OK\\r\\n"):rep(2000))
    local client = assert(NatsBucket.at("nats://127.0.0.1:" .. server.port, { bucket = "B", timeout = 1 }))
    local _, _, code = client:get "key"
    assert.equal("timeout", code)
    eventually(function() return server.count > 1 end, 20)
    assert.matches("^no answer to a ping; ", shown("nats").error)
    client:close()
    server:destroy()
  end)

  it("is left by a watch on etcd, which is opened anew while it is quiet", function()
    local well = Hostile.watch(Hostile.CREATED)
    local one, other = Hostile.start(well, well, ""), Hostile.start(well)
    local places = { "http://127.0.0.1:" .. one.port, "http://127.0.0.1:" .. other.port }
    local missed = 0
    local watch = EtcdWatch.new { client = EtcdClient.new({ endpoints = places }, 1), timeout = 0.5, on_event = function() end,
      on_missed = function() missed = missed + 1 end }
    assert(watch:over { key = "a2V5" })
    eventually(function() return one.count == 2 end, 20)
    assert.same({ 0, nil }, { shown("etcd watch").reconnects, shown("etcd watch").error }) -- it was well, and is not told as lost
    eventually(function() return other.count > 0 end, 20)
    assert.same({ 1, 0 }, { shown("etcd watch").reconnects, missed })
    assert.equal("no answer to a new watch", watch.problem)
    watch:close()
    one:destroy()
    other:destroy()
  end)

  it("has not said yet what happened meanwhile when it says that a watch is created", function()
    local function says(revision)
      return Hostile.watch(([[{"result":{"header":{"revision":"%d"},"created":true,"watch_id":"1"}}]]):format(revision))
    end
    local server = Hostile.start(says(7), says(9))
    local watch = EtcdWatch.new { client = EtcdClient.new({ endpoints = { "http://127.0.0.1:" .. server.port } }, 1), timeout = 0.5,
      on_event = function() end, on_missed = function() end }
    assert(watch:over { key = "a2V5" })
    eventually(function() return server.count == 3 end, 20)
    assert.equal(7, watch:heard { key = "a2V5" })
    watch:close()
    server:destroy()
  end)

  it("is said to have been missed only when the next one listens", function()
    local opens = "wait 0.1\n" .. Hostile.LETS_IN
    local listens = opens .. "wait 0.5\n" .. Hostile.LISTENS
    local server = Hostile.start(listens .. "wait 0.5\nclose", opens, listens)
    local client = assert(crown.postgres.connect(
      ("postgres://x@127.0.0.1:%d/x?sslmode=disable&target_session_attrs=any"):format(server.port), { timeout = 20 }))
    local missed = 0
    assert(client:listen("news", function() end, function() missed = missed + 1 end))
    eventually(function() return server.count == 2 end, 20)
    crown.sleep(1)
    assert.equal(0, missed) -- that one does not answer
    for connection in pairs(server.open) do connection:close() end
    eventually(function() return missed == 1 end, 20)
    assert.equal(3, server.count)
    client:close()
    server:destroy()
  end)

  it("is left by a listener of Postgres", function()
    local server = Hostile.start("wait 0.1\n" .. Hostile.LETS_IN .. "wait 0.5\n" .. Hostile.LISTENS)
    local client = assert(crown.postgres.connect(
      ("postgres://x@127.0.0.1:%d/x?sslmode=disable&target_session_attrs=any"):format(server.port), { timeout = 1 }))
    assert(client:listen("news", function() end))
    eventually(function() return server.count > 1 end, 20)
    assert.matches("no answer within 1 s", shown("postgres").error)
    client:close()
    server:destroy()
  end)

  it("is left by a member of a registry", function()
    local server = Hostile.start "member"
    local function yes() return true end
    local links = assert(Links.open { host = "127.0.0.1", port = 0, every = 0.1, linger = 1,
      who = { registry = "r", id = "r@a", secret = "secret", runtime = "one" },
      receive = yes, answered = yes, up = yes, down = yes, runtime_of = yes, dialled = yes, emit = yes })
    links:set_peers { ["r@b"] = "127.0.0.1:" .. server.port }
    eventually(function() return server.count > 1 end, 20)
    assert.equal(1, shown("registry").reconnects)
    links:close()
    server:destroy()
  end)
end)
