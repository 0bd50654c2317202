-- A Postgres whose clock was set back, and put right before a follower asks again: what was promised meanwhile ends too early by it.
-- Who made such a promise has counted the step in the store, and who knows another count waits for a TTL (R12, R14).
local clocked_postgres = require "support.clocked_postgres"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Players = require "support.advisory_players"

local HOUR = 3600
local TTL = 20

describe("a Postgres whose clock was set back and put right", function()
  local clock, server, players

  clocked_postgres(function(...) server, clock = ... end)
  before_each(function() players = Players.new() end)
  after_each(function() players:close() end)

  local function is_doubted(verdict)
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] > TTL / 2 and verdict[2] < 2 * TTL, verdict[2])
  end

  local function counted(part)
    return server:sql("SELECT set_back FROM crown_store_v1 WHERE part = $1", part)[1].set_back
  end

  describe("under the advisory lock", function()
    local function candidate(node) return players:add(server.url, node, { ttl = TTL, amnesia_wait = 0 }) end

    local function leader_and_follower()
      local one, two = candidate "one", candidate "two"
      assert.equal("granted", one:claim()[1])
      assert.equal("denied", two:claim()[1])
      return one, two
    end

    local function end_session(player)
      server:sql("SELECT pg_terminate_backend($1::int)", player.state.session.bare:server_pid())
    end

    -- A step of the clock may end the statement that waits for the lock by its time-out: then its candidate asks again.
    local function is_given_the_lock(player)
      local message
      eventually(function()
        message = player:message()
        return message == "locked" or message == "again"
      end)
      return player:call("handle_info", message)
    end

    it("is sat out by who is given the lock, where the leader has looked by it", function()
      local one, two = leader_and_follower()
      clock:set(-HOUR)
      assert.equal("granted", one:refresh()[1])
      assert.equal(1, counted "advisory")
      clock:set(0)
      end_session(one) -- which does not hear of it where it is cut off
      is_doubted(is_given_the_lock(two))
      is_doubted(candidate "three":claim())
    end)

    it("is sat out where somebody has won by it", function()
      local one, two = leader_and_follower()
      local three = candidate "three"
      assert.equal("denied", three:claim()[1])
      end_session(two)
      clock:set(-HOUR)
      one:abdicate()
      assert.equal("granted", is_given_the_lock(three)[1])
      assert.equal(1, counted "advisory")
    end)

    it("is sat out by who comes anew, and has no count to compare", function()
      local one = candidate "one"
      assert.equal("granted", one:claim()[1])
      clock:set(-HOUR)
      one:refresh()
      clock:set(0)
      end_session(one)
      is_doubted(candidate "two":claim())
    end)

    it("is sat out where only who came anew has used it while it was set back", function()
      local one = players:add(server.url, "one", { name = "other", ttl = TTL, amnesia_wait = 0 })
      assert.equal("granted", one:claim()[1])
      clock:set(-HOUR)
      local two = candidate "two"
      assert.equal("granted", two:claim()[1])
      assert.equal(1, counted "advisory")
      clock:set(0)
      end_session(two)
      is_doubted(candidate "three":claim())
    end)

    it("is sat out by who comes anew before the last leader's time ends too early", function()
      local one = candidate "one"
      assert.equal("granted", one:claim()[1])
      clock:set(-TTL / 2)
      assert.equal("granted", one:refresh()[1])
      clock:set(0)
      local two = candidate "two"
      assert.equal("denied", two:claim()[1])
      server:sql "UPDATE crown_advisory_v1 SET acting_until = clock_timestamp()" -- as if that time had passed
      end_session(one)
      local verdict = is_given_the_lock(two)
      assert.same({ "denied", true }, { verdict[1], verdict[5] })
      assert.is_true(verdict[2] > 0.4 * TTL and verdict[2] <= TTL / 2, verdict[2])
    end)

    it("is believed by who comes anew where the last leader has left in order", function()
      local one = candidate "one"
      assert.equal("granted", one:claim()[1])
      clock:set(-HOUR)
      assert.equal("granted", one:refresh()[1])
      one:abdicate()
      assert.equal("granted", candidate "two":claim()[1])
    end)

    it("is known by the time of the last refresh, not just of the win", function()
      local one = players:add(server.url, "one", { name = "other", ttl = TTL, amnesia_wait = 0 })
      assert.equal("granted", one:claim()[1])
      local before = crown.now()
      eventually(function() return crown.now() > before + 1 end)
      assert.equal("granted", one:refresh()[1])
      clock:set(-0.5)
      assert.equal("granted", candidate "two":claim()[1])
      assert.equal(1, counted "advisory")
    end)

    it("is counted where somebody who came then waits for no longer than a lease lasts", function()
      local one = leader_and_follower()
      clock:set(-HOUR)
      end_session(one)
      assert.equal("denied", candidate "three":claim()[1])
      assert.equal(1, counted "advisory")
    end)
  end)
end)
