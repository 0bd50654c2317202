-- The register in Redis asked by hand: what a write names has to stand, in the memory that it names, and what an answer takes to
-- count.
local eventually = require("crown.testing").eventually
local own_servers = require "support.own_servers"
local Redis = require "support.redis"
local register = require "support.redis_register"

local PATIENCE = 60

local serial = 0

local open, key_of = register.open, register.key_of

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
