-- What refreshes the leases of a leader on Postgres, and gives them back: one statement for many, and no call of the oracle while
-- nothing has changed.
local crown = require "crown"
local Elections = require "support.elections"
local eventually = require("crown.testing").eventually
local lease = require "crown.oracles.postgres_lease"
local Player = require "support.oracle_candidate"
local Postgres = require "support.postgres"
local WrongClock = require "support.wrong_clock"

local TTL = 3

describe("a leader's lease on Postgres", function()
  local server, name, calls, lost, failures, clock
  local mine, refresh, abdicate = Elections.new(), lease.refresh, lease.abdicate

  setup(function()
    clock = WrongClock.new(0)
    server = Postgres.start { clock = clock }
    crown.on("leadership.lost", function(event)
      if event.name == name then lost = event end
    end)
    crown.on("oracle.error", function(event)
      if event.name == name then failures[#failures + 1] = event["function"] .. ": " .. event.error end
    end)
  end)
  teardown(function() server:destroy() end)

  before_each(function()
    name, calls, lost, failures = Elections.unique(), 0, nil, {}
    function lease:refresh()
      calls = calls + 1
      return refresh(self)
    end
    function lease:abdicate()
      calls = calls + 1
      return abdicate(self)
    end
  end)
  after_each(function()
    mine:stop()
    lease.refresh, lease.abdicate = refresh, abdicate
  end)

  local function leader(ttl)
    local election = mine:elect { name = name, oracle = { "postgres_lease", url = server.url, ttl = ttl or TTL } }
    eventually(function() return election:is_leader() end, 20)
    return election
  end

  local function ends_at()
    return server:sql("SELECT extract(epoch FROM expires_at)::float8 AS at FROM crown_lease_v1 WHERE lock_name = $1", name)[1].at
  end

  local function change(what)
    server:sql(("UPDATE crown_lease_v1 SET %s WHERE lock_name = $1"):format(what), name)
  end

  local function refreshed(times)
    for _ = 1, times do
      local before = ends_at()
      eventually(function() return ends_at() > before end, 20)
    end
  end

  it("is as its own options say, whatever those of the election before it said", function()
    local function made(options)
      options.name, options.url = Elections.unique(), server.url
      return Player.new(lease, options).state
    end
    local first, plain, slow = made { ttl = TTL, lock = "other-" .. name }, made {}, made { refresh = 9 }
    assert.same({ TTL, 30, 30 }, { first.ttl, plain.ttl, slow.ttl })
    assert.same({ TTL / 3, 10, 9 }, { first.delay, plain.delay, slow.delay })
    assert.equal("other-" .. name, first.name)
    assert.matches("^elect%-spec", plain.name)
    assert.are_not.equal(plain.name, slow.name)
  end)

  it("is refreshed without a call of the oracle as long as nothing has changed", function()
    local election = leader()
    refreshed(3)
    assert.equal(0, calls)
    assert.is_true(election:is_leader())
    assert.equal(TTL, election.state.grant.ttl)
  end)

  it("is given back, and free at once, without a call of the oracle", function()
    local election = leader()
    local epoch = election:status().epoch
    mine:stop()
    assert.equal(0, calls)
    assert.is_false(election.state.leading)
    local row = server:sql("SELECT expires_at <= clock_timestamp() AS free, epoch FROM crown_lease_v1 WHERE lock_name = $1", name)[1]
    assert.same({ true, epoch }, { row.free, row.epoch })
  end)

  it("is given back when only its row says that the leader is to go", function()
    leader()
    change "evicted = TRUE"
    eventually(function() return lost end, 20)
    assert.equal("evicted", lost.reason)
  end)

  it("is lost, with the reason, when its row names somebody else", function()
    leader()
    change "holder = 'somebody#00-00', expires_at = clock_timestamp() + interval '1 minute'"
    eventually(function() return lost end, 20)
    assert.same({ "denied", "the lease in the store is not this term's" }, { lost.reason, lost.error })
  end)

  it("is lost when its row is of another claim", function()
    leader()
    change "claim = claim + 1"
    eventually(function() return lost end, 20)
    assert.same({ "denied", "the lease in the store is not this term's" }, { lost.reason, lost.error })
  end)

  it("is lost when its row is of another term", function()
    local election = leader()
    change "epoch = epoch + 5"
    eventually(function() return lost end, 20)
    assert.equal("denied", lost.reason)
    eventually(function() return election:is_leader() end, 20)
  end)

  it("is refreshed and given back by an oracle of the user's own that stands before it", function()
    local asked, given, fit = 0, 0, true
    local own = setmetatable({
      refresh = function(state)
        asked = asked + 1
        if not fit then return false, { evicted = true } end
        return refresh(state)
      end,
      abdicate = function(state)
        given = given + 1
        return abdicate(state)
      end,
    }, { __index = lease })
    local election = mine:elect { name = name, oracle = { own, url = server.url, ttl = TTL } }
    eventually(function() return election:is_leader() end, 20)
    refreshed(2)
    assert.is_true(asked > 0)
    fit = false
    eventually(function() return lost end, 20)
    assert.equal("evicted", lost.reason)
    eventually(function() return given > 0 end, 20)
  end)

  it("is led on while the server gives no answer, which is told, and refreshed when it does again", function()
    local election = leader(4 * TTL) -- long enough for a freeze that one refresh notices, and for a busy machine
    refreshed(1)
    server:freeze()
    eventually(function() return #failures > 0 end, 20)
    assert.matches("^refresh: ", failures[1])
    assert.is_true(election:is_leader())
    server:thaw()
    refreshed(2)
    assert.is_nil(lost)
  end)

  it("is refreshed by the oracle, which writes that down, when the server's clock was stepped forward", function()
    leader()
    refreshed(1)
    clock:set(7200)
    eventually(function() return calls > 0 end, 20)
    eventually(function() return server:sql("SELECT trusted_at > clock_timestamp() AS doubted FROM crown_store_v1")[1].doubted end, 20)
  end)
end)
