-- A Postgres whose clock was set back, or in whose place came a standby with a clock that is behind: what ends by that clock ends
-- hours late by it. Nobody has more left than the longest TTL, so nobody is waited for longer (R7, R14).
local eventually = require("crown.testing").eventually
local lease = require "crown.oracles.postgres_lease"
local Player = require "support.oracle_candidate"
local Players = require "support.advisory_players"
local Postgres = require "support.postgres"
local WrongClock = require "support.wrong_clock"

local HOUR = 3600
local TTL = 2

describe("a Postgres whose clock was set back", function()
  local clock, server, players

  before_each(function()
    clock = WrongClock.new(0)
    server, players = Postgres.start { clock = clock }, Players.new()
  end)
  after_each(function()
    players:close()
    server:destroy()
  end)

  local function candidate(node, more)
    local options = { name = "back", node = node, url = server.url .. "?application_name=" .. node, ttl = TTL, amnesia_wait = 0 }
    for key, value in pairs(more or {}) do options[key] = value end
    return Player.new(lease, options)
  end

  -- Has tables that are believed, as if they had been there for long.
  local function trusted()
    candidate "first":claim()
    server:sql "UPDATE crown_store_v1 SET trusted_at = 'epoch'"
  end

  local function wins(player)
    local verdict
    eventually(function() verdict = player:claim() return verdict[1] == "granted" end, 5 * TTL)
    return verdict[4]
  end

  it("is waited for no longer than a lease lasts, where the leader died", function()
    local one, two = candidate "one", candidate "two"
    trusted()
    local epoch = wins(one)
    clock:set(-HOUR)
    local verdict = two:claim()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[2] > TTL / 2 and verdict[2] <= TTL)
    assert.is_true(wins(two) > epoch)
    assert.equal("denied", one:refresh()[1])
  end)

  it("is waited for no longer than that, where the leader has left in order", function()
    local one, two = candidate "one", candidate "two"
    trusted()
    wins(one)
    one:abdicate()
    clock:set(-HOUR)
    wins(two)
  end)

  it("is waited for amnesia_wait at least: nobody has a longer TTL, also where the store has forgotten which it is", function()
    local one, two = candidate("one", { ttl = 20, amnesia_wait = 30 }), candidate("two", { amnesia_wait = 30 })
    one:claim()
    server:sql "UPDATE crown_store_v1 SET trusted_at = 'epoch'"
    wins(one)
    server:sql "UPDATE crown_store_v1 SET longest_ttl = 2"
    assert.is_true(two:claim()[2] > 15)
    clock:set(-HOUR)
    local verdict = two:claim()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[2] > 25 and verdict[2] <= 30)
  end)

  it("leaves another program's lease as it is: how long that is nobody knows", function()
    local one = candidate "one"
    trusted()
    wins(one)
    one:abdicate()
    server:sql("UPDATE crown_lease_v1 SET holder = 'elixir@host', expires_at = clock_timestamp() + interval '100 s'")
    local verdict = candidate "two":claim()
    assert.equal("denied", verdict[1])
    assert.is_true(server:sql("SELECT extract(epoch FROM expires_at - clock_timestamp())::float8 AS left FROM crown_lease_v1")[1].left > 90)
  end)

  it("is sat out no longer than the longest TTL where it was doubted before that", function()
    local one, two = candidate "one", candidate "two"
    trusted()
    wins(one)
    clock:set(HOUR)
    one:refresh() -- finds that, and notes the doubt
    one:abdicate()
    clock:set(0)
    local verdict = two:claim()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[2] < TTL + 1)
    wins(two)
  end)

  it("is waited for no longer than a lease lasts by the advisory lock either", function()
    local options = { ttl = TTL, amnesia_wait = 0 }
    local one, two = players:add(server.url, "one", options), players:add(server.url, "two", options)
    eventually(function() return one:claim()[1] == "granted" end, 5 * TTL)
    assert.equal("denied", two:claim()[1])
    clock:set(-HOUR)
    server:sql("SELECT pg_terminate_backend($1::int)", one.state.session.bare:server_pid())
    eventually(function() return two:message() == "locked" end)
    local verdict = two:call("handle_info", "locked")
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[2] > 0 and verdict[2] <= TTL)
    eventually(function() return two:claim()[1] == "granted" end, 5 * TTL)
  end)
end)
