-- What a Postgres server may have forgotten is sat out: tables made anew, older files, other servers in its place.
local advisory = require "crown.oracles.postgres_advisory"
local eventually = require("crown.testing").eventually
local lease = require "crown.oracles.postgres_lease"
local Pgbouncer = require "support.pgbouncer"
local Player = require "support.oracle_candidate"
local Postgres = require "support.postgres"
local run = require "support.run"
local WrongClock = require "support.wrong_clock"

describe("a store that may have forgotten (R12)", function()
  local server, name, epoch

  local function candidate(node)
    return Player.new(lease, { name = name, node = node, url = server.url, ttl = 2 })
  end

  -- A lease that runs, and a follower who knows the store as it was.
  local function prepare(ttl)
    server = Postgres.start()
    name = "r11"
    local one = Player.new(lease, { name = name, node = "one", url = server.url, ttl = ttl or 2 })
    epoch = one:claim()[4]
    return one
  end

  -- In a process of its own: it knows nothing of what was.
  local function newcomer(url, amnesia_wait, trust_empty)
    local dir = require("support.tempdir")()
    local file = assert(io.open(dir .. "/app.lua", "w"))
    file:write [[
local crown = require "crown"
local started = crown.now()
crown.on("oracle.amnesia", function() io.write "amnesia " end)
crown.elect { name = "r11", oracle = { "postgres_lease", url = arg[1], ttl = 2, amnesia_wait = tonumber(arg[2]),
  trust_empty = arg[3] ~= "false" }, retry = 0.1,
  handlers = { won = function(term) print(crown.now() - started, term.epoch) os.exit(0) end } }]]
    file:close()
    local result = run { dir .. "/app.lua", url or server.url, amnesia_wait, trust_empty }
    local waited, won = result.stdout:match "(%S+)\t(%d+)\n$" -- behind as many words as there were events
    return result.stdout:find("amnesia", 1, true) ~= nil, tonumber(waited), tonumber(won)
  end

  after_each(function() server:destroy() end)

  it("sits out the longest TTL when the table was made anew, and goes on with a higher epoch", function()
    local one = prepare()
    server:sql "DROP TABLE crown_lease_v1"
    local amnesia, waited, won = newcomer()
    assert.is_true(amnesia)
    assert.is_true(waited >= 1.9)
    assert.is_true(won > epoch)
    assert.are_not.equal("granted", one:refresh()[1])
  end)

  -- What is left of them are the functions of their triggers.
  it("sits out amnesia_wait when all its tables are gone, also as one sees who was never there (R12)", function()
    prepare(6)
    server:sql "DROP TABLE crown_lease_v1, crown_store_v1"
    local amnesia, waited = newcomer(server.url, "4")
    assert.is_true(amnesia)
    assert.is_true(waited >= 3.5)
  end)

  it("sits it out when nothing is left of it, as one sees who was there before (R12)", function()
    local one = prepare(20)
    local two = Player.new(lease, { name = name, url = server.url .. "?application_name=two", ttl = 1, amnesia_wait = 20 })
    assert.equal("denied", two:claim()[1])
    server:empty()
    one:refresh()
    server:sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crown'"
    local verdict
    eventually(function() verdict = two:claim() return verdict[1] ~= "unknown" end, 10)
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] > 15)
  end)

  it("is sat out at the very first start, too, where that is asked for, and else leads at once", function()
    server = Postgres.start()
    local amnesia, waited = newcomer(server.url, "3", "false")
    assert.is_true(amnesia)
    assert.is_true(waited >= 2.5)
    server:destroy()
    server = Postgres.start()
    amnesia, waited = newcomer(server.url, "50")
    assert.is_false(amnesia)
    assert.is_true(waited < 40)
  end)

  it("tells a leader whose row is gone, and holds it back too", function()
    local one = prepare()
    server:sql "ALTER TABLE crown_lease_v1 DISABLE TRIGGER ALL"
    server:sql "DELETE FROM crown_lease_v1"
    local verdict = one:refresh()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
  end)

  it("sits out the longest TTL in use, not only its own", function()
    prepare()
    server:sql "UPDATE crown_store_v1 SET identity = 'elsewhere', longest_ttl = 60 WHERE part = 'lease'"
    local verdict = Player.new(lease, { name = name, url = server.url .. "?application_name=other", ttl = 2 }):claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] > 50)
  end)

  it("sits out a day at most, whatever somebody has written there as the longest TTL", function()
    prepare()
    for i, longest in ipairs { "1e18", "1e300", "Infinity", "NaN" } do
      server:sql("UPDATE crown_store_v1 SET identity = 'elsewhere', trusted_at = 'epoch', longest_ttl = $1::float8", longest)
      local verdict = Player.new(lease, { name = name, url = server.url .. "?application_name=other" .. i, ttl = 2 }):claim()
      assert.same({ "denied", true }, { verdict[1], verdict[5] }, verdict[2])
      assert.is_true(verdict[2] <= 86401, longest)
    end
  end)

  it("sits it out when what the store knew of itself is gone", function()
    prepare()
    server:sql "DROP TABLE crown_store_v1"
    local another = Player.new(lease, { name = "another", url = server.url .. "?application_name=other", ttl = 2,
      amnesia_wait = 3 })
    local verdict = another:claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] > 2.5)
    eventually(function() verdict = another:claim() return verdict[1] == "granted" end)
    assert.is_true(verdict[4] > 1000)
  end)

  it("has what it confirmed on its disk, whatever the server's setting is", function()
    server = Postgres.start { config = "synchronous_commit = off\nwal_writer_delay = 10s" }
    name = "durable"
    assert.equal("granted", candidate("one"):claim()[1])
    server:down "immediate"
    server:up()
    assert.matches("^one#", server:sql("SELECT holder FROM crown_lease_v1 WHERE lock_name = $1", name)[1].holder)
  end)

  it("refuses to be truncated, and sits it out where that was done all the same", function()
    local one, two = prepare(6), candidate "two"
    assert.equal("denied", two:claim()[1])
    local done, problem = pcall(server.sql, server, "TRUNCATE crown_lease_v1")
    assert.is_false(done)
    assert.matches("not truncated", problem)
    assert.equal("granted", one:refresh()[1])
    server:sql "ALTER TABLE crown_lease_v1 DISABLE TRIGGER ALL"
    server:sql "TRUNCATE crown_lease_v1"
    local verdict = two:claim() -- on the connection that it had
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
    assert.is_true(verdict[2] > 1)
    assert.is_true(two:win()[4] > epoch)
  end)

  it("sits it out when the table was dropped and restored beneath its connection", function()
    local two = (prepare(20) and candidate "two")
    assert.equal("denied", two:claim()[1])
    server:sql "CREATE TABLE kept AS SELECT * FROM crown_lease_v1"
    server:sql "DROP TABLE crown_lease_v1"
    server:sql "CREATE TABLE crown_lease_v1 (LIKE kept)"
    server:sql "ALTER TABLE crown_lease_v1 ADD PRIMARY KEY (lock_name), OWNER TO crown"
    local verdict = two:claim()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
  end)

  it("makes its tables anew when they are dropped beneath a connection that lasts, and sits it out", function()
    for _, gone in ipairs { "crown_lease_v1, crown_store_v1", "crown_lease_v1" } do
      local one = prepare(20)
      local two = candidate "two"
      assert.equal("denied", two:claim()[1])
      server:sql("DROP TABLE " .. gone)
      assert.equal("unknown", one:refresh()[1])
      local verdict
      eventually(function() verdict = two:claim() return verdict[1] ~= "unknown" end, 10)
      assert.same({ "denied", true }, { verdict[1], verdict[5] }, gone)
      server:destroy()
    end
  end)

  it("makes a column anew that is dropped beneath a connection that lasts", function()
    local one = prepare(20)
    local two = candidate "two"
    assert.equal("denied", two:claim()[1])
    server:sql "ALTER TABLE crown_store_v1 DROP COLUMN set_back"
    assert.equal("unknown", one:refresh()[1])
    eventually(function() return two:claim()[1] == "denied" end, 10)
    eventually(function() return one:refresh()[1] == "granted" end, 10)
  end)

  it("makes a column of its leases anew that was dropped, and sits it out: what it said is lost", function()
    prepare()
    server:sql "ALTER TABLE crown_lease_v1 DROP COLUMN epoch"
    local amnesia, waited, won = newcomer()
    assert.is_true(amnesia)
    assert.is_true(waited >= 1.9)
    assert.is_true(won > epoch)
  end)

  it("makes any column anew of what the store knows of itself, and sits it out", function()
    server, name = Postgres.start(), "r11"
    for i, column in ipairs { "part", "identity", "trusted_at", "longest_ttl", "epoch_floor", "set_back", "behind", "seen" } do
      local function other(node)
        return Player.new(lease, { name = name, node = node, url = ("%s?application_name=%s%d"):format(server.url, node, i), ttl = 20 })
      end
      local one = other "one"
      epoch = one:win()[4]
      server:sql("ALTER TABLE crown_store_v1 DROP COLUMN " .. column)
      local verdict = other "two":claim()
      assert.same({ "denied", true }, { verdict[1], verdict[5] }, column)
      assert.is_true(verdict[2] > 10, column)
      eventually(function() return one:refresh()[1] == "granted" end, 10)
      one:abdicate()
      server:sql "UPDATE crown_store_v1 SET trusted_at = 'epoch'" -- as if that were over
      assert.is_true(other "three":win()[4] > epoch + 1000, column)
      server:empty()
    end
  end)

  it("doubts its leases, too, where a column of what the store knows of itself was made anew for another kind", function()
    prepare()
    local function locks() return Player.new(advisory, { name = name, url = server.url, ttl = 2 }) end
    local first = locks()
    first:win()
    first.state.session.client:close()
    server:sql "ALTER TABLE crown_store_v1 DROP COLUMN trusted_at"
    local second = locks()
    eventually(function() return second:claim()[1] == "denied" end)
    second.state.session.client:close()
    assert.is_true((newcomer()))
  end)

  it("says what to do where a column is gone that cannot be made anew", function()
    prepare()
    server:sql "ALTER TABLE crown_lease_v1 DROP COLUMN holder"
    local verdict = Player.new(lease, { name = name, url = server.url .. "?application_name=other", ttl = 2 }):claim()
    assert.equal("unknown", verdict[1])
    assert.matches("crown_lease_v1 has lost a column that cannot be made anew: DROP TABLE crown_lease_v1, and", verdict[2])
  end)

  it("sits it out when a pooler puts a promoted replica in its server's place (R12)", function()
    local one = prepare(6)
    local replica = server:replica()
    local pooler = Pgbouncer.start(server)
    local two = Player.new(lease, { name = name, node = "two", url = pooler.url, ttl = 6 })
    assert.equal("granted", one:refresh()[1])
    assert.equal("denied", two:claim()[1])
    replica:promote()
    replica:sql("UPDATE crown_lease_v1 SET expires_at = clock_timestamp()") -- as where the last refresh had not come yet
    pooler:lead_to(replica)
    local verdict
    eventually(function()
      assert.equal("granted", one:refresh()[1])
      verdict = two:claim()
      return verdict[1] ~= "denied" or verdict[5]
    end, 10)
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(two:win()[4] > epoch + 1000)
    pooler:destroy()
    replica:destroy()
  end)

  it("is sat out longer for a longer TTL that is heard of later", function()
    prepare()
    server:sql "UPDATE crown_store_v1 SET identity = 'elsewhere', longest_ttl = 0.5 WHERE part = 'lease'"
    local short = Player.new(lease, { name = "short", url = server.url .. "?application_name=short", ttl = 0.5 })
    assert.is_true(short:claim()[5])
    eventually(function() return short:claim()[1] == "granted" end)
    local verdict = Player.new(lease, { name = "long", url = server.url .. "?application_name=long", ttl = 20 }):claim()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
    assert.is_true(verdict[2] > 10)
  end)

  it("sits it out on a promoted replica, also when the lease had not reached it", function()
    prepare()
    local replica = server:replica()
    local first = epoch
    candidate("one"):abdicate()
    server:down "immediate"
    replica:promote()
    local amnesia, waited, won = newcomer(replica.url)
    replica:destroy()
    assert.is_true(amnesia)
    assert.is_true(waited >= 1.9)
    assert.is_true(won > first + 1000)
  end)

  it("sits it out when a backup was put back, as one sees who was there before", function()
    local one = prepare()
    server:down()
    local restore = server:backup()
    server:up()
    eventually(function() return one:claim()[1] == "granted" end)
    for _ = 1, 3 do one:claim() end
    server:down()
    restore()
    server:up()
    local verdict
    eventually(function()
      verdict = one:claim()
      return verdict[1] ~= "unknown"
    end)
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
  end)

  it("sits it out when a backup was put back though no epoch was given since, by the log that the refreshes were in", function()
    local one = prepare(30)
    server:down()
    local restore = server:backup()
    server:up()
    eventually(function() return one:refresh()[1] == "granted" end)
    local admin = server:admin()
    assert(admin:query "SELECT pg_switch_wal()") -- far ahead of what a restart writes
    admin:close()
    assert.equal("granted", one:refresh()[1])
    server:down()
    restore()
    server:up()
    local two, verdict = candidate "two", nil
    eventually(function() verdict = two:claim() return verdict[1] ~= "unknown" end)
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
  end)

  -- As where the whole machine was put back to a snapshot: the server was not started again.
  it("sits it out when the log is shorter than a refresh has seen it, though the same server goes on", function()
    server = Postgres.start()
    local admin = server:admin()
    for _, sql in ipairs {
      "CREATE SCHEMA snapshot AUTHORIZATION crown", "CREATE TABLE snapshot.log (put_back_to pg_lsn)",
      "ALTER TABLE snapshot.log OWNER TO crown",
      [[CREATE FUNCTION snapshot.pg_current_wal_insert_lsn() RETURNS pg_lsn LANGUAGE sql AS
        'SELECT coalesce((SELECT put_back_to FROM snapshot.log), pg_catalog.pg_current_wal_insert_lsn())']],
      "ALTER ROLE crown SET search_path = public, snapshot, pg_catalog" } do assert(admin:query(sql)) end
    local function log() return server:sql("SELECT pg_catalog.pg_current_wal_insert_lsn()::text AS at")[1].at end
    name = "r11"
    local one, two = Player.new(lease, { name = name, node = "one", url = server.url, ttl = 30 }), candidate "two"
    assert.equal("granted", one:claim()[1])
    assert.equal("denied", two:claim()[1])
    local before = log()
    assert(admin:query "SELECT pg_switch_wal()")
    admin:close()
    local after = log()
    assert.equal("granted", one:refresh()[1])
    server:sql("INSERT INTO snapshot.log SELECT $1::pg_lsn + ($2::pg_lsn - $1::pg_lsn) / 2", before, after)
    local verdict = two:claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
  end)

  it("sits it out when older files were put back, also as one sees who knows nothing of what was there before (R12)", function()
    local one = prepare(4)
    one:abdicate()
    server:down()
    local restore = server:backup()
    server:up()
    eventually(function() return one:claim()[1] == "granted" end, 30)
    server:down "immediate"
    restore()
    server:up()
    local amnesia, waited = newcomer(server.url)
    assert.is_true(amnesia)
    assert.is_true(waited >= 1.9)
  end)

  it("sits it out when the database was put back by a copy of it, also as one sees who was never there (R12)", function()
    local one = prepare(4)
    local admin = server:admin "postgres"
    local function shut() -- a database is copied or renamed when nobody is connected to it
      if server.client then server.client:close() end
      server.client = nil
      assert(admin:query "ALTER DATABASE crown ALLOW_CONNECTIONS false")
      assert(admin:query "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = 'crown'")
    end
    one:abdicate()
    shut()
    assert(admin:query "CREATE DATABASE copy TEMPLATE crown OWNER crown")
    assert(admin:query "ALTER DATABASE crown ALLOW_CONNECTIONS true")
    eventually(function() return one:claim()[1] == "granted" end, 30)
    shut()
    assert(admin:query "DROP DATABASE crown")
    assert(admin:query "ALTER DATABASE copy RENAME TO crown")
    admin:close()
    local amnesia, waited = newcomer(server.url)
    assert.is_true(amnesia)
    assert.is_true(waited >= 1.9)
  end)

  it("is believed by a name of it without its database, as other versions write it", function()
    prepare():abdicate()
    server:sql "UPDATE crown_store_v1 SET identity = split_part(identity, '@', 1) WHERE part = 'lease'"
    assert.equal("granted", candidate("two"):claim()[1])
    server:sql "UPDATE crown_store_v1 SET identity = left(identity, -1) WHERE part = 'lease'"
    assert.is_true((newcomer()))
  end)

  it("is led on through a restart, which only who claims sits out, once for all of them", function()
    local one = prepare(20)
    local two = Player.new(lease, { name = name, node = "two", url = server.url .. "?application_name=two", ttl = 20 })
    assert.equal("denied", two:claim()[1])
    server:down()
    server:up()
    eventually(function() return one:refresh()[1] == "granted" end, 20)
    local verdict
    eventually(function() verdict = two:claim() return verdict[1] ~= "unknown" end, 20)
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    local until_then = server:sql("SELECT trusted_at::text AS at FROM crown_store_v1 WHERE part = 'lease'")[1].at
    eventually(function() verdict = one:claim() return verdict[1] ~= "unknown" end, 20) -- its memory is of the start before
    assert.equal(until_then, server:sql("SELECT trusted_at::text AS at FROM crown_store_v1 WHERE part = 'lease'")[1].at)
  end)

  it("never gives an epoch twice, though one backup is put back twice", function()
    local one = prepare()
    server:down()
    local restore, given = server:backup(), {}
    for _ = 1, 3 do
      server:up()
      local verdict
      eventually(function()
        verdict = one:claim()
        return verdict[1] == "granted"
      end, 30)
      assert.is_nil(given[verdict[4]])
      given[verdict[4]] = true
      assert.is_true(verdict[4] >= math.max(0, unpack(given.all or {})))
      given.all = { verdict[4], unpack(given.all or {}) }
      one:abdicate()
      server:down()
      restore()
    end
    server:up()
  end)

  describe("whose clock was stepped forward", function()
    local clock

    before_each(function()
      clock = WrongClock.new(0)
      server, name = Postgres.start { clock = clock }, "stepped"
    end)

    local function candidate_of(node)
      return Player.new(lease, { name = name, node = node, url = server.url .. "?application_name=" .. node, ttl = 20 })
    end

    local function is_doubted(player)
      local verdict = player:claim()
      assert.same({ "denied", true }, { verdict[1], verdict[5] })
      assert.is_true(verdict[2] > 15)
      return verdict
    end

    it("sits it out, though the lease is over there, as one finds who has been there before", function()
      local one, two = candidate_of "one", candidate_of "two"
      assert.equal("granted", one:claim()[1])
      assert.equal("denied", two:claim()[1])
      clock:set(3600)
      is_doubted(two) -- granted there, and taken back
      is_doubted(candidate_of "three")
    end)

    it("is led on by a leader who finds it, and sat out by who comes later", function()
      local one = candidate_of "one"
      epoch = one:claim()[4]
      clock:set(3600)
      local verdict = one:refresh()
      assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
      one:abdicate()
      is_doubted(candidate_of "two")
    end)

    it("goes on above the epoch that it told right then, as one sees who has heard it, where all its tables are lost next", function()
      local one, two = candidate_of "one", candidate_of "two"
      local AHEAD = 5000000000000 -- of the server's time in milliseconds, as after many doubts
      assert.equal("granted", one:claim()[1])
      assert.equal("denied", two:claim()[1])
      server:sql("UPDATE crown_lease_v1 SET epoch = $1::int8", ("%d"):format(AHEAD))
      clock:set(3600)
      assert.equal(AHEAD, is_doubted(two)[4])
      server:sql "DROP TABLE crown_lease_v1, crown_store_v1"
      eventually(function() return two:claim()[5] end, 20)
      server:sql "UPDATE crown_store_v1 SET trusted_at = 'epoch'" -- as if that were over
      assert.is_true(two:win()[4] > AHEAD)
    end)
  end)

  it("is doubted where its epochs went back, by a leader that was told a higher one as it lost", function()
    local one = prepare(20)
    local two = Player.new(lease, { name = name, node = "two", url = server.url .. "?application_name=two", ttl = 20 })
    server:sql "UPDATE crown_lease_v1 SET expires_at = clock_timestamp()" -- as if its time were over
    local higher = two:claim()[4]
    assert.is_true(higher > epoch)
    local verdict = one:refresh()
    assert.same({ "denied", higher }, { verdict[1], verdict[4] })
    two:abdicate()
    server:sql("UPDATE crown_lease_v1 SET epoch = $1", epoch) -- as in an older state that has written more since
    verdict = one:claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    server:sql "UPDATE crown_store_v1 SET trusted_at = 'epoch'" -- as if that were over
    assert.is_true(one:win()[4] > higher)
  end)

  it("refuses a table that a crash would empty", function()
    prepare()
    server:sql "ALTER TABLE crown_lease_v1 SET UNLOGGED"
    server:down "immediate"
    server:up()
    local verdict
    local two = candidate "two"
    eventually(function()
      verdict = two:claim()
      return verdict[1] == "unknown" and verdict[2]:find "UNLOGGED"
    end)
    assert.matches("ALTER TABLE crown_lease_v1 SET LOGGED", verdict[2])
  end)
end)
