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
    local function candidate(node, lock, url, token)
      made = made + 1
      url = url or ("%s?application_name=%s%d"):format(server.url, node, made)
      local player = Player.new(lease, { name = lock or "put-right", node = node, ttl = TTL, amnesia_wait = 0, url = url,
        token = token })
      player.url = url
      return player
    end

    local function wins(player)
      local verdict = player:claim()
      assert.equal("granted", verdict[1], verdict[2])
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
      server:sql "UPDATE crown_store_v1 SET seen = 'epoch'" -- as if nobody had kept the time
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
      server:sql "UPDATE crown_lease_v1 SET expires_at = clock_timestamp()" -- as if two's time were over by that clock
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

    it("is sat out by who comes anew before the lease ends too early", function()
      local one = candidate "one"
      wins(one)
      clock:set(-TTL / 2)
      for _ = 1, 2 do one:refresh() end
      clock:set(0)
      local two = candidate "two"
      local verdict = two:claim()
      assert.same({ "denied", "one" }, { verdict[1], verdict[3] })
      assert.is_true(verdict[2] < 0.6 * TTL)
      server:sql "UPDATE crown_lease_v1 SET expires_at = clock_timestamp()" -- as if that time had passed
      verdict = two:claim()
      assert.same({ "denied", true }, { verdict[1], verdict[5] })
      assert.is_true(verdict[2] > 0.4 * TTL and verdict[2] <= TTL / 2, verdict[2])
    end)

    it("is believed by who comes anew where the last leader has left in order", function()
      local one = candidate "one"
      wins(one)
      clock:set(-HOUR)
      for _ = 1, 2 do one:refresh() end
      one:abdicate()
      wins(candidate "two")
    end)

    it("is believed by the next runtime of who leads", function()
      local one = candidate("one", nil, nil, "same")
      wins(one)
      clock:set(-HOUR)
      for _ = 1, 2 do one:refresh() end
      local next = candidate("one", nil, nil, "same")
      next.state.number = one.state.number
      wins(next)
    end)

    it("is doubted by who came anew, and hears of another step", function()
      local one, two = candidate "one", candidate "two"
      wins(one)
      clock:set(-HOUR)
      for _ = 1, 2 do one:refresh() end
      clock:set(0)
      assert.equal("denied", two:claim()[1])
      server:sql "UPDATE crown_store_v1 SET set_back = set_back + 1"
      is_doubted(candidate("two", "new", two.url):claim())
    end)

    it("is sat out by who had only connected when it was stepped forward", function()
      local one, two = candidate "one", candidate "two"
      wins(one)
      assert(two.state.leases.client.bare:ready(5))
      clock:set(HOUR)
      is_doubted(two:claim())
    end)

    -- Somebody has led something else before; nobody who asks later has asked then.
    local function used_before()
      local one = candidate("one", "other")
      wins(one)
      return one
    end

    it("is sat out where only who came anew has used it while it was set back", function()
      used_before()
      clock:set(-HOUR)
      wins(candidate "two")
      assert.equal(1, counted "lease")
      assert.equal("denied", candidate "three":claim()[1])
      assert.equal(1, counted "lease")
      clock:set(0)
      is_doubted(candidate "four":claim())
    end)

    it("is sat out where that was less than a lease lasts", function()
      used_before()
      clock:set(-TTL / 2)
      wins(candidate "two")
      clock:set(0)
      server:sql "UPDATE crown_lease_v1 SET expires_at = clock_timestamp()" -- as if two's time were over by that clock
      is_doubted(candidate "three":claim())
    end)

    it("is sat out by who was there before, and has not asked while only who came anew did", function()
      local one = used_before()
      clock:set(-HOUR)
      wins(candidate "two")
      clock:set(0)
      is_doubted(candidate("one", nil, one.url):claim())
      assert.equal("granted", one:refresh()[1])
    end)

    it("is sat out where nobody had used it for a while before it was set back", function()
      used_before()
      server:sql "UPDATE crown_store_v1 SET seen = clock_timestamp() - interval '20 min'" -- as if that were how long ago it was
      clock:set(-HOUR)
      wins(candidate "two")
      clock:set(0)
      is_doubted(candidate "three":claim())
    end)

    it("is sat out where it is set back once more, by less", function()
      used_before()
      clock:set(-HOUR)
      local two = candidate "two"
      wins(two)
      two:abdicate()
      clock:set(-HOUR - TTL / 2)
      wins(candidate("three", "new"))
      assert.equal(2, counted "lease")
    end)

    it("is known by the time of the last refresh, not just of the claim", function()
      local one = used_before()
      local before = crown.now()
      eventually(function() return crown.now() > before + 1 end)
      assert.equal("granted", one:refresh()[1])
      clock:set(-0.5)
      wins(candidate "two")
      assert.equal(1, counted "lease")
    end)

    it("is counted once by who comes anew, also where a lease is found to last for too long", function()
      wins(candidate "one")
      clock:set(-HOUR)
      assert.equal("denied", candidate "two":claim()[1])
      assert.equal(1, counted "lease")
    end)

    it("is counted where a lease is found to last for too long, and nobody has kept the time", function()
      wins(candidate "one")
      server:sql "UPDATE crown_store_v1 SET seen = 'epoch'" -- as if a version that does not keep it had written there
      clock:set(-HOUR)
      assert.equal("denied", candidate "two":claim()[1])
      assert.equal(1, counted "lease")
      clock:set(0)
      is_doubted(candidate "three":claim())
    end)

    it("is sat out by who comes anew, whatever nonsense somebody has written there", function()
      for _, nonsense in ipairs { "Infinity", "NaN", "1e300" } do
        local one = candidate "one"
        wins(one)
        server:sql "UPDATE crown_lease_v1 SET expires_at = clock_timestamp()"
        server:sql("UPDATE crown_store_v1 SET behind = $1::float8, seen = 'infinity'", nonsense)
        is_doubted(candidate "two":claim())
        server:empty()
      end
    end)

    it("keeps the time without a wait for who writes there", function()
      local one = candidate "one"
      wins(one)
      server:sql "UPDATE crown_store_v1 SET seen = 'epoch'"
      local other = server:admin()
      assert(other:query "BEGIN")
      assert(other:query "SELECT FROM crown_store_v1 FOR UPDATE")
      local verdicts = { one:refresh()[1], candidate("two", "new"):claim()[1] }
      assert(other:query "COMMIT")
      other:close()
      assert.same({ "granted", "granted" }, verdicts)
    end)

    it("is led by where statements fail that write what others have written since they began", function()
      server:sql "ALTER DATABASE crown SET default_transaction_isolation = 'repeatable read'"
      local all, refreshed = {}, 0
      for i = 1, 4 do
        all[i] = candidate("one", "many" .. i)
        wins(all[i])
      end
      for _ = 1, 100 do
        server:sql "UPDATE crown_store_v1 SET seen = 'epoch'" -- as if none had written there lately
        for _, one in ipairs(all) do
          crown.spawn(function() if one:refresh()[1] == "granted" then refreshed = refreshed + 1 end end)
        end
      end
      local done = pcall(eventually, function() return refreshed == 400 end, 20)
      server:sql "ALTER DATABASE crown RESET default_transaction_isolation"
      assert.is_true(done, refreshed)
    end)

    -- As version 0.1.0 made it, with what it has written there.
    local function has_older_table()
      server:sql "CREATE TABLE older AS SELECT part, identity, trusted_at, longest_ttl, epoch_floor FROM crown_store_v1"
      server:sql "DROP TABLE crown_store_v1"
      server:sql "ALTER TABLE older RENAME TO crown_store_v1"
      server:sql "ALTER TABLE crown_store_v1 ADD PRIMARY KEY (part), OWNER TO crown"
    end

    it("is counted in tables that a version before made, too, which are believed", function()
      wins(candidate "one")
      has_older_table()
      wins(candidate("two", "new"))
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
