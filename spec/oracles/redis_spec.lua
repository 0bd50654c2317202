local authority = require "support.authority"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local lease = require "crown.oracles.redis"
local Player = require "support.oracle_candidate"
local port = require "support.port"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"

local serial = 0

local function name_anew()
  serial = serial + 1
  return "lease-" .. serial
end

-- A server that has been up for a while: what it does not know, it has never known.
local function trusted(server)
  server:call("HSET", "crown:store", "identity", server:call("INFO", "replication"):match "master_replid:(%x+)", "since", "0",
    "longest", "0")
  return server
end

local function lease_on(server, field)
  return server:call("HGET", ("crown:{lease-%d}:lease"):format(serial), field)
end

-- A way to a server on which answers can be held back, and what is asked can be lost.
local function valve(server)
  local self = { held = {}, lost = 0, hold = false, lose = false }
  self.listener = assert(crown.tcp.listen("127.0.0.1", 0, function(near)
    local far = assert(crown.tcp.connect("127.0.0.1", server.port))
    crown.spawn(function()
      for bytes in function() return far:read("*s", 60) end do
        if self.hold then
          self.held[#self.held + 1] = function() near:write(bytes) end
        else
          near:write(bytes)
        end
      end
      near:close()
    end)
    for bytes in function() return near:read("*s", 60) end do
      if self.lose then self.lost = self.lost + 1 else far:write(bytes) end
    end
    far:close()
  end))
  self.url = "redis://127.0.0.1:" .. self.listener:port()
  return self
end

local function candidate(url, node, options)
  local given = { name = "lease-" .. serial, node = node, url = url, ttl = 30 }
  for key, value in pairs(options or {}) do given[key] = value end
  if given.urls then given.url = nil end
  return Player.new(lease, given)
end

describe("the lease oracle on Redis", function()
  local server

  setup(function() server = trusted(Redis.start()) end)
  teardown(function() server:destroy() end)
  before_each(name_anew)

  it("tells a follower who leads, in which epoch, and for how long", function()
    local one, two = candidate(server.url, "one"), candidate(server.url, "two")
    local won = one:claim()
    assert.equal("granted", won[1])
    local denied = two:claim()
    assert.equal("denied", denied[1])
    assert.is_true(denied[2] > 29 and denied[2] <= 30)
    assert.same({ "one", won[4] }, { denied[3], denied[4] })
  end)

  it("frees at once on abdicate, keeps the epoch, and wakes the followers", function()
    local one, two = candidate(server.url, "one"), candidate(server.url, "two")
    local epoch = one:claim()[4]
    two:claim()
    eventually(function() return two.state.leases.subscriber.client.link.connection end)
    while two:message() do end
    one:abdicate()
    eventually(function() return two:message() == "freed" end)
    assert.is_true(two:call("handle_info", "freed")[4] > epoch)
  end)

  it("does not let an older claim of the same candidate undo a newer one, nor a late release", function()
    local one = candidate(server.url, "one")
    one:claim()
    local late = one.state.number
    assert.equal("granted", one:claim()[1])
    local item = { name = "lease-" .. serial, token = one.state.token, node = "one", claim = ("%.0f"):format(late), ttl = "30000" }
    assert.is_false((one.state.leases:claim(item, 5)))
    assert(one.state.leases:release(item, 5))
    assert.equal("granted", one:refresh()[1])
  end)

  it("takes a claim back that comes after its release", function()
    local one = candidate(server.url, "one")
    local item = { name = "lease-" .. serial, token = one.state.token, node = "one", claim = "7", ttl = "30000" }
    assert(one.state.leases:release(item, 5))
    assert.is_false((one.state.leases:claim(item, 5)))
    assert.equal("granted", candidate(server.url, "two"):claim()[1])
  end)

  it("gives each of those that are asked for at once its own answer", function()
    local held = candidate(server.url, "held", { lock = "both-" .. serial })
    assert.equal("granted", held:claim()[1])
    local free, other = candidate(server.url, "free"), candidate(server.url, "other", { lock = "both-" .. serial })
    local verdicts = {}
    for _, one in ipairs { free, other } do crown.spawn(function() verdicts[one] = one:claim()[1] end) end
    eventually(function() return verdicts[free] and verdicts[other] end)
    assert.same({ "granted", "denied" }, { verdicts[free], verdicts[other] })
  end)

  it("begins a term that nobody has asked to go, also when its last one was evicted", function()
    local one = candidate(server.url, "one")
    one:claim()
    server:call("HSET", ("crown:{lease-%d}:lease"):format(serial), "evicted", "1")
    assert.equal("evicted", one:refresh()[1])
    assert.equal("granted", one:claim()[1]) -- without a release in between
    assert.equal("granted", one:refresh()[1])
  end)

  it("takes no answer that came late for the next question's", function()
    local way = valve(server)
    local client = assert(crown.redis.connect(way.url, { timeout = 0.3 }))
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

  it("does not give a lease back to a server after its release", function()
    local one = candidate(server.url, "one")
    local item = { name = "lease-" .. serial, token = one.state.token, node = "one", claim = "7", ttl = "30000" }
    assert.is_number(one.state.leases:claim(item, 5))
    server:call("DEL", ("crown:{lease-%d}:lease"):format(serial))
    assert.is_number(one.state.leases:restore(item, 5))
    assert(one.state.leases:release(item, 5))
    assert.is_false((one.state.leases:restore(item, 5)))
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

  it("credits an answer to the refresh that asked for it, not to the one after it", function()
    local way = valve(server)
    local one = candidate(way.url, "one", { timeout = 1 })
    assert.equal("granted", one:claim()[1])
    way.hold = true
    local given_up = crown.spawn(function() one:refresh() end)
    eventually(function() return #way.held > 0 end)
    given_up:cancel()
    way.lose = true
    crown.spawn(function()
      eventually(function() return way.lost > 0 end)
      for _, deliver in ipairs(way.held) do deliver() end
    end)
    assert.equal("unknown", one:refresh()[1])
    way.listener:close()
  end)

  it("takes a lease that another claim of its own name has won for lost", function()
    local one = candidate(server.url, "one")
    one:claim()
    local same = { name = one.state.name, token = one.state.token, node = "one", ttl = "30000",
      claim = ("%.0f"):format(one.state.number + 1) }
    assert.is_number(one.state.leases:claim(same, 5))
    assert.equal("denied", one:refresh()[1])
  end)

  it("is sat out for the longest TTL that anybody here has seen there, also when all is lost (R12)", function()
    local long, short = candidate(server.url, "long", { lock = "long", ttl = 20 }), candidate(server.url, "short", { ttl = 0.5 })
    long:claim()
    server:call "FLUSHALL"
    assert.is_true(short:claim()[2] > 15)
    trusted(server)
  end)

  it("goes on after SCRIPT FLUSH", function()
    local one = candidate(server.url, "one")
    one:claim()
    server:call("SCRIPT", "FLUSH")
    assert.equal("granted", one:refresh()[1])
  end)

  it("counts an answer of the wrong kind as not known, in the server's words", function()
    server:call("SET", ("crown:{lease-%d}:lease"):format(serial), "something of somebody's")
    local verdict = candidate(server.url, "one"):claim()
    assert.equal("unknown", verdict[1])
    assert.matches("WRONGTYPE", verdict[2])
  end)

  it("counts a full server as not known", function()
    server:call("CONFIG", "SET", "maxmemory", "1mb")
    local verdict = candidate(server.url, "one"):claim()
    server:call("CONFIG", "SET", "maxmemory", "0")
    assert.equal("unknown", verdict[1])
    assert.matches("OOM", verdict[2])
  end)

  it("gives up a server that does not answer, and comes back to it", function()
    candidate(server.url, "one", { timeout = 0.3 }):outlasts(server)
  end)

  it("lists elections and evicts, from the command line", function()
    local one = candidate(server.url, "one")
    local epoch = one:claim()[4]
    local info = crown.json.decode(run({ "info", "--oracle", server.url, "--json", "^lease-" .. serial .. "$" }).stdout)
    assert.same({ "one", epoch }, { info.elections[1].node, info.elections[1].epoch })
    assert.matches("Redis 7", info.store.store)
    crown.spawn(function()
      eventually(function() return one:message() == "evict" end)
      assert.equal("evicted", one:call("handle_info", "evict")[1])
      one:abdicate()
    end)
    local result = run { "evict", "--oracle", server.url, "--force", "--wait", "5", "lease-" .. serial }
    assert.equal(0, result.code, result.stderr)
    assert.matches("evicted one from", result.stdout)
  end)

  for option, case in pairs {
    ttl = { "0.1", "ttl must be at least 0.5" },
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

describe("a Redis server", function()
  local server, others

  before_each(function()
    others = {}
    name_anew()
  end)
  after_each(function()
    server:destroy()
    for _, one in ipairs(others) do one:destroy() end
  end)

  local function refused(url, pattern)
    local verdict = candidate(url, "one", { timeout = 1 }):claim()
    assert.equal("unknown", verdict[1])
    assert.matches(pattern, verdict[2])
    assert.is_nil(verdict[2]:find "secret")
  end

  local function leads(url, options)
    local verdict
    eventually(function()
      verdict = candidate(url, "one", options):claim()
      return verdict[1] == "granted"
    end, 10)
    return verdict
  end

  it("is sat out for one TTL after a restart that forgot everything, and never gives an epoch twice", function()
    server = trusted(Redis.start())
    local one, two = candidate(server.url, "one", { ttl = 1 }), candidate(server.url, "two", { ttl = 1 })
    local epoch = one:claim()[4]
    server:down()
    server:up()
    local at, verdict = crown.now(), nil
    eventually(function() verdict = two:claim() return verdict[1] ~= "unknown" end)
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
    eventually(function() verdict = two:claim() return verdict[1] == "granted" end)
    assert.is_true(crown.now() - at > 0.5)
    assert.is_true(verdict[4] > epoch)
  end)

  it("is sat out for one's own TTL, also when somebody with a shorter one asks first (R12)", function()
    server = Redis.start()
    local at = crown.now()
    local short, long = candidate(server.url, "short", { lock = "short", ttl = 0.5 }), candidate(server.url, "long", { ttl = 3 })
    eventually(function() return short:claim()[1] == "granted" end)
    local verdict = long:claim()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
    assert.is_true(verdict[2] > 1.5)
    eventually(function() return long:claim()[1] == "granted" end, 10)
    assert.is_true(crown.now() - at >= 2.9)
  end)

  it("tells a leader whose key is gone, and gives the lease to nobody for one TTL (R12)", function()
    server = trusted(Redis.start())
    local one, two = candidate(server.url, "one", { ttl = 1 }), candidate(server.url, "two", { ttl = 1 })
    local epoch = one:claim()[4]
    server:call "FLUSHALL"
    local denied = one:refresh()
    assert.equal("denied", denied[1])
    assert.is_true(denied[5])
    local at = crown.now()
    local verdict = two:claim()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
    eventually(function() verdict = two:claim() return verdict[1] == "granted" end)
    assert.is_true(crown.now() - at >= 0.8)
    assert.is_true(verdict[4] > epoch)
  end)

  it("asks for its password, of the default user and of others", function()
    server = Redis.start { config = "requirepass secret\nuser joe on >other ~* &* +@all\n" }
    local at = "@127.0.0.1:" .. server.port
    leads("redis://:secret" .. at, { ttl = 0.5 })
    name_anew()
    leads("redis://joe:other" .. at, { ttl = 0.5 })
    refused("redis://:secret-not" .. at, "WRONGPASS")
    refused("redis://127.0.0.1:" .. server.port, "NOAUTH")
  end)

  it("is reached by a UNIX socket, and in another database", function()
    local path = tempdir() .. "/redis.sock"
    server = Redis.start { config = "unixsocket " .. path .. "\n" }
    leads("redis+unix://" .. path .. "?db=3", { ttl = 0.5 })
    assert.equal("1", tostring(server:call("SELECT", "3") and server:call("EXISTS", ("crown:{lease-%d}:epoch"):format(serial))))
  end)

  it("is reached by TLS, with a certificate that is checked", function()
    local dir = authority()
    server = Redis.start { tls = true, scheme = "rediss", query = ("?ca=%s/ca.crt&cert=%s/s.crt&key=%s/s.key"):format(dir, dir, dir),
      config = ("tls-cert-file %s/s.crt\ntls-key-file %s/s.key\ntls-ca-cert-file %s/ca.crt\ntls-auth-clients yes\n")
        :format(dir, dir, dir) }
    leads(server.url, { ttl = 0.5 })
    refused(server.url:gsub("ca=[^&]*", "ca=" .. dir .. "/other.crt"), "certificate")
    refused(server.url:gsub("127.0.0.1", "localhost"):gsub("$", "&server_name=elsewhere"), "certificate")
    refused(("rediss://127.0.0.1:%d?ca=%s/ca.crt"):format(server.port, dir), "certificate")
  end)

  it("is refused when it is a replica", function()
    server = Redis.start()
    others[1] = Redis.start { config = "replicaof 127.0.0.1 " .. server.port .. "\n" }
    refused(others[1].url, "is a replica")
  end)

  it("with min_replicas counts a lease when enough replicas have it", function()
    server = trusted(Redis.start())
    others[1] = Redis.start { config = "replicaof 127.0.0.1 " .. server.port .. "\n" }
    eventually(function() return server:call("INFO", "replication"):find "state=online" end, 20)
    trusted(server)
    local one = candidate(server.url, "one", { min_replicas = 1, timeout = 1 })
    eventually(function() return one:claim()[1] == "granted" end)
    others[1]:down()
    local verdict = one:refresh()
    assert.equal("unknown", verdict[1])
    assert.matches("only 0 of 1 replicas have it", verdict[2])
  end)

  it("is sat out after a failover also by whoever held the lease once (R12)", function()
    server = Redis.start()
    local way = valve(server)
    local replica = Redis.start { config = "replicaof 127.0.0.1 " .. way.listener:port() .. "\n" }
    others[1] = replica
    eventually(function() return server:call("INFO", "replication"):find "state=online" end, 20)
    trusted(server)
    local one = candidate(server.url, "one", { token = "a", ttl = 5 })
    one:claim()
    eventually(function() return lease_on(replica, "node") == "one" end, 20)
    way.hold = true
    one:abdicate()
    assert.equal("granted", candidate(server.url, "two", { ttl = 5 }):claim()[1])
    server:down()
    way.listener:close()
    replica:call("REPLICAOF", "NO", "ONE")
    assert.equal("one", lease_on(replica, "node"))
    local verdict = candidate(replica.url, "one", { token = "a", ttl = 5 }):claim()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
  end)

  it("is sat out when it was a replica for a while (R12)", function()
    server = trusted(Redis.start())
    others[1] = Redis.start { config = "replicaof 127.0.0.1 " .. server.port .. "\n" }
    local one = candidate(server.url, "one")
    eventually(function() return server:call("INFO", "replication"):find "state=online" end, 20)
    trusted(server)
    others[1]:call("REPLICAOF", "NO", "ONE")
    server:call("REPLICAOF", "127.0.0.1", tostring(others[1].port))
    eventually(function() return server:call("INFO", "replication"):find "master_link_status:up" end, 20)
    server:call("REPLICAOF", "NO", "ONE")
    local verdict
    eventually(function() verdict = one:claim() return verdict[1] ~= "unknown" end)
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
  end)

  it("is found by its Sentinels, also after a failover, which is sat out", function()
    server = trusted(Redis.start())
    others[1] = Redis.start { config = "replicaof 127.0.0.1 " .. server.port .. "\n" }
    local urls = {}
    for i = 1, 3 do
      others[i + 1] = Redis.start { sentinel = true, config = ("sentinel monitor mine 127.0.0.1 %d 2\n"
        .. "sentinel down-after-milliseconds mine 500\nsentinel failover-timeout mine 3000\n"):format(server.port) }
      urls[i] = "127.0.0.1:" .. others[i + 1].port
    end
    local url = "redis+sentinel://" .. table.concat(urls, ",") .. "/mine"
    eventually(function() return others[2]:call("SENTINEL", "ckquorum", "mine") end, 20)
    eventually(function() return #others[2]:call("SENTINEL", "replicas", "mine") == 1 end, 20)
    local one = candidate(url, "one", { ttl = 2 })
    local epoch = one:claim()[4]
    server:down()
    local verdict
    local two = candidate(url, "two", { ttl = 2 })
    eventually(function() verdict = two:claim() return verdict[1] == "denied" and verdict[5] end, 20)
    eventually(function() verdict = two:claim() return verdict[1] == "granted" end, 20)
    assert.is_true(verdict[4] > epoch)
  end)

  it("is part of a cluster: each election is kept where its slot is", function()
    server = Redis.start { config = "cluster-enabled yes\n" }
    others = { Redis.start { config = "cluster-enabled yes\n" }, Redis.start { config = "cluster-enabled yes\n" } }
    local words = { "redis-cli", "--cluster", "create", "127.0.0.1:" .. server.port }
    for _, one in ipairs(others) do words[#words + 1] = "127.0.0.1:" .. one.port end
    words[#words + 1] = "--cluster-yes"
    local made = crown.exec(words, { timeout = 30 })
    assert.equal(0, made.code, made.stdout)
    eventually(function() return server:call("CLUSTER", "INFO"):find "cluster_state:ok" end, 20)
    local places = {}
    for _ = 1, 6 do
      name_anew()
      local verdict = leads(server.url, { ttl = 0.5 })
      assert.is_true(verdict[4] > 0)
      for place, one in ipairs { server, others[1], others[2] } do
        local key = one:call("GET", ("crown:{lease-%d}:epoch"):format(serial))
        if key then places[place] = (places[place] or 0) + 1 end
      end
    end
    local kept = 0
    for _, count in pairs(places) do kept = kept + count end
    assert.equal(6, kept)
    assert.is_true(places[2] ~= nil or places[3] ~= nil)
  end)

  it("is one of three: a majority decides, with one down; with two down nobody does", function()
    server = trusted(Redis.start())
    others = { trusted(Redis.start()), trusted(Redis.start()) }
    local urls = { server.url, others[1].url, others[2].url }
    local one, two = candidate(nil, "one", { urls = urls, timeout = 0.5 }), candidate(nil, "two", { urls = urls, timeout = 0.5 })
    local verdict
    eventually(function() verdict = one:claim() return verdict[1] == "granted" end)
    local epoch = verdict[4]
    assert.equal("denied", two:claim()[1])
    others[1]:down()
    assert.same({ "granted", epoch }, { one:refresh()[1], one:refresh()[4] })
    assert.equal("denied", two:claim()[1])
    one:abdicate()
    eventually(function() verdict = two:claim() return verdict[1] == "granted" end)
    assert.is_true(verdict[4] > epoch)
    others[2]:down()
    verdict = two:refresh()
    assert.equal("unknown", verdict[1])
    assert.matches("1 of 3 servers granted, 2 are needed", verdict[2])
  end)
end)

describe("a majority of Redis servers", function()
  local servers, urls

  before_each(function()
    name_anew()
    servers, urls = {}, {}
    for i = 1, 3 do
      servers[i] = trusted(Redis.start())
      urls[i] = servers[i].url
    end
  end)
  after_each(function()
    for _, one in ipairs(servers) do one:destroy() end
  end)

  local function member(node, options)
    options = options or {}
    options.urls, options.timeout = urls, 0.5
    return candidate(nil, node, options)
  end

  -- A server that nobody reached for longer than a lease: it has not forgotten what it was asked.
  local function away(server, one)
    server:freeze()
    local token = lease_on(servers[1], "token")
    local until_then = crown.now() + 1.2
    eventually(function()
      assert.equal("granted", one:refresh()[1])
      return crown.now() > until_then
    end)
    server:thaw()
    eventually(function() return lease_on(server, "token") == nil end)
    return token
  end

  it("gives the lease back to a server that was away", function()
    local one = member("one", { ttl = 1 })
    local epoch = one:claim()[4]
    local token = away(servers[3], one)
    eventually(function()
      one:refresh()
      return lease_on(servers[3], "token") == token and tonumber(lease_on(servers[3], "epoch")) == epoch
    end)
  end)

  it("wakes nobody when a minority is given back, the one who asked least of all", function()
    local one, two = member("one", { ttl = 1 }), member("two", { ttl = 1 })
    one:claim()
    for _, server in ipairs(two.state.leases.servers) do
      eventually(function() return server.subscriber.client.link.connection end)
    end
    away(servers[3], one)
    while two:message() do end
    local denied = two:claim()
    assert.same({ "denied", "one" }, { denied[1], denied[3] })
    assert.is_nil(lease_on(servers[3], "token"))
    local heard
    for i = 1, 3 do servers[i]:call("PUBLISH", "crown:crown:leases", "after lease-" .. serial) end
    for _ = 1, 3 do
      eventually(function() heard = two:message() return heard end)
      assert.equal("after", heard)
    end
  end)

  it("lets nobody wait for leases of which none has a majority", function()
    for i = 2, 3 do
      local key = ("crown:{lease-%d}:lease"):format(serial)
      servers[i]:call("HSET", key, "token", "x" .. i, "node", "n" .. i, "epoch", "1", "claim", "1")
      servers[i]:call("PEXPIRE", key, "30000")
    end
    local verdict = member("two"):claim()
    assert.same({ "denied", false }, { verdict[1], verdict[5] })
    assert.is_nil(verdict[2])
    assert.is_true(verdict[6] > 0 and verdict[6] <= 1)
  end)

  it("does not take an epoch back that is raised late", function()
    local one = member "one"
    one:claim()
    local late = one.state.number
    one:abdicate()
    local epoch = one:claim()[4]
    local server = one.state.leases.servers[1]
    server:raise({ name = one.state.name, token = one.state.token, claim = ("%.0f"):format(late), ttl = "30000" }, 5, 5)
    assert.equal(epoch, tonumber(lease_on(servers[1], "epoch")))
  end)
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
    local client, problem = crown.redis.connect(("redis://:secret@127.0.0.1:%d"):format(number), { timeout = 1 })
    listener:close()
    assert.is_nil(client)
    assert.matches("not a reply of Redis", problem)
  end)

  for text, pattern in pairs {
    ["http://x"] = "reads redis://",
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
