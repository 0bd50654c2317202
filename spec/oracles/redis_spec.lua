local crown = require "crown"
local eventually = require("crown.testing").eventually
local port = require "support.port"
local redis = require "crown.oracles.redis"
local Redis = require "support.redis"
local redis_lease = require "support.redis_lease"
local run = require "support.run"
local Subscriber = require "crown.redis.subscriber"
local tempdir = require "support.tempdir"

local candidate = redis_lease.candidate

describe("the oracle on Redis", function()
  local server

  setup(function() server = Redis.start() end)
  teardown(function() server:destroy() end)
  before_each(redis_lease.name_anew)

  it("tells a follower who leads, and in which epoch", function()
    local one, two = candidate(server.url, "one"), candidate(server.url, "two")
    local won, denied = one:claim(), two:claim()
    assert.equal("granted", won[1])
    assert.same({ "denied", "one", won[4] }, { denied[1], denied[3], denied[4] })
  end)

  it("frees at once on abdicate, keeps the epoch, and wakes the followers", function()
    local one, two = candidate(server.url, "one"), candidate(server.url, "two")
    local epoch = one:claim()[4]
    two:claim()
    server:await_subscriber(redis_lease.CHANNEL)
    while two:message() do end
    one:abdicate()
    eventually(function() return two:message() == "changed" end)
    assert.is_true(two:call("handle_info", "changed")[4] > epoch)
  end)

  it("stops to listen for one candidate, and not for the others on its channel", function()
    local subscriber = assert(Subscriber.new(server.url, 20))
    finally(function() subscriber:close() end)
    local first, second = {}, {}
    local function for_first(payload) first[#first + 1] = payload end
    subscriber:subscribe("shared", for_first)
    subscriber:subscribe("shared", function(payload) second[#second + 1] = payload end)
    eventually(function() return tonumber(server:call("PUBLISH", "shared", "both")) == 1 end)
    eventually(function() return first[#first] == "both" and second[#second] == "both" end)
    subscriber:unsubscribe("shared", for_first)
    server:call("PUBLISH", "shared", "one")
    eventually(function() return second[#second] == "one" end)
    assert.equal("both", first[#first])
  end)

  it("gives each of those that are asked for at once its own answer", function()
    local held = candidate(server.url, "held", { lock = "both-" .. redis_lease.name() })
    assert.equal("granted", held:claim()[1])
    local free, other = candidate(server.url, "free"), candidate(server.url, "other", { lock = "both-" .. redis_lease.name() })
    local verdicts = {}
    for _, one in ipairs { free, other } do crown.spawn(function() verdicts[one] = one:claim()[1] end) end
    eventually(function() return verdicts[free] and verdicts[other] end)
    assert.same({ "granted", "denied" }, { verdicts[free], verdicts[other] })
  end)

  it("begins a term that nobody has asked to go, also when its last one was evicted", function()
    local one = candidate(server.url, "one")
    one:claim()
    assert.is_nil((redis.evict({ url = server.url, wait = 0 }, redis_lease.name())))
    assert.equal("evicted", one:answered("refresh")[1])
    assert.equal("granted", one:claim()[1]) -- without a release in between
    assert.equal("granted", one:refresh()[1])
  end)

  it("takes no answer that came late for the next question's", function()
    local way = redis_lease.valve(server)
    local client = assert(crown.redis.connect(way.url, { timeout = 2 }))
    local connection = client.client.link.connection
    way.hold = true
    assert.is_nil((client:call("ECHO", "first")))
    assert.is_truthy(connection.closed) -- it may be silent for ever
    way.hold = false
    for _, deliver in ipairs(way.held) do deliver() end
    local answer
    eventually(function() answer = client:call("ECHO", "second") return answer end)
    assert.equal("second", answer)
    client:close()
    way.listener:close()
  end)

  it("hands nobody another command's answer, also where a task is interrupted while it asks", function()
    local connection = require "crown.redis.connection"
    local client, send = assert(crown.redis.connect(server.url)), connection.send
    function connection:send(...)
      local command, said = ...
      local over = command == "ECHO" and said:match "^1" and crown.now() + 0.15 or 0
      while crown.now() < over do local _ = 1 end -- longer than a task may compute in one go, so that others come between
      return send(self, ...)
    end
    local wrong, left = 0, 3
    for task = 1, 3 do
      crown.spawn(function()
        for i = 1, 5 do
          if client:call("ECHO", task .. " " .. i) ~= task .. " " .. i then wrong = wrong + 1 end
        end
        left = left - 1
      end)
    end
    eventually(function() return left == 0 end, 30)
    connection.send = send
    assert.equal(0, wrong)
    client:close()
  end)

  it("counts epochs on from the last one, also where the server's clock is behind it", function()
    local one = candidate(server.url, "one")
    one:claim()
    one:abdicate()
    local text = server:call("HGET", redis_lease.key(), "record")
    server:call("HSET", redis_lease.key(), "version", "by-hand", "record", (text:gsub('("epoch":)%d+', "%19000000000000000")))
    assert.equal(9000000000000001, one:claim()[4])
    one:abdicate()
    assert.equal(9000000000000002, one:claim()[4])
  end)

  it("says so where somebody has made the record of its election nonsense, also to an operator", function()
    local one = candidate(server.url, "one")
    one:claim()
    server:call("HSET", redis_lease.key(), "version", "by-hand", "record", "abc")
    local verdict = candidate(server.url, "two"):claim()
    assert.equal("unknown", verdict[1])
    assert.matches("not a record of an election", verdict[2])
    assert.matches("not a record of an election", run({ "info", "--oracle", server.url, redis_lease.name() }).stdout)
    local checked = run { "check", "--store", "--oracle", server.url, "run", redis_lease.name(), "true" }
    assert.equal(2, checked.code)
    assert.matches('PROBLEM%s+.*: the store\'s value is not a record of an election: "abc"; is this the right store', checked.stdout)
  end)

  it("goes on after SCRIPT FLUSH", function()
    local one = candidate(server.url, "one")
    one:claim()
    server:call("SCRIPT", "FLUSH")
    assert.equal("granted", one:refresh()[1])
  end)

  it("counts an answer of the wrong kind as not known, in the server's words", function()
    server:call("SET", redis_lease.key(), "something of somebody's")
    local verdict = candidate(server.url, "one"):claim()
    assert.equal("unknown", verdict[1])
    assert.matches("WRONGTYPE.*%(the key " .. redis_lease.key():gsub("%p", "%%%0") .. ": delete it, if nobody needs it%)", verdict[2])
  end)

  it("names the key of the store where that is of the wrong kind", function()
    finally(function() server:call("DEL", "crown:memory") end)
    server:call("DEL", "crown:memory")
    server:call("LPUSH", "crown:memory", "x")
    local verdict = candidate(server.url, "one"):claim()
    assert.equal("unknown", verdict[1])
    assert.matches("WRONGTYPE.*%(the key crown:memory: delete it, if nobody needs it%)", verdict[2])
  end)

  it("counts a full server as not known", function()
    server:call("CONFIG", "SET", "maxmemory", "1mb")
    local verdict = candidate(server.url, "one"):claim()
    server:call("CONFIG", "SET", "maxmemory", "0")
    assert.equal("unknown", verdict[1])
    assert.matches("OOM", verdict[2])
    for _, once in ipairs { "redis at ", "raise the server's maxmemory" } do
      assert.equal(1, select(2, verdict[2]:gsub(once, "")), verdict[2])
    end
  end)

  it("warns of a server that throws records away when it is full, and of no other", function()
    finally(function()
      server:call("CONFIG", "SET", "maxmemory-policy", "noeviction")
      server:call("CONFIG", "SET", "maxmemory", "0")
    end)
    server:call("CONFIG", "SET", "maxmemory", "1gb")
    for policy, warns in pairs { noeviction = false, ["volatile-lru"] = false, ["allkeys-random"] = true } do
      server:call("CONFIG", "SET", "maxmemory-policy", policy)
      local warnings = table.concat(redis.health({ url = server.url }).warnings, "\n")
      assert.equal(warns, warnings:find("maxmemory-policy is " .. policy, 1, true) ~= nil)
    end
  end)

  it("gives up a server that does not answer, and comes back to it", function()
    candidate(server.url, "one", { timeout = 1 }):outlasts(server) -- the TTL would make it 5 s
  end)

  it("says why there is no connection, also to whoever waits for one in vain, or that there is no answer", function()
    local one = candidate("redis://127.0.0.1:1", "one", { timeout = 0.05 })
    for _ = 1, 10 do assert.matches("Connection refused", one:claim()[2]) end
    local two = candidate(server.url, "two", { timeout = 2 })
    assert.equal("granted", two:claim()[1])
    server:freeze()
    finally(function() server:thaw() end)
    assert.matches("^redis at 127.0.0.1:%d+: no answer .*; look at the server's log", two:refresh()[2])
  end)

  it("lists elections and evicts, from the command line", function()
    local one = candidate(server.url, "one")
    local epoch = one:claim()[4]
    local info = crown.json.decode(run({ "info", "--oracle", server.url, "--json", "^" .. redis_lease.name() .. "$" }).stdout)
    assert.same({ "one", epoch }, { info.elections[1].node, info.elections[1].epoch })
    assert.matches("Redis 7", info.store.store)
    crown.spawn(function()
      eventually(function() return one:message() == "changed" and one:call("handle_info", "changed")[1] == "evicted" end)
      one:abdicate()
    end)
    local result = run { "evict", "--oracle", server.url, "--force", "--wait", "5", redis_lease.name() }
    assert.equal(0, result.code, result.stderr)
    assert.matches("evicted one from", result.stdout)
  end)

  for option, case in pairs {
    ttl = { "0.1", "ttl must be at least 0.2" },
    prefix = { "a b", "prefix" },
    colour = { "red", "colour" },
  } do
    it("refuses a wrong option at check time: " .. option, function()
      local path = tempdir() .. "/app.lua"
      local file = assert(io.open(path, "w"))
      file:write 'require("crown").elect { name = "x", oracle = arg[1] }'
      file:close()
      local result = run { "check", path, ("%s?%s=%s"):format(server.url, option, case[1]) }
      assert.equal(2, result.code)
      assert.matches(case[2], result.stderr)
    end)
  end
end)

describe("what comes from a Redis server", function()
  local resp = require("crown.core.resp")

  it("is read in pieces of any size", function()
    local text = "*3\r\n$3\r\nabc\r\n:42\r\n*2\r\n$-1\r\n+OK\r\n-ERR no\r\n"
    for size = 1, #text do
      local reader, found = resp.reader(), {}
      for at = 1, #text, size do
        reader:feed(text:sub(at, at + size - 1))
        while true do
          local kind, value = reader:next()
          if not kind then break end
          found[#found + 1] = { kind, value }
        end
      end
      assert.same({ { "value", { "abc", 42, { nil, "OK", n = 2 }, n = 3 } }, { "error", "ERR no" } }, found)
    end
  end)

  it("allots no place for an array that is only promised", function()
    local reader = resp.reader()
    reader:feed "*100000\r\n"
    assert.same({ 0 }, { select("#", reader:next()) })
    for _, text in ipairs { "*100001\r\n", "*2147483647\r\n", "*1\r\n*100000\r\n" } do
      reader = resp.reader()
      reader:feed(text)
      assert.same({ nil, "a reply that is too big" }, { reader:next() })
    end
  end)

  it("may be anything, and does no harm", function()
    math.randomseed(7)
    local alphabet = { "*", "$", ":", "+", "-", "\r\n", "\r", "\n", "0", "1", "9", "-1", "99999999999999999999", "a", "\0" }
    for _ = 1, 20000 do
      local reader, parts = resp.reader(), {}
      for i = 1, math.random(1, 20) do parts[i] = alphabet[math.random(#alphabet)] end
      reader:feed(table.concat(parts))
      for _ = 1, 30 do
        local kind, problem = reader:next()
        if not kind then
          assert.is_true(problem == nil or type(problem) == "string")
          break
        end
      end
    end
  end)

  it("ends the connection when it is no answer, with one clear line", function()
    local number = port.free()
    local listener = assert(crown.tcp.listen("127.0.0.1", number, function(connection)
      connection:read "*l"
      connection:write "HTTP/1.1 400 Bad Request\r\n\r\n"
    end))
    local client, problem = crown.redis.connect(("redis://:secret@127.0.0.1:%d"):format(number), { timeout = 20 })
    listener:close()
    assert.is_nil(client)
    assert.matches("not a reply of Redis", problem)
  end)

  for text, pattern in pairs {
    ["http://x"] = "is written redis://",
    ["redis://h:1,h:2"] = "one host",
    ["redis://h/x"] = "no number",
    ["redis+sentinel://h:1"] = "name the master",
  } do
    it("is not asked for by a wrong URL: " .. text, function()
      local client, problem = crown.redis.connect(text)
      assert.is_nil(client)
      assert.matches(pattern, problem)
    end)
  end
end)
