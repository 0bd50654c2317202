-- A Postgres whose clock is stepped forward: until when a leader by an advisory lock acts is a time on that clock.
local clocked_postgres = require "support.clocked_postgres"
local eventually = require("crown.testing").eventually
local Players = require "support.advisory_players"

describe("the advisory lock on a Postgres whose clock is stepped forward (R12, R14)", function()
  local clock, server, players

  clocked_postgres(function(...) server, clock = ... end)
  before_each(function() players = Players.new() end)
  after_each(function() players:close() end)

  local function candidate(node, ttl) return players:add(server.url, node, { ttl = ttl or 20 }) end

  -- Of two, the first leads. @return both, and the epoch
  local function leader_and_follower(ttl)
    local one, two = candidate("one", ttl), candidate("two", ttl)
    local verdict = one:claim()
    assert.equal("granted", verdict[1])
    assert.equal("denied", two:claim()[1])
    return one, two, verdict[4]
  end

  local function is_given_the_lock(player)
    eventually(function() return player:message() == "locked" end)
  end

  local function end_session(player)
    server:sql("SELECT pg_terminate_backend($1::int)", player.state.session.bare:server_pid())
  end

  local function is_doubted(verdict)
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] > 15)
  end

  it("is sat out by who is given the lock, and by who comes later", function()
    local one, two = leader_and_follower()
    clock:set(3600)
    end_session(one) -- which does not hear of it where it is cut off
    is_given_the_lock(two)
    is_doubted(two:call("handle_info", "locked"))
    is_doubted(two:claim())
    is_doubted(candidate "three":claim())
  end)

  it("is sat out by who takes the lock that nobody has", function()
    local one, two = leader_and_follower()
    one:abdicate()
    is_given_the_lock(two)
    clock:set(3600)
    is_doubted(two:call("handle_info", "locked"))
  end)

  it("is sat out where that happens between the look and the win", function()
    local one, two = leader_and_follower()
    one:abdicate()
    is_given_the_lock(two)
    local session = two.state.session
    local win = session.win
    function session.win(...)
      clock:set(3600)
      return win(...)
    end
    is_doubted(two:call("handle_info", "locked"))
  end)

  it("ends no session of a leader who leads on", function()
    local one, two, epoch = leader_and_follower(6)
    local function waits_since()
      return server:sql([[SELECT query_start::text AS since FROM pg_stat_activity WHERE pid = $1::int
        AND query LIKE '%pg_advisory_lock%']], two.state.session.bare:server_pid())[1]
    end
    local first = eventually(waits_since).since
    clock:set(3600)
    eventually(function()
      local now = waits_since()
      return now and now.since ~= first
    end, 20)
    local verdict = one:refresh()
    assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
  end)

  it("is led anew when that is over", function()
    local one, two, epoch = leader_and_follower(2)
    clock:set(3600)
    end_session(one)
    local verdict
    eventually(function()
      two:message()
      verdict = two:claim()
      return verdict[1] == "granted"
    end, 20)
    assert.is_true(verdict[4] > epoch)
  end)
end)
