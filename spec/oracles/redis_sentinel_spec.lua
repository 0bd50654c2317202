-- Elections on a primary that Sentinels name: what it says counts as long as most Sentinels name it.
local eventually = require("crown.testing").eventually
local own_servers = require "support.own_servers"
local Redis = require "support.redis"
local redis = require "crown.oracles.redis"
local redis_lease = require "support.redis_lease"

local candidate = redis_lease.candidate

local TTL = 6
local MONITOR = "sentinel monitor mine 127.0.0.1 %d 2\nsentinel down-after-milliseconds mine %d\n"
  .. "sentinel failover-timeout mine 3000\n"
local NEVER = 600000 -- milliseconds: nobody is failed over

describe("a primary that Sentinels name", function()
  local server, sentinels
  local start, destroy = own_servers(Redis.start)

  before_each(redis_lease.name_anew)
  after_each(destroy)

  -- Three, which know of each other.
  local function watched(down_after)
    server, sentinels = start(), {}
    local replica = start { config = "replicaof 127.0.0.1 " .. server.port .. "\n" }
    for i = 1, 3 do sentinels[i] = start { sentinel = true, config = MONITOR:format(server.port, down_after) } end
    for _, one in ipairs(sentinels) do
      eventually(function()
        return #one:call("SENTINEL", "sentinels", "mine") == 2 and #one:call("SENTINEL", "replicas", "mine") == 1
      end, 30)
    end
    eventually(function() return replica:call("INFO", "replication"):find "master_link_status:up" end, 30)
    return replica
  end

  local function url(...)
    local hosts = {}
    for i, number in ipairs { ... } do hosts[i] = "127.0.0.1:" .. sentinels[number].port end
    return "redis+sentinel://" .. table.concat(hosts, ",") .. "/mine"
  end

  -- A Sentinel that names another primary, as after a failover that it has heard of.
  local function lead_elsewhere(one, port)
    one:call("SENTINEL", "REMOVE", "mine")
    assert(one:call("SENTINEL", "MONITOR", "mine", "127.0.0.1", tostring(port), "2"))
  end

  local function each(numbers, method)
    for _, number in ipairs(numbers) do sentinels[number][method](sentinels[number]) end
  end

  local function held() return redis_lease.field(server, "by") ~= nil end

  local function options() return { ttl = TTL, timeout = 1 } end

  it("is led on while one Sentinel of three is silent, and by those that the URL does not name", function()
    watched(NEVER)
    local one = candidate(url(1), "one", options())
    one:win()
    for number = 1, 3 do
      each({ number }, "freeze")
      eventually(function() return one:refresh()[1] == "granted" end, 20)
      one:abdicate()
      eventually(function() return one:claim()[1] == "granted" end, 20)
      each({ number }, "thaw")
    end
  end)

  it("is told to nobody whose claim most Sentinels do not confirm, and the claim is taken back", function()
    watched(NEVER)
    local one = candidate(url(1), "one", options())
    one:win()
    one:abdicate()
    each({ 2, 3 }, "freeze")
    local verdict = one:claim()
    assert.equal("unknown", verdict[1])
    assert.matches("1 of 3 Sentinels agree on a primary, 2 are needed", verdict[2])
    eventually(function() return not held() end, 20)
    each({ 2, 3 }, "thaw")
    one:win()
  end)

  it("does not confirm a refresh that a minority of the Sentinels knows of", function()
    watched(NEVER)
    local one = candidate(url(1, 2, 3), "one", options())
    local epoch, two = one:win()[4], candidate(url(1, 2, 3), "two", options())
    each({ 2, 3 }, "freeze")
    assert.equal("unknown", two:claim()[1]) -- what it finds there may be of an old primary
    local verdict = one:refresh()
    assert.equal("unknown", verdict[1])
    assert.matches("1 of 3 Sentinels agree", verdict[2])
    each({ 1 }, "freeze")
    verdict = one:refresh()
    assert.equal("unknown", verdict[1])
    assert.matches("0 of 3 Sentinels agree", verdict[2])
    each({ 1, 2, 3 }, "thaw")
    eventually(function() verdict = one:refresh() return verdict[1] == "granted" end, 20)
    assert.equal(epoch, verdict[4])
  end)

  it("is one Sentinel's for each that there is, by however many names the URL leads to it", function()
    watched(NEVER)
    local port = sentinels[1].port
    local one = candidate(("redis+sentinel://127.0.0.1:%d,localhost:%d/mine"):format(port, port), "one", options())
    one:win()
    one:abdicate()
    each({ 2, 3 }, "freeze")
    assert.equal("unknown", one:claim()[1])
    each({ 2, 3 }, "thaw")
  end)

  it("is what check --store misses where most Sentinels do not name one", function()
    watched(NEVER)
    assert.equal(0, #redis.rights { url = url(1), timeout = 1 })
    each({ 2, 3 }, "freeze")
    assert.matches("1 of 3 Sentinels agree", redis.rights({ url = url(1), timeout = 1 })[1])
    each({ 2, 3 }, "thaw")
  end)

  it("is not connected to before most Sentinels name it, so that it is sat out from then on", function()
    watched(NEVER)
    local other = start()
    lead_elsewhere(sentinels[1], other.port)
    local one = candidate(url(1, 2, 3), "one", options())
    one:win()
    assert.equal(0, other:call "DBSIZE")
    assert.is_true(held())
  end)

  for _, op in ipairs { "claim", "refresh" } do
    it("is left for the one that most Sentinels name: a " .. op, function()
      watched(NEVER)
      local other = start()
      local one = candidate(url(1, 2, 3), "one", options())
      one:win()
      if op == "claim" then one:abdicate() end
      lead_elsewhere(sentinels[2], other.port)
      lead_elsewhere(sentinels[3], other.port)
      local verdict = one[op](one)
      assert.equal("unknown", verdict[1])
      assert.matches("most Sentinels name 127.0.0.1:" .. other.port .. " as the primary", verdict[2])
      if op == "claim" then eventually(function() return not held() end, 20) end
      eventually(function() return one:claim()[1] == "granted" and redis_lease.field(other, "by") ~= nil end, 20)
    end)
  end

  it("has no leader beside the new one's when it comes back from a freeze with a Sentinel and a candidate", function()
    local replica = watched(500)
    local two = candidate(url(1, 2, 3), "two", { ttl = TTL })
    local epoch = two:win()[4]
    two:abdicate()
    each({ 1 }, "freeze")
    server:freeze()
    for number = 2, 3 do
      eventually(function()
        return sentinels[number]:call("SENTINEL", "get-master-addr-by-name", "mine")[2] == tostring(replica.port)
      end, 30)
    end
    local one = candidate(url(3, 2, 1), "one", { ttl = TTL })
    assert.is_true(one:win()[4] > epoch)
    server:thaw()
    each({ 1 }, "thaw")
    local verdict = two:claim()
    assert.not_equal("granted", verdict[1])
    assert.equal("granted", one:refresh()[1])
  end)
end)
