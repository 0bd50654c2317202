-- The register in Redis asked by hand: what a write names has to stand, in the memory that it names, and what an answer takes to
-- count.
local crown = require "crown"
local driven = require "crown.oracle.driven"
local driver = require "crown.stores.redis"
local eventually = require("crown.testing").eventually
local own_servers = require "support.own_servers"
local Player = require "support.oracle_candidate"
local Redis = require "support.redis"
local RedisCluster = require "support.redis_cluster"

local PATIENCE = 60

local serial = 0

local function open(url, more)
  local place = { url = url, timeout = 20, options = { prefix = "crown", min_replicas = 0 } }
  for key, value in pairs(more or {}) do place.options[key] = value end
  place.timeout = place.options.timeout or place.timeout
  return assert(driver.open(place))
end

local function key_of(name, what) return ("crown:{%s}:%s"):format(name, what or "record") end

describe("the register in Redis", function()
  local server, store, name
  local start, destroy = own_servers(Redis.start)

  before_each(function()
    serial = serial + 1
    name, server = "election-" .. serial, start()
    store = open(server.url)
  end)
  after_each(function()
    store:close()
    destroy()
  end)

  local function look(of) return assert(store:look { of or name })[of or name] end

  local function write(version, text, of)
    serial = serial + 1
    return { name = of or name, version = version, text = text or "text-" .. serial, memory = look().memory }
  end

  local function swap(...) return assert(store:swap { write(...) })[1] end

  it("writes over the version that a write names, and nothing else", function()
    assert.same({ false, false }, { look().text, look().version })
    local first = swap(false, "one")
    assert.same({ "one", first }, { look().text, look().version })
    assert.is_false(swap(false, "two"))
    assert.is_false(swap("another", "two"))
    local second = swap(first, "two")
    assert.is_false(swap(first, "three"))
    assert.same({ "two", second }, { look().text, look().version })
    assert.not_equal(first, second)
  end)

  it("deletes the record of a session over the version that a write names", function()
    local of = "@session-" .. serial
    local first = swap(false, "one", of)
    assert.is_false(assert(store:swap { { name = of, version = "another", text = false, memory = look(of).memory } })[1])
    assert.equal("one", look(of).text)
    assert.is_truthy(assert(store:swap { { name = of, version = first, text = false, memory = look(of).memory } })[1])
    assert.same({ false, false, 0 }, { look(of).text, look(of).version, server:call("EXISTS", key_of(of)) })
  end)

  it("answers for the other names where a key has another type", function()
    local first = swap(false, "one")
    for _, what in ipairs { "record", "lease", "epoch" } do
      local bad = ("bad-%s-%d"):format(what, serial)
      server:call("LPUSH", key_of(bad, what), "x")
      local answers = assert(store:look { bad, name })
      assert.equal("one", answers[name].text)
      assert.is_truthy(answers[bad].text:find "WRONGTYPE")
      local two = write(first, "one")
      local results = assert(store:swap { write(answers[bad].version, "x", bad), two })
      if what == "epoch" then assert.is_false(results[1]) else assert.is_nil(results[1]) end -- the server refuses the others
      first = assert(results[2])
    end
  end)

  it("gives no record an end, so that no policy for keys with one takes it away", function()
    swap(false)
    swap(false, "session", "@token-2")
    for _, key in ipairs(server:call("KEYS", "*")) do assert.equal(-1, server:call("PTTL", key), key) end
  end)

  it("writes nothing in another memory, as after a restart, and looks there", function()
    server:destroy()
    server = start { config = "appendonly yes\n" }
    store = open(server.url)
    local version, old = swap(false, "one"), look().memory
    server:down()
    server:up()
    eventually(function() return store:look { name } end, PATIENCE)
    local new = look()
    assert.same({ "one", version }, { new.text, new.version })
    assert.not_equal(old, new.memory)
    assert.same({ false }, store:swap { { name = name, version = version, text = "two", memory = old } })
    assert.is_string(swap(version, "two"))
  end)

  it("says of many whether they stand as they were written, in one memory", function()
    local names, versions, expected = {}, {}, {}
    for i = 1, 300 do
      names[i] = ("%s-same-%d"):format(name, i)
      versions[i], expected[i] = i % 3 == 0 and swap(false, "x", names[i]) or "another", i % 3 == 0 or nil
    end
    local bad = names[3]
    server:call("DEL", key_of(bad))
    server:call("LPUSH", key_of(bad), "x")
    expected[3] = nil
    assert.same(expected, assert(store:same(names, versions, look().memory)))
    assert.same({}, assert(store:same(names, versions, "another")))
    server:call("SCRIPT", "FLUSH")
    assert.same(expected, assert(store:same(names, versions, look().memory)))
  end)

  it("writes and looks at so many that the server is asked in parts, each by itself", function()
    local writes, names = {}, {}
    for i = 1, 300 do
      names[i] = ("%s-%d"):format(name, i)
      writes[i] = write(i % 2 == 0 and "another" or false, "text " .. i, names[i])
    end
    local results, answers = assert(store:swap(writes)), assert(store:look(names))
    for i = 1, 300 do
      assert.equal(i % 2 == 1 and results[i] or false, answers[names[i]].version)
      assert.equal(i % 2 == 1 and "text " .. i, answers[names[i]].text)
    end
    assert.equal(150, #store:names())
  end)

  it("leaves a mark of a record that is deleted, another one each time, and none of one that was never there", function()
    swap(false)
    server:call("DEL", key_of(name))
    local mark = look()
    assert.is_false(mark.text)
    assert.matches("^deleted", mark.version)
    assert.is_false(swap(false))
    assert.is_string(swap(mark.version))
    server:call("DEL", key_of(name))
    assert.matches("^deleted", look().version)
    assert.not_equal(mark.version, look().version)
    assert.is_false(look("never-there").version)
  end)

  it("is another memory when all is lost", function()
    local memory = look().memory
    swap(false)
    assert.equal(memory, look().memory)
    server:call "FLUSHALL"
    assert.not_equal(memory, look().memory)
    assert.is_false(look().version)
  end)

  it("tells how old a record is, by the server's clock", function()
    swap(false)
    assert.is_true(look().age >= 0 and look().age < 20)
    server:call("HDEL", key_of(name), "written")
    assert.equal(0, look().age)
  end)

  it("goes on after SCRIPT FLUSH", function()
    local version = swap(false)
    server:call("SCRIPT", "FLUSH")
    assert.equal(version, look().version)
    server:call("SCRIPT", "FLUSH")
    assert.is_string(swap(version))
  end)

  it("tells of changes of elections, not of sessions, and that some may have been missed", function()
    local heard = {}
    local other = open(server.url)
    finally(function() other:close() end)
    other:hear(function(what) heard[#heard + 1] = what or "missed" end)
    eventually(function() return heard[1] == "missed" end, PATIENCE)
    swap(false, "session", "@token-2")
    swap(false)
    eventually(function() return #heard == 2 end, PATIENCE)
    assert.equal(name, heard[2])
    server:call("CLIENT", "KILL", "TYPE", "pubsub")
    eventually(function() return heard[3] == "missed" end, PATIENCE)
  end)

  it("tells whether it has written itself what changed", function()
    local heard = {}
    store:hear(function(what, _, is_own) heard[#heard + 1] = { what or "missed", is_own } end)
    eventually(function() return heard[1] end, PATIENCE)
    local version = swap(false)
    eventually(function() return heard[2] end, PATIENCE)
    swap(false) -- which is not written, so it is not told
    local other = open(server.url)
    finally(function() other:close() end)
    assert.is_string(other:swap({ write(version) })[1])
    eventually(function() return heard[3] end, PATIENCE)
    assert.same({ { "missed" }, { name, true }, { name } }, heard)
    assert.same({}, store.own)
  end)

  it("tells what stands now where a write frees an election, whatever its name", function()
    local heard = {}
    local other = open(server.url)
    finally(function() other:close() end)
    other:hear(function(...) heard[#heard + 1] = { ... } end)
    eventually(function() return heard[1] end, PATIENCE)
    for _, one in ipairs { name, name .. "\nwith two lines" } do
      local freeing = write(false, '{"a":"b c"}', one)
      freeing.frees = true
      local version = assert(store:swap { freeing })[1]
      eventually(function() return heard[2] end, PATIENCE)
      assert.same({ one, { text = '{"a":"b c"}', version = version } }, heard[2])
      swap(version, nil, one)
      eventually(function() return heard[3] end, PATIENCE)
      assert.same({ one }, heard[3])
      heard = { true }
    end
  end)

  it("names the elections, and no sessions of a part", function()
    swap(false)
    swap(false, "s", "@token-2")
    assert.same({ "@token-2", name }, (function(names) table.sort(names) return names end)(assert(store:names())))
  end)

  it("takes a key of the wrong kind for no record, and answers for the others", function()
    local version = swap(false)
    server:call("SET", key_of "spoilt", "something of somebody's")
    local answers = assert(store:look { name, "spoilt" })
    assert.equal(version, answers[name].version)
    assert.matches("WRONGTYPE", answers.spoilt.text)
  end)

  it("takes no replica for a store", function()
    local replica = start { config = "replicaof 127.0.0.1 " .. server.port .. "\n" }
    local other = open(replica.url)
    local answers, problem = other:look { name }
    other:close()
    assert.is_nil(answers)
    assert.matches("is a replica", problem)
  end)

  it("knows of no write, and of no look, that too few replicas have", function()
    local replica = start { config = "replicaof 127.0.0.1 " .. server.port .. "\n" }
    eventually(function() return server:call("INFO", "replication"):find "state=online" end, PATIENCE)
    local other = open(server.url, { min_replicas = 1, timeout = 2 })
    finally(function() other:close() end)
    local memory = assert(other:look { name })[name].memory
    local version = assert(other:swap { { name = name, version = false, text = "one", memory = memory } })[1]
    assert.is_string(version)
    replica:down()
    local results, problem, code = other:swap { { name = name, version = version, text = "two", memory = memory } }
    assert.is_nil(results)
    assert.matches("only 0 of 1 replicas have it", problem)
    assert.equal("store", code)
    assert.is_nil((other:look { name })) -- what stands there may be that write
    assert.equal("two", look().text)
  end)

  describe("where a full server throws away what has no end", function()
    local function policy(words)
      server:call("CONFIG", "SET", "maxmemory", "1gb")
      server:call("CONFIG", "SET", "maxmemory-policy", words)
    end

    it("writes no election's record, and says why", function()
      policy "allkeys-lru"
      local other = open(server.url)
      finally(function() other:close() end)
      local memory = assert(other:look { name })[name].memory
      local results, problem = other:swap { { name = name, version = false, text = "one", memory = memory } }
      assert.is_nil(results)
      assert.matches("maxmemory%-policy is allkeys%-lru: a full server throws records away, so nobody claims there", problem)
      assert.matches("allkeys%-lru", other:health().warnings[1])
      assert.matches("allkeys%-lru", other:rights()[1])
    end)

    it("goes on with sessions, also as the policy changes, and with elections when it is right again", function()
      local session = swap(false, "session", "@token-2")
      for _, words in ipairs { "allkeys-random", "volatile-lru" } do
        policy(words)
        eventually(function()
          session = swap(session, "session", "@token-2")
          local results = store:swap { write "another" }
          return words:find "^allkeys" and not results or words:find "^volatile" and results
        end, PATIENCE)
      end
    end)
  end)

  describe("beside leases of an older version of crown-lua", function()
    local EPOCH = 1700000000000

    -- As such a version keeps a lease.
    local function older(milliseconds)
      server:call("HSET", key_of(name, "lease"), "token", "t", "node", "old-node", "epoch", tostring(EPOCH), "claim", "1")
      server:call("PEXPIRE", key_of(name, "lease"), tostring(milliseconds))
      server:call("SET", key_of(name, "epoch"), tostring(EPOCH))
    end

    it("says of an election that it is led, and writes no record, for as long as the lease stands", function()
      older(60000)
      local peer = look().peer
      assert.same({ "old-node", EPOCH }, { peer.node, peer.epoch })
      assert.is_true(peer.wait > 0 and peer.wait <= 60)
      assert.is_false(swap(false))
      assert.is_false(look().version)
      server:call("PERSIST", key_of(name, "lease"))
      assert.is_true(look().peer.wait > 0)
      server:call("DEL", key_of(name, "lease"))
      assert.same({ epoch = EPOCH, wait = 0 }, look().peer) -- no epoch comes again
      assert.is_string(swap(false))
      assert.is_nil(look().peer)
    end)

    it("leaves the election to no older version any more: one finds a lease there that is another one's, and has no end", function()
      swap(false)
      assert.equal("#", server:call("HGET", key_of(name, "lease"), "token"))
      assert.equal("a newer version of crown-lua", server:call("HGET", key_of(name, "lease"), "node"))
      assert.equal(-1, server:call("PTTL", key_of(name, "lease")))
      assert.is_true(tonumber(server:call("HGET", key_of(name, "lease"), "ttl")) > 1e12)
      assert.is_nil(look().peer)
    end)
  end)
end)

describe("the register on a primary that Sentinels name", function()
  local MONITOR = "sentinel monitor mine 127.0.0.1 %d 2\nsentinel down-after-milliseconds mine 600000\n"
  local start, destroy = own_servers(Redis.start)
  local server, sentinels, store

  before_each(function()
    server, sentinels = start(), {}
    local hosts = {}
    for i = 1, 3 do
      sentinels[i] = start { sentinel = true, config = MONITOR:format(server.port) }
      hosts[i] = "127.0.0.1:" .. sentinels[i].port
    end
    store = open("redis+sentinel://" .. table.concat(hosts, ",") .. "/mine", { timeout = 2 })
    eventually(function() return store:look { "a" } end, PATIENCE)
  end)
  after_each(function()
    store:close()
    destroy()
  end)

  it("counts an answer when most Sentinels name that primary after it", function()
    local memory = assert(store:look { "a" }).a.memory
    local version = assert(store:swap { { name = "a", version = false, text = "one", memory = memory } })[1]
    assert.is_string(version)
    sentinels[3]:freeze()
    eventually(function() return store:look { "a" } end, PATIENCE)
    sentinels[2]:freeze()
    local results, problem = store:swap { { name = "a", version = version, text = "two", memory = memory } }
    assert.is_nil(results)
    assert.matches("1 of 3 Sentinels agree on a primary, 2 are needed", problem)
    assert.is_nil((store:look { "a" })) -- else the write that counts for nothing would be found
    for i = 2, 3 do sentinels[i]:thaw() end
    eventually(function() return store:look { "a" } end, PATIENCE)
    assert.equal("two", store:look({ "a" }).a.text)
  end)

  it("leaves a primary that most of them do not name any more", function()
    local other = start()
    for i = 2, 3 do
      sentinels[i]:call("SENTINEL", "REMOVE", "mine")
      assert(sentinels[i]:call("SENTINEL", "MONITOR", "mine", "127.0.0.1", tostring(other.port), "2"))
    end
    local memory, answers, problem = server:call("INFO", "replication"):match "master_replid:(%x+)", store:look { "a" }
    assert.is_nil(answers)
    assert.matches("most Sentinels name 127.0.0.1:" .. other.port, problem)
    eventually(function()
      answers = store:look { "a" }
      return answers and answers.a.memory ~= memory
    end, PATIENCE)
  end)
end)

describe("the register in a Redis Cluster", function()
  local cluster, store

  setup(function()
    cluster = RedisCluster.start()
    store = open(cluster:seeds())
  end)
  teardown(function()
    store:close()
    cluster:destroy()
  end)

  -- A name of an election on each node that keeps slots.
  local function names()
    local found, list = {}, {}
    for i = 1, 100 do
      local name = "c-" .. i
      local keeper = cluster:keeper(key_of(name))
      if not found[keeper] then found[keeper], list[#list + 1] = name, name end
    end
    return list
  end

  it("asks each node for what it keeps, which answers by its own memory", function()
    local list, writes, memories = names(), {}, {}
    assert.equal(3, #list)
    local answers = assert(store:look(list))
    for i, name in ipairs(list) do
      memories[answers[name].memory] = true
      writes[i] = { name = name, version = false, text = name, memory = answers[name].memory }
    end
    local count = 0
    for _ in pairs(memories) do count = count + 1 end
    assert.equal(3, count)
    local results = assert(store:swap(writes))
    for i, name in ipairs(list) do
      assert.is_string(results[i])
      assert.equal(name, cluster:keeper(key_of(name)):call("HGET", key_of(name), "record"))
    end
    table.sort(list)
    local found = assert(store:names())
    table.sort(found)
    assert.same(list, found)
    assert.matches("a cluster", store:health().facts[1][2])
    assert.equal(0, #store:rights())
  end)

  it("follows a record whose slot is on its way to another node", function()
    local name = "moves"
    local memory = assert(store:look { name })[name].memory
    local version = assert(store:swap { { name = name, version = false, text = "x", memory = memory } })[1]
    local from, to, finish = cluster:move(key_of(name))
    assert.equal("OK", from:call("MIGRATE", "127.0.0.1", tostring(to.port), "", "0", "2000", "KEYS", key_of(name), key_of(name, "lease")))
    local answer
    eventually(function()
      answer = (store:look { name } or {})[name]
      return answer and answer.version == version
    end, PATIENCE)
    finish()
    eventually(function()
      answer = (store:look { name } or {})[name]
      return answer and answer.version == version and answer.memory == to:call("INFO", "replication"):match "master_replid:(%x+)"
    end, PATIENCE)
  end)

  it("keeps a session with the elections whose part it names", function()
    for _, name in ipairs(names()) do
      local session = "@token-2@" .. store:part_of(name)
      local memory = assert(store:look { name })[name].memory
      assert.equal(memory, assert(store:look { session })[session].memory)
      assert.is_string(assert(store:swap { { name = session, version = false, text = "x", memory = memory } })[1])
    end
    for _, name in ipairs(assert(store:names())) do assert.is_nil(name:find "^@") end
  end)
end)

describe("an election in the register in Redis", function()
  local module = driven.oracle(driver)
  local start, destroy = own_servers(Redis.start)
  after_each(destroy)

  it("is led on by those that led as the server restarts", function()
    local server, players, epochs = start { config = "appendonly yes\n" }, {}, {}
    for i = 1, 100 do
      players[i] = Player.new(module, { name = "restarts-" .. i, token = "token", node = "one", url = server.url, ttl = 20,
        amnesia_wait = 0, trust_empty = true })
      epochs[i] = players[i]:win()[4]
    end
    server:down()
    server:up()
    for i, one in ipairs(players) do
      local verdict = one:answered("refresh", PATIENCE)
      assert.same({ "granted", epochs[i] }, { verdict[1], verdict[4] })
    end
  end)

  it("follows a lease of an older version as soon as that is over, once it has waited for long enough", function()
    local server, name = start(), "older"
    server:call("HSET", key_of(name, "lease"), "token", "t", "node", "old-node", "epoch", "17", "claim", "1")
    server:call("SET", key_of(name, "epoch"), "17")
    server:call("PEXPIRE", key_of(name, "lease"), "60000")
    local one = Player.new(module, { name = name, node = "one", url = server.url, ttl = 1, amnesia_wait = 0 })
    eventually(function()
      local verdict = one:claim()
      assert.same({ "denied", "old-node", 17 }, { verdict[1], verdict[3], verdict[4] })
      local text = server:call("HGET", key_of "@store", "record")
      return text and not text:find('"doubt"', 1, true)
    end, PATIENCE)
    server:call("DEL", key_of(name, "lease"))
    assert.equal("granted", one:claim()[1])
  end)

  it("that is new begins at once where others have been led for a while", function()
    local server = start()
    local function player(name, node)
      return Player.new(module, { name = name, node = node, url = server.url, ttl = 1, amnesia_wait = 0 })
    end
    player("first", "one"):win()
    assert.equal("granted", player("second", "two"):claim()[1])
    server:call("DEL", key_of "second")
    assert.equal("denied", player("second", "three"):claim()[1])
  end)

  -- What made two leaders where a lease was a key with an end.
  local function hurt_by(what, hurt, environment)
    it("has no second leader " .. what, function()
      local clock = environment and require("support.wrong_clock").new(0)
      local server = start { config = "appendonly yes\n", env = clock and clock:environment() }
      local function player(node)
        return Player.new(module, { name = "hurt", node = node, url = server.url .. "?timeout=" .. (node == "one" and 19 or 20),
          ttl = 3, amnesia_wait = 0 })
      end
      local one, two = player "one", player "two"
      one:win()
      local acts_until = crown.now() + 3
      assert.equal("denied", two:claim()[1])
      hurt(server, clock, function()
        local at = crown.now()
        if one:refresh()[1] == "granted" then acts_until = at + 3 end
      end)
      local newcomer = player "three"
      while crown.now() < acts_until do
        for _, other in ipairs { two, newcomer } do
          local verdict = other:claim()
          assert.is_true(verdict[1] ~= "granted" or crown.now() > acts_until, "two lead")
        end
        crown.sleep(0.2)
      end
    end)
  end

  local function each_key(server, ...)
    for _, key in ipairs(server:call("KEYS", "*")) do
      local words = { ... }
      server:call(words[1], key, unpack(words, 2))
    end
  end

  hurt_by("where keys that end are evicted", function(server)
    server:call("CONFIG", "SET", "maxmemory-policy", "volatile-random")
    server:call("CONFIG", "SET", "maxmemory", "1mb")
    for _ = 1, 50 do server:call("SET", "other", ("x"):rep(100000), "EX", "100") end
    server:call("CONFIG", "SET", "maxmemory", "0")
  end)
  hurt_by("where every key may be evicted, and the election's is", function(server, _, refresh)
    server:call("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
    server:call("CONFIG", "SET", "maxmemory", "1mb")
    eventually(function()
      server:call("SET", "other", ("x"):rep(100000))
      return server:call("EXISTS", key_of "hurt") == 0
    end, PATIENCE)
    refresh()
    server:call("CONFIG", "SET", "maxmemory", "0")
    server:call("CONFIG", "SET", "maxmemory-policy", "noeviction")
    refresh()
  end)
  hurt_by("where somebody takes the keys' ends away", function(server) each_key(server, "PERSIST") end)
  hurt_by("where the server's clock is set back and put right", function(_, clock, refresh)
    clock:set(-3600)
    refresh()
    clock:set(0)
  end, true)
  hurt_by("where the server's clock is stepped forward", function(_, clock) clock:set(3600) end, true)
  hurt_by("where the election's record is deleted", function(server) server:call("DEL", key_of "hurt") end)
  hurt_by("where the election's record is given an end by hand", function(server)
    server:call("PEXPIRE", key_of "hurt", "1")
    eventually(function() return server:call("EXISTS", key_of "hurt") == 0 end)
  end)
  hurt_by("where all is lost", function(server) server:call "FLUSHALL" end)
end)
