-- The register in Redis where several servers keep it: Sentinels name a primary, or a cluster's nodes share the keys.
local eventually = require("crown.testing").eventually
local own_servers = require "support.own_servers"
local Redis = require "support.redis"
local register = require "support.redis_register"
local RedisCluster = require "support.redis_cluster"

local PATIENCE = 60

local open, key_of = register.open, register.key_of

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
