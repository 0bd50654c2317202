local crown = require "crown"
local eventually = require("crown.testing").eventually
local lease = require "crown.oracles.redis"
local Player = require "support.oracle_candidate"
local RedisCluster = require "support.redis_cluster"
local run = require "support.run"

local TTL = 4
local PATIENCE = 60 -- seconds; a failover takes two or three on an idle host

local serial = 0

local function key_of(name) return ("crown:{%s}:record"):format(name) end

local function leader_of(cluster, name)
  local text = cluster:keeper(key_of(name)):call("HGET", key_of(name), "record")
  return text and crown.json.decode(text).node
end

-- As many elections as it takes for every primary to keep one, by name of the server that keeps it.
local function one_on_each(cluster, count)
  serial = serial + 1
  local found, names, number = {}, {}, 0
  while #names < count do
    number = number + 1
    local name = ("c%d-%d"):format(serial, number)
    local server = cluster:keeper(key_of(name))
    if not found[server] then
      found[server], names[#names + 1] = name, name
    end
  end
  return names
end

local function candidates(url, names, node, options)
  local all = {}
  for i, name in ipairs(names) do
    local given = { name = name, node = node, url = url, ttl = TTL, timeout = 0.5, amnesia_wait = 0, trust_empty = true }
    for key, value in pairs(options or {}) do given[key] = value end
    all[i] = Player.new(lease, given)
  end
  return all
end

local function leads(one)
  local verdict
  eventually(function()
    verdict = one:claim()
    return verdict[1] == "granted"
  end, PATIENCE)
  return verdict[4]
end

describe("a Redis Cluster", function()
  local cluster

  setup(function() cluster = RedisCluster.start() end)
  teardown(function() cluster:destroy() end)

  it("keeps each election where its slot is, however many are claimed with the first connection", function()
    local names = one_on_each(cluster, 3)
    local all, left = candidates(cluster.url, names, "one"), 3
    for _, one in ipairs(all) do
      crown.spawn(function()
        leads(one)
        left = left - 1
      end)
    end
    eventually(function() return left == 0 end, PATIENCE)
    for i, name in ipairs(names) do
      assert.equal("one", leader_of(cluster, name))
      all[i]:abdicate()
    end
  end)

  it("tells followers on every node of a release", function()
    local name = one_on_each(cluster, 1)[1]
    local one, two = candidates(cluster.url, { name }, "one")[1], candidates(cluster:seeds(), { name }, "two")[1]
    leads(one)
    assert.equal("one", two:claim()[3])
    eventually(function() return two.state.store.subscriber.client.link.connection end, PATIENCE)
    eventually(function()
      two:message()
      one:abdicate()
      leads(one)
      return two:message() == "changed"
    end, PATIENCE)
    one:abdicate()
  end)

  it("is shown whole by info, and evicts on every node", function()
    local names = one_on_each(cluster, 3)
    local all, epochs = candidates(cluster.url, names, "one", { ttl = 60 }), {}
    for i, one in ipairs(all) do epochs[i] = leads(one) end
    local info = crown.json.decode(run({ "info", "--oracle", cluster.url, "--json", "^c" .. serial .. "-" }).stdout)
    local seen = {}
    for _, one in ipairs(info.elections) do seen[one.name] = one.epoch end
    for i, name in ipairs(names) do assert.equal(epochs[i], seen[name]) end
    assert.matches("a cluster", info.store.store)
    assert.equal(3, select(2, info.store.primaries:gsub("1 replica", "")))
    for i, name in ipairs(names) do
      crown.spawn(function()
        eventually(function() return all[i]:refresh()[1] == "evicted" end, PATIENCE)
        all[i]:abdicate()
        leads(all[i]) -- the command waits for a successor
      end)
      local result = run { "evict", "--oracle", cluster.url, "--force", "--wait", "20", name }
      assert.equal(0, result.code, result.stderr)
    end
  end)

  it("is checked where it keeps its keys, also by the URL of a replica", function()
    local replica
    eventually(function() replica = select(2, cluster:keeper(key_of "@check")) return replica end, PATIENCE)
    local function check(query)
      return run { "check", "--store", "--oracle", ("redis://127.0.0.1:%d%s"):format(replica.port, query), "run", "x", "true" }
    end
    local fine = check ""
    assert.equal(0, fine.code, fine.stdout .. fine.stderr)
    assert.matches("lets this candidate take part", fine.stdout)
    assert.equal(0, check("?min_replicas=1").code)
    assert.matches("PROBLEM%s+min_replicas is 2, and the server has 1 replica: no claim counts", check("?min_replicas=2").stdout)
  end)

  it("leads on elsewhere when a primary has gone, sits its replica out, and takes the primary back", function()
    local names = one_on_each(cluster, 3)
    local lost = 1
    local gone = cluster:keeper(key_of(names[lost])) -- which the URL names
    local all, others = candidates("redis://127.0.0.1:" .. gone.port, names, "one"), candidates(cluster:seeds(), names, "two")
    local epochs = {}
    for i, one in ipairs(all) do epochs[i] = leads(one) end
    gone:down()
    for i, one in ipairs(all) do
      if i ~= lost then eventually(function() return one:refresh()[1] == "granted" end, PATIENCE) end
    end
    cluster:succeed(key_of(names[lost]), gone)
    local verdict
    eventually(function() verdict = others[lost]:claim() return verdict[1] == "denied" and verdict[5] end, PATIENCE)
    assert.is_true(leads(others[lost]) > epochs[lost])
    eventually(function() return all[lost]:refresh()[1] == "denied" end, PATIENCE)
    gone:up()
    cluster:await_whole()
    leads(others[lost])
    local second = cluster:keeper(key_of(names[lost]))
    second:down() -- so the one that was away keeps the slots again
    assert.equal(gone, cluster:succeed(key_of(names[lost]), second))
    assert.is_true(leads(all[lost]) > epochs[lost])
    second:up()
    cluster:await_whole()
    for _, one in ipairs(all) do one:abdicate() end
  end)

  it("is reached by any of the servers that the URL names, also where the first one is away", function()
    local away = cluster.servers[1]
    away:freeze()
    local ok, problem = pcall(function()
      eventually(function() return cluster.servers[2]:call("CLUSTER", "INFO"):find "cluster_state:ok" end, PATIENCE)
      leads(candidates(cluster:seeds(), { "seeds" }, "one")[1])
    end)
    away:thaw()
    assert.is_true(ok, problem)
    cluster:await_whole()
  end)

  it("is followed where a slot is being moved, and where it has gone", function()
    local name = one_on_each(cluster, 1)[1]
    local key = key_of(name)
    local one = candidates(cluster.url, { name }, "one", { ttl = 60, refresh = 2 })[1]
    local epoch = leads(one)
    local _, to, finish = cluster:move(key)
    local function is_led_on()
      local verdict = one:answered("refresh", PATIENCE)
      assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
    end
    is_led_on()
    finish()
    local slot = to:call("CLUSTER", "KEYSLOT", key)
    -- A node that has not heard of it may be asked for the slots meanwhile: then the next question leads there.
    eventually(function()
      is_led_on()
      return one.state.store.cluster.keeper[slot] == "127.0.0.1:" .. to.port
    end, PATIENCE)
    one:abdicate()
    eventually(function() return cluster:keeper(key) == to and leader_of(cluster, name) == nil end, PATIENCE)
  end)
end)

describe("a node of a Redis Cluster", function()
  local INFO = "\nredis_mode:cluster\nmaster_replid:0123456789012345678901234567890123456789"

  -- A server that answers as it is told.
  local function pretend(replies)
    local listener
    listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
      local words, count = {}, 0
      for line in function() return connection:read("*l", 60) end do
        line = line:gsub("\r", "")
        if line:match "^%*" then
          count, words = tonumber(line:sub(2)), {}
        elseif not line:match "^%$" then
          words[#words + 1] = line
          if #words == count then connection:write(replies[words[1]](listener:port())) end
        end
      end
    end))
    return listener
  end

  it("that sends us round in a circle is not followed for ever", function()
    local asked = 0
    local listener = pretend {
      INFO = function() return ("$%d\r\n%s\r\n"):format(#INFO, INFO) end,
      SCRIPT = function() return "$3\r\nabc\r\n" end,
      CLUSTER = function(own) return ("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n"):format(own) end,
      EVALSHA = function(own)
        asked = asked + 1
        return ("-MOVED 1 127.0.0.1:%d\r\n"):format(own)
      end,
      SUBSCRIBE = function() return "" end,
    }
    local one = candidates("redis://127.0.0.1:" .. listener:port(), { "round" }, "one")[1]
    local verdict
    eventually(function() verdict = one:claim() return asked > 0 end, PATIENCE)
    listener:close()
    assert.equal("unknown", verdict[1])
    assert.is_true(asked <= 20)
  end)

  it("that tells nonsense about the slots is not believed", function()
    local slots = require "crown.redis.slots"
    local here = { host = "127.0.0.1", port = 7000 }
    for _, answer in ipairs { 7, {}, { 7 }, { { 0, 16384, { "h", 1 } } }, { { -1, 5, { "h", 1 } } }, { { 0, 5, { "h", 0 } } },
      { { 0, 5 } }, { { 0.5, 5, { "h", 1 } } } } do
      assert.is_nil((slots.read(answer, here)))
    end
    local map = slots.read({ { 0, 5, { "", 7001 }, { "b", 7002 } } }, here)
    assert.same({ "127.0.0.1:7001", "127.0.0.1:7001" }, { map.keeper[0], map.keeper[5] })
    assert.is_nil(map.keeper[6])
    assert.same({ host = "b", port = 7002 }, map.places["b:7002"])
    assert.is_nil(map.primaries["b:7002"])
  end)

  it("names where a slot is by host and port, also without its own host", function()
    local slots = require "crown.redis.slots"
    local here = { host = "127.0.0.1", port = 7000 }
    assert.same({ host = "10.0.0.1", port = 7001 }, slots.redirection("MOVED 3999 10.0.0.1:7001", here))
    assert.same({ host = "127.0.0.1", port = 7001 }, slots.redirection("ASK 3999 :7001", here))
    assert.same({ host = "::1", port = 7001 }, slots.redirection("MOVED 3999 ::1:7001", here))
    assert.is_nil(slots.redirection("MOVED 3999", here))
  end)

  it("has the slots that the cluster's specification says", function()
    local slots = require "crown.redis.slots"
    assert.equal(12739, slots.of "123456789")
    assert.equal(slots.of "user1000", slots.of "{user1000}.following")
    assert.equal(slots.of "bar", slots.of "foo{bar}{zap}")
    assert.equal(slots.of "{bar", slots.of "foo{{bar}}zap")
    assert.equal(8363, slots.of "foo{}{bar}")
  end)
end)
