-- Promise 1 on a real Postgres, for the lease and for the advisory lock: whatever happens to the leader, to its connection
-- or to the server, its child's tree is dead before another one leads.
local Cluster = require "support.cluster"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local Proxy = require "support.proxy"
local ticks = require "support.ticks"

local ALL = { "supervise", "runtime", "keeper", "warden" }

local server = Postgres.start()

local function suite(title, scheme)
  describe(title, function()
    local cluster, proxy
    local url = server.url:gsub("^postgres", scheme)

    before_each(function()
      server:sql "DROP TABLE IF EXISTS crown_lease_v1, crown_advisory_v1, crown_store_v1"
      cluster = Cluster.new { url = url, ttl = 2 }
    end)
    after_each(function()
      cluster:destroy()
      if proxy then proxy:destroy() end
      proxy = nil
    end)

    local function fails_over(hurt, leaders_url)
      local leader, follower, term = cluster:pair(leaders_url)
      hurt(leader)
      local next_term = ticks.await(cluster.ticks, term.epoch, 20)
      assert.equal(0, ticks.overlap(cluster.ticks))
      return next_term, leader, follower
    end

    it("hands over in order on SIGTERM", function()
      local term, leader = fails_over(function(one) one:signal "TERM" end)
      assert.equal("two", term.node)
      assert.equal(0, leader:wait(10))
    end)

    it("leaves no overlap when the runtime is killed", function()
      fails_over(function(one) one:hurt("KILL", "runtime") end)
    end)

    it("leaves no overlap when the runtime is stopped", function()
      fails_over(function(one) one:hurt("STOP", "runtime") end)
    end)

    it("leaves no overlap when everything but the child is killed", function()
      local term = fails_over(function(one) one:hurt("KILL", unpack(ALL)) end)
      assert.equal("two", term.node)
    end)

    it("leaves no overlap when the leader is cut off without a reset", function()
      proxy = Proxy.start(server.port)
      local through = url:gsub(":" .. server.port, ":" .. proxy.port)
      local term, leader = fails_over(function() proxy:freeze() end, through)
      assert.equal("two", term.node)
      eventually(function() return #leader:pids "child" == 0 end)
    end)

    it("leaves no overlap when the leader is cut off with a reset, and the way stays closed", function()
      proxy = Proxy.start(server.port)
      local through = url:gsub(":" .. server.port, ":" .. proxy.port)
      local term = fails_over(function() proxy:signal(9) end, through)
      assert.equal("two", term.node)
    end)

    it("leaves no overlap when the server ends the leader's session, again and again", function()
      local leader, _, term = cluster:pair()
      for _ = 1, 5 do
        server:sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crown'"
        crown.sleep(0.3) -- between two faults, not for a result
      end
      leader:signal "TERM"
      ticks.await(cluster.ticks, term.epoch, 20)
      assert.equal(0, ticks.overlap(cluster.ticks))
    end)

    it("leaves no overlap when the server crashes and comes back, and leads on or anew", function()
      local leader, follower = cluster:pair()
      server:down "immediate"
      server:up()
      eventually(function()
        return #ticks.read(cluster.ticks) > 0 and #leader:pids "child" + #follower:pids "child" == 1
      end, 10)
      leader:signal "TERM"
      local last = ticks.await(cluster.ticks, ticks.terms(cluster.ticks)[1].epoch, 20)
      assert.is_true(last.epoch > 0)
      assert.equal(0, ticks.overlap(cluster.ticks))
    end)
  end)
end

suite("a leader by a lease in Postgres", "postgres")
suite("a leader by an advisory lock in Postgres", "postgres+advisory")

describe("the server of these specs", function()
  it("is stopped", function()
    server:destroy()
    assert.is_not_nil(server.process.code)
  end)
end)
