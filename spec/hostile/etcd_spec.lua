-- etcd's members, one of which has no quorum: it says so in words, or tells of nothing that it is watched for.
local crown = require "crown"
local Batch = require "crown.etcd.batch"
local Client = require "crown.etcd.client"
local eventually = require("crown.testing").eventually
local Hostile = require "support.hostile"
local Memory = require "crown.etcd.memory"
local Trust = require "crown.oracle.trust"
local Watch = require "crown.etcd.watch"

local function answer(status, body)
  return ("hear POST\nsay HTTP/1.1 %d X\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n%s"):format(status, #body, body)
end

local WELL = answer(200, [[{"header":{"revision":"7"}}]])
-- As etcd 3.4 answers each of them after the loss of the other member.
local WITHOUT_QUORUM = {
  ["a read that timed out"] = answer(503, [[{"error":"etcdserver: request timed out","code":14}]]),
  ["a write whose time is over"] = answer(500, [[{"error":"context deadline exceeded","code":2}]]),
  ["no leader"] = answer(503, [[{"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}}]]),
}

local function client_of(...)
  local endpoints = {}
  for i, server in ipairs { ... } do endpoints[i] = "http://127.0.0.1:" .. server.port end
  return Client.new({ endpoints = endpoints }, 4)
end

describe("a member of etcd without quorum", function()
  for words, script in pairs(WITHOUT_QUORUM) do
    it("is left for the next one: " .. words, function()
      local lonely, well = Hostile.start(script), Hostile.start(WELL)
      local client = client_of(lonely, well)
      assert.equal("7", assert(client:ask("/v3/kv/range", {})).header.revision)
      assert(client:ask("/v3/kv/range", {}))
      assert.same({ 1, 2 }, { lonely.count, well.count })
      lonely:destroy()
      well:destroy()
    end)
  end

  it("is told of, where all members are like it", function()
    local lonely = Hostile.start(WITHOUT_QUORUM["no leader"])
    local found, problem, code = client_of(lonely, lonely):ask("/v3/kv/range", {})
    assert.same({ nil, ("etcd at 127.0.0.1:%d: etcdserver: no leader"):format(lonely.port), "unavailable" }, { found, problem, code })
    assert.equal(2, lonely.count)
    lonely:destroy()
  end)

  it("loses the watches that it has, with a word to who watches", function()
    local created = [[{"result":{"created":true}}]]
    local lonely = Hostile.start(Hostile.watch(created), WITHOUT_QUORUM["no leader"])
    local well = Hostile.start(WELL)
    local client = client_of(lonely, well)
    local ended
    local stream = assert(client:open_watch { { key = "a2V5" } })
    assert.equal(created, stream:line(20))
    crown.spawn(function() ended = not stream:line(60) end)
    crown.sleep(0.1)
    assert.is_nil(ended)
    assert(client:ask("/v3/kv/range", {}))
    eventually(function() return ended end, 20)
    lonely:destroy()
    well:destroy()
  end)
end)

describe("a line of a watch that etcd does not say", function()
  local LINES = { "null", "5", "{\"result\":5}", "{\"result\":{}}", "{\"result\":{\"header\":{}}}", "{nonsense",
    "{\"result\":{\"header\":{\"revision\":\"7\"},\"watch_id\":\"1\",\"events\":5}}",
    "{\"result\":{\"header\":{\"revision\":\"7\"},\"watch_id\":\"1\",\"events\":[{\"kv\":5}]}}" }
  for _, line in ipairs(LINES) do
    it("ends it, in words: " .. line, function()
      local server = Hostile.start(Hostile.watch(line))
      local watch = Watch.new { client = client_of(server), timeout = 1, on_event = function() end, on_missed = function() end }
      crown.spawn(watch.over, watch, { key = "a2V5" })
      eventually(function() return watch.problem end, 20)
      assert.equal("unexpected message in a watch of etcd", watch.problem)
      watch:close()
      server:destroy()
    end)
  end
end)

describe("a range that comes while a watch of etcd is opened", function()
  local NAME, OTHER = { key = "a2V5" }, { key = "b3RoZXI=" }
  local server, client, watch

  local function created(range)
    return ([[{"result":{"header":{"revision":"7"},"created":true,"watch_id":"%d"}}]]):format(range)
  end
  local BOTH = Hostile.watch(created(1)) .. ("say %x\\r\\n%s\\n\\r\\n\n"):format(#created(2) + 1, created(2))

  local function watches(...)
    server = Hostile.start(...)
    client = client_of(server)
    watch = Watch.new { client = client, timeout = 2, on_event = function() end, on_missed = function() end }
  end
  after_each(function()
    watch:close()
    server:destroy()
  end)

  it("does not hold up those that were asked for", function()
    local fine, problem
    watches("wait 0.5\n" .. Hostile.watch(created(1)), BOTH)
    crown.spawn(function() fine, problem = watch:over(NAME) end)
    eventually(function() return server.count == 1 end, 20)
    assert(watch:over(OTHER))
    assert.same({ true, nil, 2 }, { fine, problem, server.count })
  end)

  it("is watched by the next stream", function()
    watches(Hostile.watch(created(1)), Hostile.watch(created(1)), BOTH)
    local opened = 0
    function client.open_watch(...)
      opened = opened + 1
      if opened == 2 then eventually(function() return #watch.waiting > 0 end, 20) end
      return Client.open_watch(...)
    end
    assert(watch:over(NAME))
    eventually(function() return opened == 2 end, 20) -- it has been quiet
    assert(watch:over(OTHER))
    assert.same({ 3, 7 }, { opened, watch:heard(OTHER) })
  end)
end)

describe("what etcd refuses", function()
  it("is asked of no other member", function()
    local one, two = Hostile.start(answer(400, [[{"error":"etcdserver: lease already exists","code":9}]])), Hostile.start(WELL)
    local _, problem, code = client_of(one, two):ask("/v3/lease/grant", {})
    assert.same({ ("etcd at 127.0.0.1:%d: etcdserver: lease already exists"):format(one.port), "store", 0 },
      { problem, code, two.count })
    one:destroy()
    two:destroy()
  end)
end)

describe("an answer that is none of etcd's", function()
  for words, body in pairs { ["a list"] = "[1,2]", ["a number"] = "5", ["a text"] = [["x"]], ["null"] = "null",
    ["an object of somebody else"] = "{}", ["a result that is a list"] = [[{"result":[1,2]}]] } do
    it("is not taken for one: " .. words, function()
      local server = Hostile.start(answer(200, body))
      local found, problem, code = client_of(server):ask("/v3/lease/grant", {})
      assert.same({ nil, "protocol" }, { found, code })
      assert(problem:find "no JSON object" or problem:find "lacks the header that etcd sends", problem)
      server:destroy()
    end)
  end

  it("is told with its server where it says less than was asked", function()
    local server = Hostile.start(answer(200, [[{"header":{"revision":"7"},"responses":[]}]]))
    local found, problem, code = Batch.new(client_of(server)):ask { { request_range = { key = "YQ==" } } }
    assert.same({ nil, "protocol" }, { found, code })
    assert.equal(("etcd at 127.0.0.1:%d: its reply has fewer parts than the request: is that etcd itself, or does a proxy answer "
      .. "in its place?")
      :format(server.port), problem)
    server:destroy()
  end)

  it("is not taken for that of a lease that it is not about", function()
    local answers = {
      ["/v3/kv/range"] = { header = { revision = "7", raft_term = "2", cluster_id = "1" }, kvs = { { key = "a", lease = "4711" } } },
      ["/v3/lease/timetolive"] = { header = { raft_term = "2", cluster_id = "1" }, ID = "4712",
        TTL = "999999000", grantedTTL = "1000000000" },
    }
    local memory = Memory.new { client = { ask = function(_, path) return answers[path] end, parsed = {} }, prefix = "",
      trust = Trust.of "of answers", new_lease = function() return "1" end, floor = 0, trust_empty = true }
    assert.same({ nil, "etcd answered what it was not asked", "protocol" }, { memory:look() })
    answers["/v3/lease/timetolive"].ID = "4711"
    assert(memory:look())
  end)
end)

describe("a member of etcd that does not answer", function()
  it("is asked six questions at a time, on as many connections, and says so in status", function()
    local server = Hostile.start "wait 0.5"
    local client, failed = client_of(server), 0
    client.timeout = 1
    for _ = 1, 30 do
      crown.spawn(function()
        if not client:ask("/v3/kv/range", {}) then failed = failed + 1 end
      end)
    end
    eventually(function() return failed == 30 end, 20)
    assert(server.count <= 12, server.count .. " connections in two rounds")
    local condition = client.members[1]:condition()
    assert.same({ 7, 9 }, { condition.connections, condition.limit })
    server:destroy()
  end)
end)
