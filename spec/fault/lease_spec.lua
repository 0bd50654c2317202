-- Promises 1, 2, 3 and 5 on a lease with a TTL of 2 s, over a real server.
local Cluster = require "support.cluster"
local eventually = require("crown.testing").eventually
local ticks = require "support.ticks"

describe("a leader on a lease", function()
  local cluster

  after_each(function() cluster:finish() end)

  -- To whom; or to any of the two.
  local function fails_over(mode, to, hurt, ttl)
    cluster = Cluster.new { oracle = "lease", mode = mode, ttl = ttl or 2 }
    local leader, _, term = cluster:pair()
    hurt(leader)
    cluster:succeed(term.epoch, 15, to)
    return leader
  end

  for _, mode in ipairs { "plain", "daemon", "stubborn" } do
    describe("with a child of mode " .. mode, function()
      it("hands over in order on SIGTERM (R5: stop, reap, release)", function()
        local leader = fails_over(mode, "two", function(one) one:signal "TERM" end)
        assert.equal(0, leader:wait(10))
      end)

      it("takes its own lease again when its runtime is killed (K5)", function()
        fails_over(mode, "one", function(one) one:hurt("KILL", "runtime") end, 20)
      end)

      it("leaves no overlap when its runtime is stopped (K6)", function()
        fails_over(mode, nil, function(one) one:hurt("STOP", "runtime") end)
      end)

      it("leaves no overlap when supervisor and runtime are stopped: the keeper acts alone (K1)", function()
        fails_over(mode, "two", function(one) one:hurt("STOP", "supervise", "runtime") end)
      end)

      it("leaves no overlap when supervisor, runtime and keeper are stopped: the kernel acts", function()
        fails_over(mode, "two", function(one) one:hurt("STOP", "supervise", "runtime", "keeper") end)
      end)

      it("leaves no overlap when supervisor, runtime and keeper are killed at once", function()
        fails_over(mode, "two", function(one) one:hurt("KILL", "supervise", "runtime", "keeper") end)
      end)
    end)
  end

  it("steps down in time when the server is gone, and leads again when it is back (R6, R19)", function()
    cluster = Cluster.new { oracle = "lease", ttl = 2 }
    local leader = cluster:pair()
    cluster.server:hurt("KILL", "supervise", "runtime")
    cluster.server:wait(5)
    eventually(function() return #ticks.alive(cluster.ticks) == 0 end, 5)
    eventually(function() return leader:output():find "reason=expired" end, 20) -- its keeper does not wait until that is said
    local lives = #ticks.lives(cluster.ticks)
    cluster:start_server(cluster.port)
    eventually(function() return #ticks.lives(cluster.ticks) > lives end, 15)
    ticks.settle(cluster.ticks)
  end)
end)
