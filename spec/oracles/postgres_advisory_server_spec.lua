-- What stands between a candidate and the server, where an advisory lock is not what it seems: a standby, a pooler.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local lease = require "crown.oracles.postgres_lease"
local Pgbouncer = require "support.pgbouncer"
local Player = require "support.oracle_candidate"
local Players = require "support.advisory_players"
local Postgres = require "support.postgres"
local run = require "support.run"

describe("the advisory lock oracle on Postgres", function()
  local server, name

  setup(function() server = Postgres.start { hba = "host all all 127.0.0.0/8 trust\nhost replication all 127.0.0.0/8 trust\n" } end)
  teardown(function() server:destroy() end)

  local players, candidate = Players.of_each_test(function() return server.url end)
  before_each(function() name = players.name end)

  describe("with a standby (the first way to two leaders)", function()
    local replica
    before_each(function() replica = server:replica() end)
    after_each(function() replica:destroy() end)

    it("shows the danger: the standby grants a lock that the primary has granted", function()
      local function try(one)
        return assert(one:admin():query "SELECT pg_try_advisory_lock(42) AS got")[1].got
      end
      assert.is_true(try(server))
      assert.is_true(try(replica))
    end)

    it("does not take a standby for the store", function()
      local verdict = candidate("two", { url = replica.url }):claim()
      assert.equal("unknown", verdict[1])
      assert.matches("read%-only", verdict[2])
      verdict = candidate("three", { url = replica.url .. "?target_session_attrs=any" }):claim()
      assert.equal("unknown", verdict[1])
    end)

    it("sits out the longest TTL after a promotion, while the old primary still has its lock", function()
      local long, one = candidate("long", { ttl = 60 }), candidate("one", { ttl = 3 })
      assert.equal("granted", long:claim()[1])
      long:abdicate()
      assert.equal("granted", one:claim()[1])
      eventually(function()
        return replica:sql("SELECT count(*)::int AS n FROM pg_class WHERE relname = 'crown_advisory_v1'")[1].n == 1
      end)
      replica:promote()
      local two, verdict = candidate("two", { url = replica.url, ttl = 3 }), nil
      eventually(function() verdict = two:claim() return verdict[1] ~= "unknown" end)
      assert.equal("denied", verdict[1])
      assert.is_true(verdict[5])
      assert.is_true(verdict[2] > 50 and verdict[2] <= 60)
    end)
  end)

  describe("on a table that has lost a column", function()
    before_each(function() server:empty() end) -- the longest TTL in use is waited for
    after_each(function() server:empty() end)

    it("makes it anew beneath a session that lasts, and sits it out: what it said is lost", function()
      local one = candidate("one", { ttl = 3 })
      local epoch = one:claim()[4]
      server:sql "ALTER TABLE crown_advisory_v1 DROP COLUMN epoch"
      assert.equal("denied", one:refresh()[1]) -- its session has ended, and the lock with it
      local verdict
      eventually(function() verdict = candidate("three", { ttl = 3 }):claim() return verdict[1] ~= "unknown" end, 20)
      assert.same({ "denied", true }, { verdict[1], verdict[5] })
      assert.is_true(candidate("four", { ttl = 3 }):win()[4] > epoch)
    end)

    it("sits it out, too, where the table's owner has made it anew", function()
      local one = candidate("one", { ttl = 3 })
      local epoch = one:claim()[4]
      one.state.session.client:close()
      server:sql "ALTER TABLE crown_advisory_v1 DROP COLUMN epoch, ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0"
      local verdict
      eventually(function() verdict = candidate("two", { ttl = 3 }):claim() return verdict[1] ~= "unknown" end, 20)
      assert.same({ "denied", true }, { verdict[1], verdict[5] })
      assert.is_true(candidate("three", { ttl = 3 }):win()[4] > epoch)
    end)

    it("says what to do where that cannot be made anew", function()
      candidate("one"):claim()
      server:sql "ALTER TABLE crown_advisory_v1 DROP COLUMN acting_until"
      local verdict = candidate("two"):claim()
      assert.equal("unknown", verdict[1])
      assert.matches("crown_advisory_v1 has lost a column that cannot be made anew: DROP TABLE crown_advisory_v1, and", verdict[2])
    end)
  end)

  describe("behind pgbouncer in transaction mode (the second way to two leaders)", function()
    local pooler
    setup(function() pooler = Pgbouncer.start(server) end)
    teardown(function() pooler:destroy() end)

    it("shows the danger: two clients are granted the same lock", function()
      local one, two = assert(crown.postgres.connect(pooler.url)), assert(crown.postgres.connect(pooler.url))
      assert.is_true(assert(one:query "SELECT pg_try_advisory_lock(43) AS got")[1].got)
      assert.is_true(assert(two:query "SELECT pg_try_advisory_lock(43) AS got")[1].got)
      one:query "SELECT pg_advisory_unlock_all()"
      one:close()
      two:close()
    end)

    it("refuses, and says what to use instead", function()
      local verdict = candidate("one", { url = pooler.url }):claim()
      assert.equal("unknown", verdict[1])
      assert.matches("behind a connection pooler .*use the lease", verdict[2])
    end)

    it("is told so by crown-lua check --store", function()
      local function check(url) return run { "check", "--store", "--oracle", url, "run", "x", "true" } end
      local pooled = check((pooler.url:gsub("^postgres", "postgres+advisory")))
      assert.equal(2, pooled.code, pooled.stdout)
      assert.matches("PROBLEM%s+behind a connection pooler .*use the lease", pooled.stdout)
      local direct = check((server.url:gsub("^postgres", "postgres+advisory")))
      assert.equal(0, direct.code, direct.stdout)
      assert.equal(0, check(pooler.url).code)
    end)

    it("lets the lease work, and says that it gets no notifications", function()
      local one = Player.new(lease, { name = name, node = "one", url = pooler.url, ttl = 20 })
      local two = Player.new(lease, { name = name, node = "two", url = pooler.url, ttl = 20 })
      local verdict
      eventually(function() verdict = one:claim() return verdict[1] == "granted" end)
      assert.equal("denied", two:claim()[1])
      assert.equal("granted", one:refresh()[1])
      assert.matches("no notifications", one:emitted("monitor.failed").error)
      one:abdicate()
      assert.equal("granted", two:claim()[1])
      two:abdicate()
    end)
  end)
end)
