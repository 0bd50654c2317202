-- A role's search_path says in which schema its tables are. Candidates that look in two schemas of one database would lead beside
-- each other: they are refused, unless that is what somebody wants.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local lease = require "crown.oracles.postgres_lease"
local Player = require "support.oracle_candidate"
local Postgres = require "support.postgres"
local run = require "support.run"
local tempdir = require "support.tempdir"

-- What crown-lua's statements that make tables take, one after the other: lua/crown/postgres/tables.lua.
local LONG_A, LONG_B = ("a"):rep(63), ("b"):rep(63) -- as long as a name may be
local MAKING = "x'63726f776e6c7561'::bigint"

describe("two schemas of one Postgres database", function()
  local server, started

  setup(function()
    server = Postgres.start()
    server:sql "CREATE ROLE other LOGIN IN ROLE crown"
  end)
  teardown(function() server:destroy() end)
  before_each(function()
    started = {}
    server:sql(("DROP SCHEMA IF EXISTS a, b, %s, %s CASCADE"):format(LONG_A, LONG_B))
    server:sql "CREATE SCHEMA a AUTHORIZATION crown"
    server:sql "CREATE SCHEMA b AUTHORIZATION crown"
    server:sql "ALTER ROLE crown SET search_path = a"
    server:sql "ALTER ROLE other SET search_path = b, a"
  end)
  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
  end)

  local function url(scheme, user, options)
    return ("%s://%s@127.0.0.1:%d/crown?ttl=10%s"):format(scheme, user, server.port, options or "")
  end

  local function once(...)
    return run { "run", "--once", "--oracle", url(...), "x", "echo", "ran" }
  end

  local function start(...)
    local one = Candidate.start { args = { "run", "--oracle", url(...), "x", "sleep", "1000" }, node = "node" .. #started,
      log = tempdir() .. "/log" }
    started[#started + 1] = one
    return one
  end

  local function is_refused(result, named)
    assert.equal(3, result.code, result.stdout .. result.stderr)
    assert.matches(named .. " is in the schemas? .*a", result.stderr)
    assert.matches("'b'", result.stderr)
    assert.matches("search_path", result.stderr)
  end

  local function schemas(named)
    return server:sql("SELECT string_agg(relnamespace::regnamespace::text, ' ' ORDER BY 1) AS all FROM pg_class WHERE relname = $1",
      named)[1].all
  end

  for scheme, named in pairs { postgres = "crown_lease_v1", ["postgres+advisory"] = "crown_advisory_v1" } do
    it("are refused, and no second table is made: " .. named, function()
      assert.equal(0, once(scheme, "crown").code)
      server:sql "ALTER ROLE other SET search_path = b"
      is_refused(once(scheme, "other"), named)
      assert.equal("a", schemas(named))
      assert.equal(0, once(scheme, "crown").code)
    end)

    it("are fine where the table is found in the second schema of the path: " .. named, function()
      assert.equal(0, once(scheme, "crown").code)
      server:sql "GRANT crown TO other"
      assert.equal(0, once(scheme, "other").code)
      assert.equal("a", schemas(named))
    end)
  end

  it("are refused to the user of either, where both have the table; and not where each says which is its own", function()
    assert.equal(0, once("postgres", "crown").code)
    server:sql "ALTER SCHEMA a RENAME TO c"
    server:sql "CREATE SCHEMA a AUTHORIZATION crown"
    assert.equal(3, once("postgres", "crown").code)
    assert.equal(0, once("postgres", "crown", "&schema=a").code)
    server:sql "DROP SCHEMA b CASCADE"
    server:sql "ALTER SCHEMA c RENAME TO b"
    server:sql "ALTER ROLE other SET search_path = b"
    is_refused(once("postgres", "crown"), "crown_lease_v1")
    is_refused(once("postgres", "other"), "crown_lease_v1")
    local lacks = run { "check", "--store", "--oracle", url("postgres", "other"), "run", "x", "true" }
    assert.matches("crown_lease_v1 is in the schemas 'b' and 'a'", lacks.stdout)
    for user, schema in pairs { crown = "a", other = "b" } do
      assert.equal(0, once("postgres", user, "&schema=" .. schema).code)
    end
    local result = once("postgres", "other", "&schema=a")
    assert.equal(3, result.code)
    assert.matches("crown_lease_v1 is in the schema 'b', .*search_path, and not in 'a'", result.stderr)
  end)

  for scheme, named in pairs { postgres = "crown_lease_v1", ["postgres+advisory"] = "crown_advisory_v1" } do
    it("are told to an operator whose role looks in the other one: nobody leads there, as far as it sees: " .. named, function()
      assert.equal(0, once(scheme, "crown").code)
      server:sql "ALTER ROLE other SET search_path = b"
      for _, words in ipairs { { "info" }, { "evict", "--force", "x" } } do
        local all = { words[1], "--oracle", url(scheme, "other") }
        for i = 2, #words do all[#all + 1] = words[i] end
        local result = run(all)
        assert.equal(2, result.code, result.stdout .. result.stderr)
        assert.matches(named .. " is in the schema 'a', and this user's search_path leads to 'b'", result.stderr)
      end
      local own = run { "evict", "--force", "--oracle", url(scheme, "crown"), "x" }
      assert.same({ 1, true }, { own.code, own.stderr:find("nobody leads 'x'", 1, true) ~= nil }, own.stderr)
    end)
  end

  it("are refused where the memory beside the table is in the other one", function()
    assert.equal(0, once("postgres+advisory", "crown").code)
    server:sql "CREATE TABLE b.crown_store_v1 (LIKE a.crown_store_v1 INCLUDING ALL)"
    server:sql "ALTER TABLE b.crown_store_v1 OWNER TO crown"
    is_refused(once("postgres+advisory", "other"), "crown_advisory_v1")
  end)

  it("are noticed by a leader whose path was changed, as soon as it connects again", function()
    local one = Player.new(lease, { name = "x", node = "one", url = url("postgres", "crown", "&application_name=moved") })
    one:win()
    server:sql "ALTER ROLE crown SET search_path = b"
    server:sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'moved'"
    eventually(function()
      local verdict = one:refresh()
      return verdict[1] == "unknown" and verdict[2]:find "crown_lease_v1 is in the schema 'a'"
    end, 20)
    server:sql "ALTER ROLE crown SET search_path = a"
    eventually(function() return one:refresh()[1] == "granted" end, 20)
  end)

  it("are told of to the end, however long their names are: on the terminal, in the log, in status", function()
    local directory = tempdir()
    local function said_by(scheme, user)
      local one = Candidate.start { args = { "run", "--oracle", url(scheme, user), "x", "sleep", "1000" }, node = "one",
        log = tempdir() .. "/log", env = { CROWN_DIRECTORY = directory } }
      finally(function() one:destroy() end)
      eventually(function() return one:output():find "oracle.error" end, 20)
      local status = run({ "status", "--json" }, { env = { CROWN_DIRECTORY = directory } })
      local text = once(scheme, user).stderr .. one:output() .. status.stdout
      one:destroy()
      local ends = 0
      for said in text:gmatch "crown_%l+_v1 is in the schema[^\n]*" do
        assert.matches("each of two environments its own by the option schema", said)
        ends = ends + 1
      end
      assert.is_true(ends >= 3, text)
    end
    local first, second = LONG_A, LONG_B
    server:sql("ALTER SCHEMA a RENAME TO " .. first)
    server:sql("ALTER SCHEMA b RENAME TO " .. second)
    server:sql("ALTER ROLE crown SET search_path = " .. first)
    server:sql("ALTER ROLE other SET search_path = " .. second)
    for _, scheme in ipairs { "postgres", "postgres+advisory" } do
      assert.equal(0, once(scheme, "crown").code)
      said_by(scheme, "other")
    end
    server:sql(("ALTER ROLE other SET search_path = %s, %s"):format(second, first))
    server:sql(("CREATE TABLE %s.crown_lease_v1 (LIKE %s.crown_lease_v1 INCLUDING ALL)"):format(second, first))
    said_by("postgres", "other")
  end)

  it("get one table where two make it at the same moment", function()
    server:sql "ALTER ROLE other SET search_path = b"
    local holder = server:admin()
    assert(holder:query("SELECT pg_advisory_lock(" .. MAKING .. ")"))
    start("postgres", "crown")
    start("postgres", "other")
    eventually(function()
      return server:sql("SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")[1].n == 2
    end, 20)
    holder:close()
    eventually(function() return #started[1]:pids "child" + #started[2]:pids "child" == 1 end, 20)
    eventually(function()
      return (started[1]:output() .. started[2]:output()):find "crown_lease_v1 is in the schema"
    end, 20)
    assert.matches("^[ab]$", schemas "crown_lease_v1")
  end)
end)
