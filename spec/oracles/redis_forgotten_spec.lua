-- A Redis server that may have forgotten who leads is sat out, by everybody (S8, S13). What holds for every store is in spec/stores.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local own_servers = require "support.own_servers"
local Redis = require "support.redis"
local redis_lease = require "support.redis_lease"
local WrongClock = require "support.wrong_clock"

local candidate = redis_lease.candidate

local PATIENCE = 20

describe("a Redis server that may have forgotten", function()
  local server
  local start, destroy = own_servers(Redis.start)

  before_each(redis_lease.name_anew)
  after_each(destroy)

  -- @return for how long
  local function is_sat_out_by(player)
    local verdict = player:answered("claim", PATIENCE)
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    return verdict[2]
  end

  local function replica_of(port)
    return start { config = "replicaof 127.0.0.1 " .. port .. "\n" }
  end

  local function await_replica()
    eventually(function() return server:call("INFO", "replication"):find "state=online" end, PATIENCE)
  end

  it("is sat out after a restart that forgot everything, and never gives an epoch twice", function()
    server = start()
    local one, two = candidate(server.url, "one", { ttl = 2 }), candidate(server.url, "two", { ttl = 2 })
    local epoch = one:claim()[4]
    assert.equal("denied", two:claim()[1])
    server:down()
    server:up()
    local at = crown.now()
    is_sat_out_by(two)
    local verdict = two:win()
    assert.is_true(crown.now() - at > 4) -- twice the TTL
    assert.is_true(verdict[4] > epoch)
  end)

  it("counts epochs on from the last one heard of, where its clock was set back before it forgot all", function()
    local clock = WrongClock.new(3600)
    server = start { env = clock:environment() }
    local one, two = candidate(server.url, "one", { ttl = 1 }), candidate(server.url, "two", { ttl = 1 })
    local epoch = one:claim()[4]
    assert.equal(epoch, two:claim()[4])
    clock:set(0)
    for _, pair in ipairs { { two, one }, { one, two } } do -- as a follower heard of it, and as the leader itself
      server:call "FLUSHALL"
      local winner, other = pair[1], pair[2]
      local won = winner:win()[4]
      assert.is_true(won > epoch)
      epoch = won
      assert.equal(epoch, other:claim()[4])
      winner:abdicate()
    end
  end)

  it("tells a leader whose record is gone with all others that nobody knows who may lead", function()
    server = start()
    local one = candidate(server.url, "one")
    one:claim()
    server:call "FLUSHALL"
    local denied = one:answered "refresh"
    assert.same({ "denied", true }, { denied[1], denied[5] })
  end)

  it("is sat out by those who have heard of its leader, where somebody swaps its databases, and then by all", function()
    server = start()
    candidate(server.url .. "/1", "other"):claim()
    local one, two = candidate(server.url, "one", { ttl = 20 }), candidate(server.url, "two", { ttl = 20 })
    local epoch = one:claim()[4]
    two:claim()
    server:call("SWAPDB", "0", "1")
    is_sat_out_by(two)
    is_sat_out_by(two)
    is_sat_out_by(candidate(server.url, "three", { ttl = 20 }))
    assert.is_true(redis_lease.field(server, "epoch") >= epoch)
  end)

  it("is sat out after a failover also by the candidate that held the lease once", function()
    server = start()
    local way = redis_lease.valve(server)
    local replica = replica_of(way.listener:port())
    await_replica()
    local one = candidate(server.url, "one", { token = "a", ttl = 20 })
    one:win()
    eventually(function() return redis_lease.field(replica, "node") == "one" end, PATIENCE)
    way.hold = true
    one:abdicate()
    assert.equal("granted", candidate(server.url, "two", { ttl = 20 }):claim()[1])
    server:down()
    way.listener:close()
    replica:call("REPLICAOF", "NO", "ONE")
    assert.equal("one", redis_lease.field(replica, "node"))
    assert.equal("denied", candidate(replica.url, "one", { token = "a", ttl = 20 }):answered("claim", PATIENCE)[1])
  end)

  it("is sat out when it was a replica for a while", function()
    server = start()
    local other, one = replica_of(server.port), candidate(server.url, "one")
    await_replica()
    one:win()
    one:abdicate()
    other:call("REPLICAOF", "NO", "ONE")
    server:call("REPLICAOF", "127.0.0.1", tostring(other.port))
    eventually(function() return server:call("INFO", "replication"):find "master_link_status:up" end, PATIENCE)
    server:call("REPLICAOF", "NO", "ONE")
    is_sat_out_by(one)
  end)

  it("is sat out for the longest TTL that a candidate has seen there, also when all is lost", function()
    server = start()
    local long, short = candidate(server.url, "long", { lock = "long", ttl = 20 }), candidate(server.url, "short", { ttl = 0.5 })
    long:claim()
    assert.equal("granted", short:claim()[1])
    server:call "FLUSHALL"
    assert.is_true(is_sat_out_by(short) > 15)
  end)

  it("is sat out for the longest TTL that was ever in use there, by those who come later", function()
    server = start()
    candidate(server.url, "long", { lock = "long", ttl = 20 }):claim()
    server:call("DEL", "crown:memory") -- as after a failover: another memory, in which all is still there
    assert.is_true(is_sat_out_by(candidate(server.url, "short", { ttl = 0.5, trust_empty = false })) > 15)
  end)

  it("is sat out by a newcomer for longer than its own TTL when all is lost: leases were longer, perhaps", function()
    server = start()
    assert.equal("granted", candidate(server.url, "one", { ttl = 20 }):claim()[1])
    server:call "FLUSHALL"
    assert.is_true(is_sat_out_by(candidate(server.url, "two", { ttl = 0.5, amnesia_wait = 30, trust_empty = false })) > 20)
  end)

  it("is believed at once where nobody can have emptied it, and only once", function()
    server = start()
    local one = candidate(server.url, "one", { ttl = 1 })
    assert.equal("granted", one:claim()[1])
    assert.equal("denied", candidate(server.url, "two", { ttl = 1 }):claim()[1])
    server:call "FLUSHALL"
    assert.is_true(one:answered("refresh")[5])
    is_sat_out_by(one)
  end)
end)
