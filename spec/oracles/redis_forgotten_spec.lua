-- A Redis server that may have forgotten leases is sat out, by everybody, for the longest TTL that is known of (R12).
local crown = require "crown"
local eventually = require("crown.testing").eventually
local own_servers = require "support.own_servers"
local Redis = require "support.redis"
local WrongClock = require "support.wrong_clock"
local redis_lease = require "support.redis_lease"

local MILLISECOND = 0.0011 -- and what rounding adds. Redis tells whole ones: a follower waits for one more
local candidate, trusted = redis_lease.candidate, redis_lease.trusted

describe("a Redis server that may have forgotten", function()
  local server
  local start, destroy = own_servers(Redis.start)

  before_each(redis_lease.name_anew)
  after_each(destroy)

  it("is sat out for one TTL after a restart that forgot everything, and never gives an epoch twice", function()
    server = trusted(start())
    local one, two = candidate(server.url, "one", { ttl = 3 }), candidate(server.url, "two", { ttl = 3 })
    local epoch = one:claim()[4]
    server:down()
    server:up()
    local at, verdict = crown.now(), nil
    eventually(function() verdict = two:claim() return verdict[1] ~= "unknown" end, 20)
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
    eventually(function() verdict = two:claim() return verdict[1] == "granted" end, 20)
    assert.is_true(crown.now() - at > 1.5)
    assert.is_true(verdict[4] > epoch)
  end)

  it("counts epochs on from the last one heard of, where its clock was set back before it forgot all", function()
    local clock = WrongClock.new(3600)
    server = trusted(start { env = clock:environment() })
    local one, two = candidate(server.url, "one", { ttl = 3 }), candidate(server.url, "two", { ttl = 3 })
    local epoch = one:claim()[4]
    assert.equal(epoch, two:claim()[4])
    server:down()
    clock:set(0)
    server:up()
    for _, pair in ipairs { { two, one }, { one, two } } do -- as a follower heard of it, and as the leader itself
      local winner, other, verdict = pair[1], pair[2], nil
      eventually(function() verdict = winner:claim() return verdict[1] == "granted" end)
      assert.is_true(verdict[4] > epoch)
      epoch = verdict[4]
      assert.equal(epoch, other:claim()[4])
      winner:abdicate()
      server:call "FLUSHALL"
    end
  end)

  it("is sat out for a day at most, whatever somebody has written there as the longest TTL", function()
    server = start()
    for _, longest in ipairs { "1e18", "1e300", "inf", "nan" } do
      server:call("HSET", "crown:store", "identity", "another", "longest", longest)
      local verdict = candidate(server.url, "one"):claim()
      assert.same({ "denied", true }, { verdict[1], verdict[5] }, longest)
      assert.is_true(verdict[2] <= 86401, longest)
    end
  end)

  it("is sat out for one's own TTL, also when somebody with a shorter one asks first (R12)", function()
    server = start()
    local at = crown.now()
    local short, long = candidate(server.url, "short", { lock = "short", ttl = 0.5 }), candidate(server.url, "long", { ttl = 6 })
    eventually(function() return short:claim()[1] == "granted" end)
    local verdict = long:claim()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
    assert.is_true(verdict[2] > 1.5)
    eventually(function() return long:claim()[1] == "granted" end, 10)
    assert.is_true(crown.now() - at >= 5.9)
  end)

  it("tells a leader whose key is gone, and gives the lease to nobody for one TTL (R12)", function()
    server = trusted(start())
    local one, two = candidate(server.url, "one", { ttl = 3 }), candidate(server.url, "two", { ttl = 3 })
    local epoch = one:claim()[4]
    server:call "FLUSHALL"
    local at = crown.now()
    local denied = one:refresh()
    assert.equal("denied", denied[1])
    assert.is_true(denied[5])
    local verdict = two:claim()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
    eventually(function() verdict = two:claim() return verdict[1] == "granted" end)
    assert.is_true(crown.now() - at >= 2.9)
    assert.is_true(verdict[4] > epoch)
  end)

  it("tells a leader whose key alone was deleted that nobody knows who may lead for the rest of its TTL", function()
    server = trusted(start())
    local one = candidate(server.url, "one", { ttl = 20 })
    one:claim()
    server:call("DEL", redis_lease.key "lease")
    local denied = one:refresh()
    assert.same({ "denied", true, 20 }, { denied[1], denied[5], denied[2] })
  end)

  local function is_sat_out_by(follower)
    local verdict = follower:claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] > 10, verdict[2])
  end

  it("gives a lease that somebody has deleted to nobody else before its end, who comes anew included", function()
    server = trusted(start())
    local one, two = candidate(server.url, "one", { ttl = 20 }), candidate(server.url, "two", { ttl = 20 })
    local epoch = one:claim()[4]
    two:claim()
    server:call("DEL", redis_lease.key "lease")
    for _, other in ipairs { two, candidate(server.url, "three", { ttl = 20 }) } do is_sat_out_by(other) end
    assert.equal("denied", one:refresh()[1]) -- so nothing acts by it any more, and none other has had it since
    local verdict = one:claim()
    assert.equal("granted", verdict[1])
    assert.is_true(verdict[4] > epoch)
    server:call("DEL", redis_lease.key "lease")
    server:call("PEXPIRE", redis_lease.key "held", 1)
    eventually(function() return two:claim()[1] == "granted" end)
  end)

  it("is not sat out where the lease has ended, or was released", function()
    server = trusted(start())
    local one, two = candidate(server.url, "one", { ttl = 20 }), candidate(server.url, "two", { ttl = 20 })
    one:claim()
    one:abdicate()
    assert.equal("granted", two:claim()[1])
    for _ = 1, 5 do
      server:call("PEXPIRE", redis_lease.key "lease", 1)
      server:call("PEXPIRE", redis_lease.key "held", 1)
      eventually(function() return server:call("EXISTS", redis_lease.key "lease") == 0 end)
      one, two = two, one
      assert.equal("granted", two:claim()[1])
    end
  end)

  it("is sat out by who has heard of a later epoch, where somebody has deleted the keys of the election", function()
    server = trusted(start())
    local one, two = candidate(server.url, "one", { ttl = 20 }), candidate(server.url, "two", { ttl = 20 })
    one:claim()
    two:claim()
    for _, what in ipairs { "lease", "epoch" } do server:call("DEL", redis_lease.key(what)) end
    is_sat_out_by(two)
    is_sat_out_by(two)
    is_sat_out_by(candidate(server.url, "three", { ttl = 20 }))
  end)

  it("is sat out by who has heard of a later epoch, where somebody has put other keys in the place of all", function()
    server = trusted(start())
    candidate(server.url .. "/1", "other"):claim()
    server:call("SWAPDB", "0", "1")
    trusted(server)
    local one, two = candidate(server.url, "one", { ttl = 20 }), candidate(server.url, "two", { ttl = 20 })
    local epoch = one:claim()[4]
    two:claim()
    server:call("SWAPDB", "0", "1")
    server:call("HSET", "crown:store", "since", "0") -- its doubt of when it was new is over
    is_sat_out_by(two)
    assert.is_true(tonumber(server:call("GET", redis_lease.key "epoch")) >= epoch)
  end)

  it("is sat out after a failover also by whoever held the lease once (R12)", function()
    server = start()
    local way = redis_lease.valve(server)
    local replica = start { config = "replicaof 127.0.0.1 " .. way.listener:port() .. "\n" }
    eventually(function() return server:call("INFO", "replication"):find "state=online" end, 20)
    trusted(server)
    local one = candidate(server.url, "one", { token = "a", ttl = 20 })
    one:claim()
    eventually(function() return redis_lease.field(replica, "node") == "one" end, 20)
    way.hold = true
    one:abdicate()
    assert.equal("granted", candidate(server.url, "two", { ttl = 20 }):claim()[1])
    server:down()
    way.listener:close()
    replica:call("REPLICAOF", "NO", "ONE")
    assert.equal("one", redis_lease.field(replica, "node"))
    local verdict = candidate(replica.url, "one", { token = "a", ttl = 20 }):claim()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
  end)

  it("is sat out when it was a replica for a while (R12)", function()
    server = trusted(start())
    local other = start { config = "replicaof 127.0.0.1 " .. server.port .. "\n" }
    local one = candidate(server.url, "one")
    eventually(function() return server:call("INFO", "replication"):find "state=online" end, 20)
    trusted(server)
    other:call("REPLICAOF", "NO", "ONE")
    server:call("REPLICAOF", "127.0.0.1", tostring(other.port))
    eventually(function() return server:call("INFO", "replication"):find "master_link_status:up" end, 20)
    server:call("REPLICAOF", "NO", "ONE")
    local verdict
    eventually(function() verdict = one:claim() return verdict[1] ~= "unknown" end)
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
  end)

  it("is sat out for the longest TTL that anybody here has seen there, also when all is lost (R12)", function()
    server = trusted(start())
    local long, short = candidate(server.url, "long", { lock = "long", ttl = 20 }), candidate(server.url, "short", { ttl = 0.5 })
    long:claim()
    server:call "FLUSHALL"
    assert.is_true(short:claim()[2] > 15)
  end)

  it("is sat out by a newcomer for longer than its own TTL when all is lost: leases were longer, perhaps (R12)", function()
    server = trusted(start())
    assert.equal("granted", candidate(server.url, "one", { ttl = 20 }):claim()[1])
    server:call "FLUSHALL"
    local way = redis_lease.valve(server)
    local two = candidate(way.url, "two", { ttl = 0.5, amnesia_wait = 30 })
    local verdict = two:claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] > 20)
    server:call("HSET", "crown:store", "identity", "another") -- as after a failover: what was lost is as long ago as it was
    assert.is_true(two:claim()[2] > 20)
    way.listener:close()
  end)

  it("is believed at once where nobody can have emptied it, and only once (R12)", function()
    server = start()
    local one = candidate(server.url, "one", { ttl = 1, trust_empty = true })
    assert.equal("granted", one:claim()[1])
    assert.equal("denied", candidate(server.url, "two", { ttl = 1 }):claim()[1])
    server:call "FLUSHALL"
    assert.is_true(one:refresh()[5])
    local verdict = one:claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
  end)

  describe("whose clock was stepped forward (R12)", function()
    local clock, way

    before_each(function()
      clock = WrongClock.new(0)
      server = trusted(start { env = clock:environment() })
      way = redis_lease.valve(server)
    end)
    after_each(function() way.listener:close() end)

    local function is_doubted(player)
      local verdict
      eventually(function() verdict = player:claim() return verdict[1] ~= "unknown" end)
      assert.same({ "denied", true }, { verdict[1], verdict[5] })
      assert.is_true(verdict[2] > 15)
    end

    it("is sat out by who has seen it before, though the lease is over there", function()
      local one, two = candidate(server.url, "one", { ttl = 20 }), candidate(way.url, "two", { ttl = 20 })
      assert.equal("granted", one:claim()[1])
      assert.equal("denied", two:claim()[1])
      clock:set(3600)
      assert.equal("unknown", two:claim()[1]) -- granted there, and taken back
      is_doubted(two)
      assert.is_nil(redis_lease.field(server, "node"))
    end)

    it("is sat out by who has never seen it, once somebody has noticed", function()
      local one = candidate(server.url, "one", { ttl = 20 })
      assert.equal("granted", one:claim()[1])
      clock:set(3600)
      assert.equal("denied", one:refresh()[1])
      is_doubted(candidate(way.url, "two", { ttl = 20 }))
    end)

    it("is sat out by who has not seen that it had been set back, though a leader refreshed meanwhile", function()
      local one = candidate(way.url, "one", { ttl = 20, timeout = 0.5 })
      local two, three = candidate(server.url, "two", { ttl = 20 }), candidate(server.quick, "three", { ttl = 20 })
      assert.equal("granted", one:claim()[1])
      assert.equal("denied", two:claim()[1])
      assert.equal("denied", three:claim()[1])
      clock:set(-3600)
      way.hold = true
      assert.equal("unknown", one:refresh()[1]) -- its lease is refreshed, by a clock that is slow
      clock:set(0)
      is_doubted(two)
      is_doubted(three)
    end)

    it("is led on by a lease that is not over", function()
      local one = candidate(server.url, "one", { ttl = 20 })
      local epoch = one:claim()[4]
      clock:set(10)
      local verdict = one:refresh()
      assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
      clock:set(-10)
      verdict = one:refresh()
      assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
    end)
  end)

  it("gives a lease away within two TTLs of a leader that has died, also where its clock was set back (R7)", function()
    local clock = WrongClock.new(0)
    server = trusted(start { env = clock:environment() })
    local one, two = candidate(server.url, "one", { ttl = 2 }), candidate(server.url, "two", { ttl = 2 })
    assert.equal("granted", one:claim()[1])
    clock:set(-3600)
    local at, verdict = crown.now(), two:claim()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[2] <= 2 + MILLISECOND)
    eventually(function() return two:claim()[1] == "granted" end, 10)
    assert.is_true(crown.now() - at > 1.5)
  end)

  it("knows the longest TTL that was ever asked for there, for those who come later (R12)", function()
    server = trusted(start())
    candidate(server.url, "long", { lock = "long", ttl = 20 }):claim()
    server:call("HSET", "crown:store", "identity", "another")
    -- By another way, so that what this runtime remembers of the store is not asked.
    local way = redis_lease.valve(server)
    local verdict = candidate(way.url, "short", { ttl = 0.5 }):claim()
    way.listener:close()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] > 15)
  end)
end)
