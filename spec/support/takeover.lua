--- The faults that a leader must survive without a second one beside it, the same for every store.
local Cluster = require "support.cluster"
local eventually = require("crown.testing").eventually
local Proxy = require "support.proxy"
local ticks = require "support.ticks"
local WrongClock = require "support.wrong_clock"

-- busted's own, which a spec's environment has; this module's has not.
local assert = require "luassert"
local busted = require "busted"

local HOUR = 3600
local ALL = { "supervise", "runtime", "keeper", "warden" }

--- Describes them.
-- @string title
-- @tparam table store `url`, with the port `port`; `down()` as in a crash, `up()`; `drop()` ends the candidates' sessions
-- (optional); `reset()` before each case (optional); `clock` of support.wrong_clock that the server goes by (optional); `set_back`:
-- leases also end when that was set back (optional); `often`: what the URL ends with for a leader that refreshes often, where a
-- clock that was set back and put right again is promised to be noticed (optional); `ttl` (2);
-- `lasting`: the URL for a TTL, where that of `url` is fixed (optional)
return function(title, store)
  local describe, it = busted.describe, busted.it
  local before_each, after_each = busted.before_each, busted.after_each
  describe(title, function()
    local cluster, proxy

    before_each(function()
      if store.reset then store.reset() end
      cluster = Cluster.new { url = store.url, ttl = store.ttl or 2 }
    end)
    after_each(function()
      local fine, problem = pcall(cluster.finish, cluster)
      if proxy then proxy:destroy() end
      proxy = nil
      assert(fine, problem)
    end)

    -- To whom; or to any of the two.
    local function fails_over(to, hurt, leaders_url)
      local leader, _, term = cluster:pair(leaders_url)
      hurt(leader)
      cluster:succeed(term.epoch, 20, to)
      return leader
    end

    -- For a lease that has to hold, whatever else the machine does.
    local function lasts(ttl)
      cluster.options.ttl = ttl
      if store.lasting then cluster.options.url = store.lasting(ttl) end
    end

    local function through_proxy()
      proxy = Proxy.start(store.port)
      return (cluster.options.url:gsub(":" .. store.port, ":" .. proxy.port))
    end

    it("hands over in order on SIGTERM", function()
      local leader = fails_over("two", function(one) one:signal "TERM" end)
      assert.equal(0, leader:wait(10))
    end)

    it("leaves no overlap when the runtime is killed", function()
      fails_over(nil, function(one) one:hurt("KILL", "runtime") end)
    end)

    it("leaves no overlap when the runtime is stopped", function()
      fails_over(nil, function(one) one:hurt("STOP", "runtime") end)
    end)

    it("leaves no overlap when everything but the child is killed", function()
      fails_over("two", function(one) one:hurt("KILL", unpack(ALL)) end)
    end)

    it("leaves no overlap when the leader is cut off without a reset", function()
      local url = through_proxy()
      local leader = fails_over("two", function() proxy:freeze() end, url)
      eventually(function() return #leader:pids "child" == 0 end)
    end)

    it("goes on over a new connection when those that it has fall silent", function()
      local leader = cluster:join("one", through_proxy())
      ticks.await(cluster.ticks, 0, 10)
      local at = proxy:freeze_connections()
      eventually(function()
        local found = ticks.read(cluster.ticks)
        return found[#found].at > at + 2 * cluster.options.ttl -- by no lease of before
      end, 30)
      assert.is_nil(leader.code)
    end)

    it("leaves no overlap when the leader is cut off with a reset, and the way stays closed", function()
      local url = through_proxy()
      fails_over("two", function() proxy:signal "KILL" end, url)
    end)

    it("ends on SIGTERM while the server is silent, and the other one leads when the lease is over", function()
      local leader, _, term = cluster:pair(through_proxy())
      proxy:freeze()
      leader:signal "TERM"
      assert.equal(0, leader:wait(15))
      cluster:succeed(term.epoch, 20, "two")
    end)

    local function refreshes_twice(one)
      local _, refreshed = one:output():gsub("leadership.refreshed", "")
      eventually(function() return select(2, one:output():gsub("leadership.refreshed", "")) > refreshed + 1 end, 20)
    end

    it("leaves no overlap, and leads on, when wall clocks are hours apart and jump", function()
      local ahead, behind = WrongClock.new(3 * HOUR), WrongClock.new(-3 * HOUR)
      cluster.options.env = { one = ahead:environment(), two = behind:environment() }
      lasts(6)
      fails_over("two", function(one)
        for _, jump in ipairs { -5 * HOUR, 9 * HOUR } do
          ahead:set(jump)
          refreshes_twice(one)
          assert.is_true(ahead:has_written(one:output()))
        end
        assert.equal(1, #ticks.terms(cluster.ticks))
        one:hurt("KILL", unpack(ALL))
      end)
      assert.is_true(behind:has_written(cluster.members[2]:output()))
    end)

    if store.clock then
      for _, way in ipairs(store.set_back and { "forward", "back" } or { "forward" }) do
        it(("leaves no overlap when the server's clock is stepped %s while the leader is cut off"):format(way), function()
          local url = through_proxy()
          fails_over("two", function()
            proxy:freeze()
            store.clock:set(store.clock.seconds + (way == "back" and -HOUR or HOUR))
            if store.drop then store.drop() end
          end, url)
        end)
      end
    end

    if store.often then
      it("leaves no overlap when the server's clock is put right after a leader has refreshed by it, all between two questions", function()
        cluster.options.ttl = 6
        local right = store.clock.seconds
        fails_over("two", function(leader)
          store.clock:set(right - HOUR)
          refreshes_twice(leader)
          proxy:freeze()
          store.clock:set(right)
          if store.drop then store.drop() end
        end, through_proxy() .. store.often)
      end)

      it("leaves no overlap when the server's clock is put right, and nobody is left who knew it before it was set back", function()
        cluster.options.ttl = 6
        local right = store.clock.seconds
        local zero = cluster:join "zero"
        local before = ticks.await(cluster.ticks, 0, 20)
        zero:signal "TERM"
        assert.equal(0, zero:wait(10))
        store.clock:set(right - 5)
        local leader = cluster:join("one", through_proxy() .. store.often)
        local term = ticks.await(cluster.ticks, before.epoch, 20)
        refreshes_twice(leader)
        proxy:freeze()
        store.clock:set(right)
        if store.drop then store.drop() end
        cluster:join "two"
        cluster:succeed(term.epoch, 20, "two")
      end)
    end

    if store.drop then
      it("leaves no overlap when the server ends the leader's session, again and again", function()
        local leader, _, term = cluster:pair()
        for _ = 1, 5 do
          store.drop()
          local seen = #ticks.read(cluster.ticks)
          eventually(function() return #ticks.read(cluster.ticks) > seen + 100 end, 20) -- somebody works on
        end
        leader:signal "TERM"
        cluster:succeed(term.epoch, 20)
      end)
    end

    it("leaves no overlap when the server crashes and comes back, and leads on or anew", function()
      local leader, follower = cluster:pair()
      store.down()
      store.up()
      local seen = #ticks.read(cluster.ticks)
      eventually(function()
        return #ticks.read(cluster.ticks) > seen and #leader:pids "child" + #follower:pids "child" == 1
      end, 20)
      local terms = ticks.terms(cluster.ticks)
      local leads = #leader:pids "child" == 1 and leader or follower
      leads:signal "TERM"
      cluster:succeed(terms[#terms].epoch, 20)
    end)

    -- The last one: a store that has heard of a long lease sits out that long when it may have forgotten.
    it("ends on SIGTERM while the server is silent, as a follower", function()
      lasts(12)
      cluster:pair()
      local other = cluster:join("three", through_proxy())
      other:follows()
      proxy:freeze()
      other:signal "TERM"
      assert.equal(0, other:wait(15))
      assert.equal(1, #ticks.terms(cluster.ticks))
    end)
  end)
end
