-- A Redis whose clock was set back, and put right before somebody asks: what was refreshed meanwhile ends too early by it. Who has
-- seen the clock before finds out by that, or by the count of steps back. Who comes anew has neither: the store tells it (R12, R14).
local crown = require "crown"
local eventually = require("crown.testing").eventually
local own_servers = require "support.own_servers"
local Redis = require "support.redis"
local redis_lease = require "support.redis_lease"
local WrongClock = require "support.wrong_clock"

local MILLISECOND = 0.0011 -- and what rounding adds. Redis tells whole ones: a follower waits for one more
local HOUR = 3600
local TTL = 20
local BRIEF = { ttl = 5 }

describe("a Redis whose clock was set back and put right", function()
  local clock, server, ways
  local start, destroy = own_servers(Redis.start)

  before_each(function()
    redis_lease.name_anew()
    clock, ways = WrongClock.new(0), {}
    server = redis_lease.trusted(start { env = clock:environment() })
  end)
  after_each(function()
    for _, way in ipairs(ways) do way.listener:close() end
    destroy()
  end)

  -- Each comes by a way of its own, as a runtime of its own: they share nothing.
  local function candidate(node, options)
    local way = redis_lease.valve(server)
    ways[#ways + 1] = way
    local given = { ttl = TTL }
    for key, value in pairs(options or {}) do given[key] = value end
    return redis_lease.candidate(way.url, node, given)
  end

  local function wins(player)
    assert.equal("granted", player:claim()[1])
  end

  local function is_doubted(verdict, ttl)
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] > (ttl or TTL) / 2 and verdict[2] < 2 * (ttl or TTL), verdict[2])
  end

  local function is_refreshed_while_set_back(one, seconds)
    clock:set(-seconds)
    assert.equal("granted", one:refresh()[1])
    clock:set(0)
  end

  local function counted()
    return tonumber(server:call("HGET", "crown:store", "set_back"))
  end

  it("is sat out by who comes anew, and has no count to compare", function()
    local one = candidate "one"
    wins(one)
    is_refreshed_while_set_back(one, 48 * HOUR)
    is_doubted(candidate "two":claim())
  end)

  it("is sat out by who comes anew, however little it was set back", function()
    local one = candidate "one"
    wins(one)
    is_refreshed_while_set_back(one, 2 * TTL)
    is_doubted(candidate "two":claim())
  end)

  it("is sat out by who comes anew and has asked for another election first", function()
    local one, other = candidate "one", candidate("one", { lock = "other" })
    wins(one)
    wins(other)
    is_refreshed_while_set_back(one, HOUR)
    local way = redis_lease.valve(server)
    ways[#ways + 1] = way
    assert.equal("granted", redis_lease.candidate(way.url, "two", { ttl = TTL, lock = "third" }):claim()[1])
    is_doubted(redis_lease.candidate(way.url, "two", { ttl = TTL }):claim())
  end)

  it("is sat out where somebody who came then has waited for no longer than a lease lasts", function()
    local one, two = candidate("one", BRIEF), candidate("two", BRIEF)
    wins(one)
    assert.equal("denied", two:claim()[1])
    clock:set(-HOUR)
    local three = candidate("three", BRIEF)
    local verdict = three:claim()
    assert.same({ "denied", true }, { verdict[1], verdict[2] <= BRIEF.ttl + MILLISECOND })
    assert.equal(1, counted())
    eventually(function() return three:claim()[1] == "granted" end, 10) -- and does not doubt what it counted itself
    clock:set(0)
    is_doubted(two:claim(), BRIEF.ttl)
    is_doubted(candidate("four", BRIEF):claim(), BRIEF.ttl)
  end)

  it("is sat out where that lease was shortened, and its leader acts on", function()
    local one = candidate "one"
    wins(one)
    clock:set(-HOUR)
    assert.equal("denied", candidate "two":claim()[1])
    clock:set(0)
    is_doubted(candidate "three":claim())
  end)

  it("is believed by who comes anew where the last leader has left in order", function()
    local one = candidate "one"
    wins(one)
    clock:set(-HOUR)
    one:refresh()
    one:abdicate()
    clock:set(0)
    wins(candidate "two")
  end)

  it("is sat out for no longer than a lease lasts", function()
    local one, two = candidate("one", BRIEF), candidate("two", BRIEF)
    wins(one)
    server:call("HSET", "crown:store", "behind", ("%d"):format(HOUR * 1000)) -- as if it had been set back before, too
    clock:set(-HOUR)
    assert.equal("granted", one:refresh()[1])
    clock:set(0)
    local at = crown.now()
    is_doubted(two:claim(), BRIEF.ttl)
    eventually(function() return two:claim()[1] == "granted" end, 10)
    assert.is_true(crown.now() - at > BRIEF.ttl / 2)
  end)

  it("is sat out where only who came anew has used it while it was set back", function()
    local one = candidate "one"
    wins(one)
    one:abdicate()
    clock:set(-HOUR)
    wins(candidate "two")
    assert.equal(1, counted())
    assert.equal("denied", candidate "three":claim()[1])
    assert.equal(1, counted())
    clock:set(0)
    is_doubted(candidate "four":claim())
  end)

  it("is sat out where nobody had used it for longer than a lease lasts before it was set back", function()
    local one = candidate "one"
    wins(one)
    one:abdicate()
    clock:set(-HOUR)
    wins(candidate "two")
    clock:set(3 * TTL) -- as if that time had passed before it was set back
    is_doubted(candidate "three":claim())
  end)

  it("is sat out where it was set back to before the last refresh, and after the claim", function()
    local one = candidate "one"
    wins(one)
    local at = crown.now()
    eventually(function() return crown.now() > at + 4 end)
    assert.equal("granted", one:refresh()[1])
    server:call("DEL", redis_lease.key "lease", redis_lease.key "held") -- as if its time were over
    clock:set(-3)
    wins(candidate "two")
    assert.equal(1, counted())
  end)

  it("is counted once where who finds it is given no lease", function()
    local one = candidate "one"
    wins(one)
    one:abdicate()
    clock:set(-HOUR)
    server:call("HSET", "crown:store", "since", server:call("TIME")[1] .. "000") -- as if it were doubted
    for _, node in ipairs { "two", "three" } do is_doubted(candidate(node):claim()) end
    assert.equal(1, counted())
  end)

  it("is counted once in a call, however many leases are found to last for too long", function()
    local one, other = candidate "one", candidate("one", { lock = "other" })
    wins(one)
    wins(other)
    server:call("HDEL", "crown:store", "seen") -- as if a version that does not keep it had written there
    clock:set(-HOUR)
    local way = redis_lease.valve(server)
    ways[#ways + 1] = way
    local verdicts = {}
    for i, lock in ipairs { "other", redis_lease.name() } do
      local player = redis_lease.candidate(way.url, "two", { ttl = TTL, lock = lock })
      crown.spawn(function() verdicts[i] = player:claim()[1] end)
    end
    eventually(function() return verdicts[1] and verdicts[2] end, 20)
    assert.same({ "denied", "denied" }, verdicts)
    assert.equal(1, counted())
  end)

  it("is behind by no less for a lease that has no end", function()
    local one = candidate "one"
    wins(one)
    server:call("HSET", "crown:store", "behind", "1000")
    assert.equal("granted", one:refresh()[1])
    server:call("PERSIST", redis_lease.key "lease")
    assert.equal("denied", candidate "two":claim()[1])
    assert.is_true(tonumber(server:call("HGET", "crown:store", "behind")) >= 1000)
  end)

  it("is sat out where it was put right too far", function()
    local one = candidate "one"
    wins(one)
    clock:set(-TTL)
    assert.equal("granted", one:refresh()[1])
    clock:set(HOUR)
    is_doubted(candidate "two":claim())
  end)

  it("is believed by who comes anew where the lease ended a day longer ago than it was set back", function()
    local one = candidate "one"
    wins(one)
    clock:set(-HOUR)
    one:refresh()
    clock:set(24 * HOUR + TTL + 1)
    wins(candidate "two")
  end)
end)
