local advisory = require "crown.oracles.postgres_advisory"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Player = require "support.oracle_candidate"
local Players = require "support.advisory_players"
local port = require "support.port"
local Postgres = require "support.postgres"
local Process = require "support.candidate"
local run = require "support.run"
local tempdir = require "support.tempdir"

describe("the advisory lock oracle on Postgres", function()
  local server, name

  setup(function() server = Postgres.start { hba = "host all all 127.0.0.0/8 trust\nhost replication all 127.0.0.0/8 trust\n" } end)
  teardown(function() server:destroy() end)

  local players, candidate = Players.of_each_test(function() return server.url end)
  before_each(function() name = players.name end)

  local function locks()
    return server:sql [[SELECT pid, classid::int8 AS high, objid::int8 AS low, objsubid AS form FROM pg_locks
      WHERE locktype = 'advisory' AND granted]]
  end

  -- The lock of a session, if it has one; others, of the test before, may have some for a moment.
  local function lock_of(pid)
    for _, lock in ipairs(locks()) do
      if lock.pid == pid then return lock end
    end
  end

  local function pid_of(player) return player.state.session.bare:server_pid() end

  local function nobody_has(pid)
    eventually(function() return not lock_of(pid) end, 20)
  end

  it("holds the lock in its own session, and checks it there", function()
    local one = candidate "one"
    assert.equal("granted", one:claim()[1])
    assert.is_table(lock_of(pid_of(one)))
    assert.equal("granted", one:refresh()[1])
  end)

  it("obeys an order that nobody has told it of, where it gets the lock by waiting (S15)", function()
    local one, two = candidate("one", { ttl = 180 }), candidate("two", { ttl = 180 })
    one:win()
    assert.equal("denied", two:claim()[1])
    server:sql "CREATE TABLE crown_advisory_orders_v1 (lock_name TEXT PRIMARY KEY, orders TEXT)"
    finally(function()
      server:sql "DROP TABLE crown_advisory_orders_v1"
      server:sql "UPDATE crown_store_v1 SET longest_ttl = 0 WHERE part = 'advisory'" -- which a later test would sit out
    end)
    server:sql "ALTER TABLE crown_advisory_orders_v1 OWNER TO crown"
    server:sql([[INSERT INTO crown_advisory_orders_v1 VALUES ($1, '{"pause":true,"why":"x"}')]], name)
    local pid = pid_of(two)
    one:abdicate()
    eventually(function() return two:message() == "locked" end, 20)
    local verdict = two:call("handle_info", "locked")
    assert.same({ "denied", "paused: x" }, { verdict[1], verdict[7] })
    nobody_has(pid)
  end)

  -- What only the statement itself can see to: the lock is lost, or the store is doubted, between a look and the win.
  it("enters nobody as the leader who has not the lock, nor while the store is sat out (R12)", function()
    local one, two = candidate "one", candidate "two"
    assert.equal("granted", one:claim()[1])
    local session = two.state.session
    assert.is_nil((session:win(assert(session:ready()))))
    assert.equal("granted", one:refresh()[1])
    one:abdicate()
    server:sql "UPDATE crown_store_v1 SET trusted_at = clock_timestamp() + interval '1 h' WHERE part = 'advisory'"
    local generation = assert(session:ready())
    assert.is_true(session:try(generation))
    local epoch = session:win(generation)
    server:sql "UPDATE crown_store_v1 SET trusted_at = clock_timestamp() - interval '1 h' WHERE part = 'advisory'"
    assert.is_nil(epoch)
    assert.is_number(session:win(generation))
  end)

  -- An older state that was put back may have written more log since than it had lost.
  it("does not believe a store whose epochs went back, and goes on above the last that it has heard of (R12)", function()
    finally(function() -- or a longer TTL of a later test would be sat out
      server:sql "UPDATE crown_store_v1 SET trusted_at = 'epoch', epoch_floor = 0 WHERE part = 'advisory'"
    end)
    local one, two = candidate "one", candidate "two"
    local AHEAD = 5000000000000 -- of the server's time in milliseconds, as where its clock was set back
    one:win()
    server:sql("UPDATE crown_advisory_v1 SET epoch = $1::int8 WHERE lock_name = $2", ("%d"):format(AHEAD), name)
    one:abdicate()
    local heard = one:win()[4]
    for i, winner in ipairs { one, two } do -- as the leader itself, and as a follower heard of it
      assert.equal(heard, two:claim()[4])
      one:abdicate()
      eventually(function() return two.state.session.locked end)
      two:abdicate()
      server:sql("UPDATE crown_advisory_v1 SET epoch = $1::int8 WHERE lock_name = $2", ("%d"):format(i == 1 and AHEAD or 1), name)
      server:sql "UPDATE crown_store_v1 SET epoch_floor = 0 WHERE part = 'advisory'"
      local verdict = winner:claim()
      assert.same({ "denied", true }, { verdict[1], verdict[5] })
      assert.is_true(verdict[2] > 1)
      verdict = winner:win()
      assert.is_true(verdict[4] > heard)
      heard = verdict[4]
    end
  end)

  it("takes back only the promise of the term that it releases", function()
    local one = candidate("one", { ttl = 30 })
    local epoch = one:claim()[4]
    one.state.session:release(epoch - 1)
    local left = server:sql("SELECT extract(epoch FROM acting_until - clock_timestamp())::float8 AS left FROM crown_advisory_v1 "
      .. "WHERE lock_name = $1", name)[1].left
    assert.is_true(left > 10)
  end)

  it("keeps no lock that it was given with an answer that was lost", function()
    local one, two = candidate "one", candidate "two"
    local session = one.state.session
    local generation, lock_call = assert(session:ready()), session.lock_call
    function session.lock_call(...)
      assert.is_true(lock_call(...)[1].got)
      return nil, "no answer in the time allowed", "timeout"
    end
    assert.is_nil((session:try(generation)))
    session.lock_call = nil
    eventually(function() return two:claim()[1] == "granted" end)
  end)

  it("takes every bigint as its key in a URL, digit for digit, and says where a number of Lua's is too large", function()
    for _, key in ipairs { "123456789012345", "9007199254740993", "9223372036854775807", "-9223372036854775808" } do
      local words = { "run", "--once", "--oracle", ("postgres+advisory%s?key=%s"):format(server.url:sub(#"postgres" + 1), key),
        "keyed", "--", "true" }
      assert.is_true(server:sql(("SELECT pg_try_advisory_lock(%s) AS got"):format(key))[1].got)
      assert.equal(1, run(words).code, key)
      server:sql(("SELECT pg_advisory_unlock(%s)"):format(key))
      assert.equal(0, run(words).code, key)
    end
    assert.has_no_error(function() candidate("one", { key = 123456789012345 }) end)
    local fine, problem = pcall(candidate, "one", { key = 1234567890123456789 })
    assert.is_false(fine)
    assert.matches("write its digits as a text", tostring(problem))
  end)

  it("uses the first 64 bits of the MD5 of the name as its key", function()
    local one = candidate "one"
    one:claim()
    local key, lock = server:sql("SELECT left(md5($1), 16) AS hex", name)[1].hex, lock_of(pid_of(one))
    assert.equal(key, ("%08x%08x"):format(lock.high, lock.low))
    assert.equal(1, lock.form)
  end)

  for key, expected in pairs { ["7"] = { 0, 7, 1 }, ["3,4"] = { 3, 4, 2 }, ["-1"] = { 4294967295, 4294967295, 1 } } do
    it("takes a key of the user's: " .. key, function()
      local one = candidate("one", { key = key })
      assert.equal("granted", one:claim()[1])
      local lock = lock_of(pid_of(one))
      assert.same(expected, { lock.high, lock.low, lock.form })
      assert.equal("granted", one:refresh()[1])
    end)
  end

  it("checks every five seconds by default, with three checks to a TTL", function()
    local bare = Player.new(advisory, { name = name, url = server.url })
    players.all[1] = bare
    local verdict = bare:claim()
    assert.same({ 5, 15 }, { verdict[2], verdict[3] })
  end)

  it("gives the lock to the follower that waits as soon as it is released", function()
    local one, two = candidate "one", candidate "two"
    local epoch = one:claim()[4]
    assert.equal("one", two:claim()[3])
    one:abdicate()
    eventually(function() return two:message() == "locked" end)
    assert.equal(epoch + 1, two:call("handle_info", "locked")[4])
  end)

  it("gives it as soon as the leader's session ends with all that held its socket", function()
    local app = require("support.tempdir")() .. "/app.lua"
    local file = assert(io.open(app, "w"))
    file:write(([[
local crown = require "crown"
crown.elect { name = %q, oracle = { arg[1], ttl = 60 }, handlers = { won = function(term) print(term.epoch) end } }]])
      :format(name))
    file:close()
    local Candidate = require "support.candidate"
    local leader = Candidate.start { node = "one", log = app .. ".log",
      args = { app, (server.url:gsub("^postgres", "postgres+advisory")) } }
    eventually(function() return leader:output():match "^%d+\n" or leader:output():match "\n%d+\n" end)
    local two = candidate "two"
    assert.equal("denied", two:claim()[1])
    local at = crown.now()
    leader:hurt("KILL", "supervise", "runtime", "keeper", "warden")
    eventually(function() return two:message() == "locked" end)
    assert.equal("granted", two:call("handle_info", "locked")[1])
    assert.is_true(crown.now() - at < 30) -- half of what waiting for the lease to end would take
    leader:destroy()
  end)

  -- So that the session, and the lock with it, does not end before the child has.
  it("has the child hold the leader's socket", function()
    local url = server.url:gsub("^postgres", "postgres+advisory") .. "?ttl=60"
    local leader = Process.start { args = { "run", "--oracle", url, name, "sleep", "600" }, node = "one", log = tempdir() .. "/log" }
    finally(function() leader:destroy() end)
    local function held()
      local child, found = leader:pids "child"[1], 0
      local links = child and crown.exec({ "find", ("/proc/%d/fd"):format(child), "-lname", "socket:*" }) or { stdout = "" }
      for _ in links.stdout:gmatch "[^\n]+" do found = found + 1 end
      return found
    end
    eventually(function() return held() == 1 end, 20)
  end)

  it("waits for the leader's promise to end when the server itself ended its session", function()
    local one, two = candidate("one", { ttl = 6 }), candidate "two"
    one:claim()
    two:claim()
    server:sql("SELECT pg_terminate_backend($1)", one.state.session.bare:server_pid())
    eventually(function() return two:message() == "locked" end)
    local verdict = two:call("handle_info", "locked")
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[2] > 0 and verdict[2] <= 6)
    local granted
    eventually(function() granted = two:claim() return granted[1] == "granted" end, 20)
    assert.are_not.equal("granted", one:refresh()[1])
  end)

  for what, words in pairs {
    ["the server sees the leader's own end"] = { nil, true },
    ["another address with the same port stands between"] = { "127.0.0.2", false },
  } do
    it("believes the end of a connection only where " .. what, function()
      local way = server
      if words[1] then
        way = { port = port.free() }
        way.process = Process.start { program = "/usr/bin/socat", node = "nat", log = tempdir() .. "/log", args = {
          ("TCP-LISTEN:%d,bind=127.0.0.1,reuseaddr,fork"):format(way.port),
          ("SYSTEM:exec socat - TCP\\:127.0.0.1\\:%d\\,bind=%s\\:$SOCAT_PEERPORT"):format(server.port, words[1]) } }
      end
      local one = candidate("one", { url = server:url_for("crown", "crown", way.port), ttl = 20 })
      eventually(function() return one:claim()[1] == "granted" end)
      local row = server:sql("SELECT direct FROM crown_advisory_v1 WHERE lock_name = $1", name)[1]
      assert.equal(words[2], row.direct)
      local two = candidate "two"
      two:claim()
      if words[1] then
        way.process:signal_group "KILL"
      else
        one.state.session.client:close()
      end
      eventually(function() return two:message() == "locked" end)
      assert.equal(words[2] and "granted" or "denied", two:call("handle_info", "locked")[1])
      if words[1] then way.process:wait(5) end
    end)
  end

  it("does not believe the end of a connection without having waited for it", function()
    local one, two = candidate("one", { ttl = 20 }), candidate "two"
    two.state.session:ready()
    one:claim()
    local pid = pid_of(one)
    one.state.session.client:close()
    nobody_has(pid)
    local verdict = two:claim()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[2] > 0)
  end)

  it("does not believe the end of a connection that it has not seen alive", function()
    local one = candidate("one", { ttl = 20, key = "77" })
    one:claim()
    local pid = pid_of(one)
    one.state.session.client:close()
    nobody_has(pid)
    server:sql "SELECT pg_advisory_lock(77)" -- somebody else's, so that there is something to wait for
    local two = candidate("two", { key = "77" })
    assert.equal("denied", two:claim()[1])
    server:sql "SELECT pg_advisory_unlock(77)"
    eventually(function() return two:message() == "locked" end)
    local verdict = two:call("handle_info", "locked")
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[2] > 5)
  end)

  it("refuses that its rows are deleted", function()
    candidate("one"):claim()
    for _, sql in ipairs { "DELETE FROM crown_advisory_v1", "TRUNCATE crown_advisory_v1" } do
      assert.is_false((pcall(server.sql, server, sql)))
    end
  end)

  it("tells the leader at once that its lock is gone with its session", function()
    local one = candidate "one"
    one:claim()
    server:sql("SELECT pg_terminate_backend($1)", one.state.session.bare:server_pid())
    eventually(function() return one:message() == "closed" end)
    assert.equal("denied", one:call("handle_info", "closed")[1])
  end)

  it("names the cause of a loss: that an administrator ended the session", function()
    local path = tempdir() .. "/log"
    local one = Process.start { node = "one", log = path, args = { "run", "--log-level", "info", "--oracle",
      (server.url:gsub("^postgres", "postgres+advisory")) .. "?ttl=4", name, "sleep", "60" } }
    eventually(function() return #one:pids "child" == 1 end, 20)
    server:sql("SELECT pg_terminate_backend(pid) FROM crown_advisory_v1 WHERE lock_name = $1", name)
    eventually(function()
      return one:output():find 'leadership%.lost [^\n]*reason=denied error="postgres at [^"]*: server closed the connection'
    end, 20)
    one:destroy()
  end)

  it("notices that the lock was released behind its back (R10)", function()
    local one = candidate "one"
    one:claim()
    local bare = one.state.session.bare
    assert(bare:query("SELECT pg_advisory_unlock_all()", 1, bare:generation()))
    assert.are_not.equal("granted", one:refresh()[1])
  end)

  it("sets the server's own dead-peer detection to end later than the leader's promise", function()
    local one = candidate("one", { ttl = 6 })
    one:claim()
    local bare = one.state.session.bare
    local rows = assert(bare:query([[SELECT name, setting::int8 AS value FROM pg_settings
      WHERE name IN ('tcp_user_timeout', 'client_connection_check_interval', 'idle_session_timeout')]], 1, bare:generation()))
    local found = {}
    for _, row in ipairs(rows) do found[row.name] = row.value end
    assert.is_true(found.tcp_user_timeout > 6000)
    assert.equal(0, found.idle_session_timeout)
    assert.equal(500, found.client_connection_check_interval)
  end)

  -- Until this follower has waited for the lock for one slice, done what it does then, and waits again.
  local function outwait_a_slice(follower)
    local function waits_since()
      local rows = server:sql("SELECT extract(epoch FROM xact_start)::float8 AS at FROM pg_stat_activity WHERE pid = $1",
        follower.state.session.bare:server_pid())
      return rows[1] and rows[1].at
    end
    local first
    eventually(function() first = waits_since() return first end)
    eventually(function() local now = waits_since() return now and now > first + 1 end, 15)
  end

  it("does not hold back VACUUM for as long as it waits", function()
    local one, two = candidate("one", { ttl = 60 }), candidate "two"
    one:claim()
    two:claim()
    outwait_a_slice(two)
  end)

  local function lose_the_session(player)
    server:sql("SELECT pg_terminate_backend($1)", player.state.session.bare:server_pid())
  end

  -- Whichever of two waiting followers the server gives the lock to, and the other one.
  local function given_the_lock(first, second)
    local given
    eventually(function()
      given = first:message() == "locked" and { first, second } or second:message() == "locked" and { second, first }
      return given
    end, 20)
    return given[1], given[2]
  end

  it("ends the session of a follower that was given the lock and is silent", function()
    local one, two, three = candidate("one", { ttl = 1 }), candidate "two", candidate "three"
    one:win()
    two:claim()
    three:claim()
    lose_the_session(one)
    local silent, heir = given_the_lock(two, three)
    eventually(function() return heir:message() == "locked" end, 30)
    eventually(function() return heir:call("handle_info", "locked")[1] == "granted" end, 20)
    assert.are_not.equal("granted", silent:call("handle_info", "locked")[1])
  end)

  it("does not end the session of a follower that waits for the last leader's promise to end", function()
    local one, two, three = candidate("one", { ttl = 60 }), candidate "two", candidate "three"
    one:claim()
    two:claim()
    three:claim()
    lose_the_session(one)
    local given, waiting = given_the_lock(two, three)
    local pid = pid_of(given)
    assert.equal("denied", given:call("handle_info", "locked")[1])
    outwait_a_slice(waiting)
    assert.is_table(lock_of(pid))
  end)

  it("does not end the session of another program that holds the key", function()
    local other = assert(crown.postgres.connect(server.url))
    assert(other:query "SELECT pg_advisory_lock(4711)")
    local pid = other.bare:server_pid()
    local one = candidate("one", { key = "4711" })
    assert.equal("denied", one:claim()[1])
    outwait_a_slice(one)
    assert.is_table(lock_of(pid))
    other:close()
  end)

  it("evicts by a notification, and waits until the leader has stepped down", function()
    local one, two = candidate "one", candidate "two"
    one:gives_way(two, function() return advisory.evict({ url = server.url }, name) end)
    eventually(function() return two:message() == "locked" end)
    assert.equal("granted", two:call("handle_info", "locked")[1])
  end)

  it("lists its elections for info", function()
    candidate("one"):claim()
    local result = run { "info", "--oracle", (server.url:gsub("^postgres", "postgres+advisory")), "--json" }
    assert.equal(0, result.code)
    local nodes = {}
    for _, election in ipairs(crown.json.decode(result.stdout).elections) do nodes[election.name] = election.node end
    assert.equal("one", nodes[name])
  end)
end)
