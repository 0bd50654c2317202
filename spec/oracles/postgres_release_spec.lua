-- A release on a Postgres whose commits wait for ever: those that have to be durable wait for a replica that never comes.
local eventually = require("crown.testing").eventually
local lease = require "crown.oracles.postgres_lease"
local Player = require "support.oracle_candidate"
local Postgres = require "support.postgres"

describe("a release on Postgres", function()
  local server

  local function commits_wait(value)
    server:sql(("ALTER SYSTEM SET synchronous_standby_names = '%s'"):format(value))
    server:sql "SELECT pg_reload_conf()"
  end

  setup(function() server = Postgres.start() end)
  teardown(function() server:destroy() end)

  local function candidate(node, url)
    return Player.new(lease, { name = "release", node = node, url = url or server.url, ttl = 30, timeout = 20 })
  end

  it("waits for no disk and no replica, and wakes the followers; a claim does wait", function()
    local one, two = candidate "one", candidate "two"
    one:win()
    two:claim()
    Postgres.await_listener(function() return two.state.store.store.listener end)
    while two:message() do end
    commits_wait "nobody"
    eventually(function() return server:sql("SHOW synchronous_standby_names")[1].synchronous_standby_names == "nobody" end)
    one:abdicate()
    eventually(function() return two:message() end, 10)
    local quick = Player.new(lease, { name = "release", node = "three", url = server.url .. "?application_name=three", ttl = 30,
      timeout = 0.5 })
    assert.equal("unknown", quick:claim()[1])
    commits_wait ""
    eventually(function() -- its claim may have been written all the same
      quick:abdicate()
      return two:claim()[1] == "granted"
    end, 20)
    two:abdicate()
  end)

  it("is heard of by a follower that does not listen yet when it comes", function()
    local one = candidate "one"
    one:win()
    server:sql "ALTER SYSTEM SET post_auth_delay = 1" -- seconds that a connection takes
    server:sql "SELECT pg_reload_conf()"
    local two = candidate("two", server.url .. "?application_name=two")
    assert.equal("denied", two:claim()[1])
    assert.equal(0, server:sql("SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'two' AND query LIKE 'LISTEN%'")[1].n)
    one:abdicate()
    eventually(function() return two:message() end, 10)
    assert.equal("granted", two:claim()[1])
  end)
end)
