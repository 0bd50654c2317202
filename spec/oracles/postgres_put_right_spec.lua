-- A Postgres whose clock was set back, and put right before a follower asks again: what was promised meanwhile ends too early by it.
-- Who made such a promise has counted the step in the store, and who knows another count waits for a TTL (R12, R14).
local clocked_postgres = require "support.clocked_postgres"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local lease = require "crown.oracles.postgres_lease"
local Player = require "support.oracle_candidate"
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

  describe("under leases", function()
    local made = 0

    -- Each is a runtime of its own: they share nothing.
    local function candidate(node)
      made = made + 1
      return Player.new(lease, { name = "put-right", node = node, ttl = TTL, amnesia_wait = 0,
        url = ("%s?application_name=%s%d"):format(server.url, node, made) })
    end

    local function wins(player)
      local verdict = player:claim()
      assert.equal("granted", verdict[1])
      return verdict[4]
    end

    local function ends_at()
      return server:sql("SELECT extract(epoch FROM expires_at)::float8 AS at FROM crown_lease_v1")[1].at
    end

    local function leader_and_follower()
      local one, two = candidate "one", candidate "two"
      wins(one)
      assert.equal("denied", two:claim()[1])
      return one, two
    end

    it("is sat out by who has not seen that, where the leader has refreshed by it", function()
      local one, two = leader_and_follower()
      clock:set(-HOUR)
      for _ = 1, 2 do assert.equal("granted", one:refresh()[1]) end
      clock:set(0)
      assert.is_true(ends_at() < os.time())
      is_doubted(two:claim())
      assert.equal("granted", one:refresh()[1])
    end)

    it("is sat out however little it was set back, not just where a lease ends earlier than before", function()
      local one, two = leader_and_follower()
      local began, before = crown.now(), ends_at()
      eventually(function() return crown.now() > began + 0.5 end)
      clock:set(-0.3)
      assert.equal("granted", one:refresh()[1])
      assert.is_true(ends_at() > before)
      assert.equal(1, counted "lease")
      clock:set(0)
      is_doubted(two:claim())
    end)

    it("is sat out where somebody has won by it", function()
      local one, two = leader_and_follower()
      local three = candidate "three"
      three:claim()
      one:abdicate()
      clock:set(-1)
      eventually(function() return three:claim()[1] == "granted" end)
      clock:set(0)
      server:sql "UPDATE crown_lease_v1 SET expires_at = clock_timestamp()" -- as if three's time were over by that clock
      is_doubted(two:claim())
    end)

    it("is sat out where somebody who came then has waited for no longer than a lease lasts", function()
      local one, two = leader_and_follower()
      clock:set(-HOUR)
      local three = candidate "three"
      assert.equal("denied", three:claim()[1]) -- shortens it
      server:sql "UPDATE crown_lease_v1 SET expires_at = clock_timestamp()" -- as if that time had passed
      wins(three) -- and does not doubt what it counted itself
      clock:set(0)
      assert.is_true(ends_at() < os.time())
      is_doubted(two:claim())
      assert.equal("denied", one:refresh()[1])
    end)

    it("is waited for no longer than that while it is behind, whatever the row says", function()
      local one, two = leader_and_follower()
      clock:set(-HOUR)
      one:refresh() -- counts, and leaves the row's end as it was
      is_doubted(two:claim())
    end)

    it("is sat out once by who has seen it before, and by who comes anew where a lease may have ended too early", function()
      local one, two = leader_and_follower()
      clock:set(-HOUR)
      assert.equal("granted", one:refresh()[1])
      clock:set(0)
      is_doubted(two:claim())
      server:sql "UPDATE crown_store_v1 SET trusted_at = 'epoch'" -- as if that were over
      server:sql "UPDATE crown_lease_v1 SET expires_at = clock_timestamp()"
      wins(two)
      two:abdicate()
      is_doubted(candidate "three":claim())
      server:sql "UPDATE crown_lease_v1 SET expires_at = clock_timestamp() - interval '2 h'"
      wins(candidate "four")
    end)

    it("ends no lease earlier at the refresh that finds it: who claims right then may not see the count yet", function()
      local one = candidate "one"
      wins(one)
      local before = ends_at()
      clock:set(-HOUR)
      one:refresh()
      assert.equal(before, ends_at())
      one:refresh()
      assert.is_true(ends_at() < before - HOUR / 2)
    end)

    it("is counted once by each who finds it, and not where it only goes on", function()
      local one = candidate "one"
      wins(one)
      for _ = 1, 3 do one:refresh() end
      assert.equal(0, counted "lease")
      clock:set(-HOUR)
      for _ = 1, 3 do one:refresh() end
      assert.equal(1, counted "lease")
    end)

    it("is sat out by who comes anew, and has no count to compare", function()
      local one = candidate "one"
      wins(one)
      clock:set(-HOUR)
      for _ = 1, 2 do one:refresh() end
      clock:set(0)
      is_doubted(candidate "two":claim())
      assert.equal("granted", one:refresh()[1])
    end)

    it("is sat out by who had only connected when it was stepped forward", function()
      local one, two = candidate "one", candidate "two"
      wins(one)
      assert(two.state.leases.client.bare:ready(5))
      clock:set(HOUR)
      is_doubted(two:claim())
    end)

    it("is counted in tables that a version before made, too", function()
      wins(candidate "one")
      server:sql "ALTER TABLE crown_store_v1 DROP COLUMN set_back, DROP COLUMN behind"
      candidate "two":claim()
      assert.equal(0, counted "lease")
    end)
  end)

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

    local function is_given_the_lock(player)
      eventually(function() return player:message() == "locked" end)
      return player:call("handle_info", "locked")
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

    it("is counted where somebody who came then waits for no longer than a lease lasts", function()
      local one = leader_and_follower()
      clock:set(-HOUR)
      end_session(one)
      assert.equal("denied", candidate "three":claim()[1])
      assert.equal(1, counted "advisory")
    end)
  end)
end)
