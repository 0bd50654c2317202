-- What refreshes the leases of a leader on Postgres, and gives them back: one statement for many, and no call of the oracle while
-- nothing has changed.
local crown = require "crown"
local Elections = require "support.elections"
local eventually = require("crown.testing").eventually
local lease = require "crown.oracles.postgres_lease"
local Player = require "support.oracle_candidate"
local Postgres = require "support.postgres"
local refreshed_together = require "support.refreshed"
local WrongClock = require "support.wrong_clock"

local server
local clock = WrongClock.new(0)

local function row(name, what)
  return server:sql(("SELECT %s FROM crown_lease_v1 WHERE lock_name = $1"):format(what), name)[1]
end

local function changes(what)
  return function(name) server:sql(("UPDATE crown_lease_v1 SET %s WHERE lock_name = $1"):format(what), name) end
end

refreshed_together("a leader's lease on Postgres", {
  oracle = lease, word = "postgres_lease",
  start = function() server = Postgres.start { clock = clock } end,
  url = function() return server.url end,
  ends_at = function(name) return row(name, "extract(epoch FROM expires_at)::float8 AS at").at end,
  is_free = function(name, epoch)
    local found = row(name, "expires_at <= clock_timestamp() AS free, epoch")
    return found.free and tonumber(found.epoch) == epoch
  end,
  evict = changes "evicted = TRUE",
  take = changes "holder = 'somebody#00-00', expires_at = clock_timestamp() + interval '1 minute'",
  reclaim = changes "claim = claim + 1",
  raise = changes "epoch = epoch + 5",
  freeze = function() server:freeze() end,
  thaw = function() server:thaw() end,
  more = function(it, leader, refreshed, _, calls)
    it("is as its own options say, whatever those of the election before it said", function()
      local function made(options)
        options.name, options.url = Elections.unique(), server.url
        return Player.new(lease, options).state
      end
      local first, plain, slow = made { ttl = 3, lock = "other-lease" }, made {}, made { refresh = 9 }
      assert.same({ 3, 30, 30 }, { first.ttl, plain.ttl, slow.ttl })
      assert.same({ 1, 10, 9 }, { first.delay, plain.delay, slow.delay })
      assert.equal("other-lease", first.name)
      assert.matches("^elect%-spec", plain.name)
      assert.are_not.equal(plain.name, slow.name)
    end)

    local function claimed(states)
      local delays, count = {}, 0
      for i, state in ipairs(states) do
        crown.spawn(function()
          delays[i], count = select(2, state.module.claim(state.state)), count + 1
        end)
      end
      eventually(function() return count == #states end, 20)
      return delays
    end

    it("is refreshed with those that were won with it, and not with others", function()
      local candidates = {}
      for i = 1, 4 do candidates[i] = Player.new(lease, { name = Elections.unique(), url = server.url, ttl = 30 }) end
      local before = claimed { candidates[1] }[1] -- also connects
      local first, second, third = unpack(claimed { candidates[2], candidates[3], candidates[4] })
      assert.is_true(first >= 1 and first <= 10)
      assert.same({ first, first }, { second, third })
      assert.are_not.equal(first, before)
      for _, one in ipairs(candidates) do one:abdicate() end
    end)

    -- A change of the row that is not committed yet when a statement of the leader's begins.
    local function while_changed(name, statement)
      local other = server:admin "crown"
      assert(other:query "BEGIN")
      assert(other:query("UPDATE crown_lease_v1 SET holder = holder WHERE lock_name = $1", name))
      statement()
      eventually(function()
        return server:sql("SELECT count(*) AS count FROM pg_stat_activity WHERE wait_event_type = 'Lock'")[1].count > 0
      end, 20)
      assert(other:query "COMMIT")
      other:close()
    end

    it("is kept where somebody changed its row as it was refreshed", function()
      local election = leader(6)
      while_changed(election.name, function() end)
      refreshed(2)
      assert.is_true(election:is_leader())
    end)

    it("is given back where somebody changed its row meanwhile", function()
      local election = leader(30)
      while_changed(election.name, function() election:stop() end)
      eventually(function() return row(election.name, "expires_at <= clock_timestamp() AS free").free end, 20)
    end)

    it("has room for its next version beside it", function()
      local options = server:sql("SELECT reloptions::text AS options FROM pg_class WHERE relname = 'crown_lease_v1'")[1].options
      assert.equal("{fillfactor=50}", options)
    end)

    it("is refreshed by the oracle, which writes that down, when the server's clock was stepped forward", function()
      leader()
      refreshed(1)
      clock:set(7200)
      eventually(function() return calls() > 0 end, 20)
      eventually(function() return server:sql("SELECT trusted_at > clock_timestamp() AS doubted FROM crown_store_v1")[1].doubted end, 20)
    end)
  end,
})

teardown(function() server:destroy() end)
