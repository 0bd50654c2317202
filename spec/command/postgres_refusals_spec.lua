-- What Postgres refuses, to a candidate and to crown-lua check --store: each with the cause and the next step.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local run = require "support.run"

local GRANTS = "GRANT SELECT, INSERT, UPDATE ON crown_lease_v1, crown_advisory_v1, crown_store_v1 TO "

describe("a Postgres server that refuses a candidate", function()
  local server

  setup(function()
    server = Postgres.start()
    for _, url in ipairs { server.url, (server.url:gsub("^postgres", "postgres+advisory")) } do
      assert.equal(0, run({ "run", "--once", "--oracle", url .. "?trust_empty=true", "x", "true" }).code)
    end
  end)

  teardown(function() server:destroy() end)

  local function sql(...)
    for _, statement in ipairs { ... } do server:sql(statement) end
  end

  -- A user with the rights of a candidate.
  local function user(name, ...)
    sql("CREATE ROLE " .. name .. " LOGIN", GRANTS .. name, ...)
    return name
  end

  local function check(url) return run { "check", "--store", "--oracle", url, "run", "x", "true" } end
  local function try(url) return run { "run", "--once", "--wait", "1", "--oracle", url, "x", "true" } end

  local function has(words, text) assert.truthy(text:find(words, 1, true), ("%q is not in: %s"):format(words, text)) end

  it("is told of by row-level security that lets nobody claim, also by a policy that hides rows", function()
    local who = user "ruled"
    for _, case in ipairs { { "crown_lease_v1", "postgres" }, { "crown_store_v1", "postgres+advisory" },
      { "crown_advisory_v1", "postgres+advisory" } } do
      local named, url = case[1], (server:url_for(who):gsub("^postgres", case[2]))
      assert.equal(0, check(url).code)
      sql(("ALTER TABLE %s ENABLE ROW LEVEL SECURITY"):format(named))
      for _, policy in ipairs { "USING (false)", "FOR SELECT USING (true)", "FOR INSERT WITH CHECK (true)" } do
        sql(("CREATE POLICY p ON %s %s"):format(named, policy))
        local result = check(url)
        assert.equal(2, result.code, named .. " " .. policy .. ": " .. result.stdout .. result.stderr)
        has(("row-level security of %s keeps ruled from leading"):format(named), result.stdout)
        has(("ALTER TABLE %s DISABLE ROW LEVEL SECURITY"):format(named), result.stdout)
        sql(("DROP POLICY p ON %s"):format(named))
      end
      local result = try(url)
      assert.not_equal(0, result.code)
      if named ~= "crown_store_v1" then has("DISABLE ROW LEVEL SECURITY", result.stderr) end
      sql(("CREATE POLICY candidates ON %s TO ruled USING (true)"):format(named)) -- as the answer says
      local fine = check(url)
      assert.equal(0, fine.code, fine.stdout .. fine.stderr)
      assert.matches("warning%s+row%-level security is on for " .. named, fine.stdout)
      assert.equal(0, try(url).code)
      sql(("ALTER TABLE %s DISABLE ROW LEVEL SECURITY"):format(named))
    end
    assert.equal(0, server:sql("SELECT count(*)::int AS n FROM crown_lease_v1 WHERE lock_name = '@check'")[1].n)
  end)

  it("is told of by what else keeps a candidate from its rows", function()
    local function trigger(answer)
      return ("CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN %s; END'"):format(answer),
        "CREATE TRIGGER other BEFORE UPDATE ON crown_lease_v1 FOR EACH ROW EXECUTE FUNCTION other()"
    end
    local without = "DROP FUNCTION other() CASCADE"
    local no_column = "ALTER TABLE crown_lease_v1 DROP COLUMN team"
    local no_rule, no_check = "DROP RULE other ON crown_lease_v1", "ALTER TABLE crown_lease_v1 DROP CONSTRAINT other"
    local not_there, column = "the row is not there as it was written", "ALTER TABLE crown_lease_v1 ADD COLUMN team TEXT NOT NULL"
    for _, case in ipairs { { not_there, without, trigger "NULL" }, { not_there, without, trigger "OLD" },
      { "crown writes (", no_rule, "CREATE RULE other AS ON UPDATE TO crown_lease_v1 DO INSTEAD NOTHING" },
      { "crown writes (", no_rule, "CREATE RULE other AS ON INSERT TO crown_lease_v1 DO INSTEAD NOTHING" },
      { "other", no_check, "ALTER TABLE crown_lease_v1 ADD CONSTRAINT other CHECK (length(record) < 300) NOT VALID" },
      { "team", no_column, column .. " DEFAULT ''", "ALTER TABLE crown_lease_v1 ALTER COLUMN team DROP DEFAULT" } } do
      sql(unpack(case, 3))
      local result = check(server.url)
      sql(case[2])
      assert.equal(2, result.code, case[3] .. result.stdout .. result.stderr)
      has("PROBLEM        crown_lease_v1 does not take what crown writes", result.stdout)
      has(case[1], result.stdout)
    end
    local fine = check(server.url)
    assert.equal(0, fine.code, fine.stdout .. fine.stderr)
  end)

  it("is told of where writes wait for standbys that are not there, and where they do not", function()
    for _, names in ipairs { "*", "ANY 2 (a, b)", "" } do
      local wanted = names == "" and 0 or 2
      sql(("ALTER SYSTEM SET synchronous_standby_names = '%s'"):format(names), "SELECT pg_reload_conf()")
      eventually(function() return server:sql("SHOW synchronous_standby_names")[1].synchronous_standby_names == names end)
      local result = check(server.url)
      assert.equal(wanted, result.code, names .. result.stdout)
      if wanted ~= 0 then has("synchronous_commit=local in the URL", result.stdout) end
      assert.equal(0, check(server.url .. "?synchronous_commit=local").code)
      assert.equal(wanted ~= 0, run({ "info", "--oracle", server.url }).stdout:find("wants more standbys", 1, true) ~= nil)
    end
  end)

  it("has tools say that row-level security may hide what they do not find", function()
    local url = server:url_for(user "hidden")
    sql "ALTER TABLE crown_lease_v1 ENABLE ROW LEVEL SECURITY"
    finally(function() sql "ALTER TABLE crown_lease_v1 DISABLE ROW LEVEL SECURITY" end)
    local words = "row-level security is on for crown_lease_v1: it may hide elections from hidden"
    for _, words_of in ipairs { { "info" }, { "evict", "--force", "x" }, { "pause", "x" }, { "resume", "x" }, { "redo", "x" },
      { "handover", "x", "--to", "y" } } do
      words_of[#words_of + 1], words_of[#words_of + 2] = "--oracle", url
      local result = run(words_of)
      assert.equal(words_of[1] == "info" and 0 or 1, result.code, result.stderr)
      has(words, result.stdout .. result.stderr)
    end
    local checked = check(url).stdout
    assert.equal(1, select(2, checked:gsub("DISABLE ROW LEVEL SECURITY", "")), checked)
  end)

  it("tells a candidate and tools what to do where the schema was dropped, and which server says so", function()
    local name = user("lost", "ALTER ROLE lost SET search_path = 'nowhere'")
    local url = server:url_for(name)
    sql "ALTER TABLE crown_lease_v1 RENAME TO moved"
    finally(function() sql "ALTER TABLE moved RENAME TO crown_lease_v1" end)
    for _, result in ipairs { try(url), run { "info", "--oracle", url }, run { "pause", "x", "--oracle", url }, check(url) } do
      assert.not_equal(0, result.code)
      has("no schema has been selected to look in; make the schema (CREATE SCHEMA …)", result.stdout .. result.stderr)
      if result.stderr ~= "" then assert.matches("postgres at 127.0.0.1:%d+: no schema", result.stderr) end
    end
    sql "ALTER TABLE moved RENAME TO crown_lease_v1" -- the table is there, where nobody looks
    local checked = check(url).stdout
    sql "ALTER TABLE crown_lease_v1 RENAME TO moved"
    assert.equal(1, select(2, checked:gsub("PROBLEM", "")), checked)
  end)

  it("has tools take no longer than they may, whatever the role's own time is", function()
    local url = server:url_for(user("brief", "ALTER ROLE brief SET statement_timeout = '5ms'"))
    local checked = check(url)
    assert.equal(0, checked.code, checked.stdout .. checked.stderr)
    assert.equal(0, run({ "info", "--oracle", url }).code)
  end)

  it("has check --store find a lock on the election's row alone", function()
    local url = server:url_for "crown"
    local client = assert(crown.postgres.connect(server:url_for "postgres"))
    finally(function() client:close() end)
    assert(client:query "BEGIN")
    assert(client:query "SELECT FROM crown_lease_v1 WHERE lock_name = 'x' FOR UPDATE")
    local checked = check(url .. "?ttl=2")
    assert.equal(2, checked.code, checked.stdout)
    has("another session holds a lock on the table or the row: see pg_locks", checked.stdout)
  end)

  it("says that there is no table of our own where only a candidate of ours makes it, and who may", function()
    local url = server:url_for(user "lonely") .. "?shared=false"
    local result = try(url)
    assert.equal(3, result.code)
    has("there is no table crown_register_v1, and this user may not make it: start a candidate once as a user who may", result.stderr)
  end)

  for title, case in pairs {
    ["a right on the table"] = { { "REVOKE UPDATE ON crown_lease_v1 FROM NAME" }, "permission denied for table crown_lease_v1",
      "check --store names the rights", "NAME may not UPDATE crown_lease_v1" },
    ["the function that names the cluster"] = { { "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC" },
      "permission denied for function pg_control_system", "GRANT EXECUTE ON FUNCTION", "NAME may not call pg_control_system()",
      "GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC" },
    ["sessions that write"] = { { "ALTER ROLE NAME SET default_transaction_read_only = on" }, "read-only",
      "default_transaction_read_only", "default_transaction_read_only" },
    ["a login"] = { { "ALTER ROLE NAME NOLOGIN" }, "is not permitted to log in", "ALTER ROLE … LOGIN", "ALTER ROLE … LOGIN" },
    ["a connection more of the role"] = { { "ALTER ROLE NAME CONNECTION LIMIT 0" }, "too many connections for role",
      "ALTER ROLE … CONNECTION LIMIT", "ALTER ROLE … CONNECTION LIMIT" },
    ["a connection more of the database"] = { { "ALTER DATABASE crown CONNECTION LIMIT 0" }, "too many connections for database",
      "ALTER DATABASE … CONNECTION LIMIT", "ALTER DATABASE … CONNECTION LIMIT", "ALTER DATABASE crown CONNECTION LIMIT -1" },
    ["the right to connect"] = { { "REVOKE CONNECT ON DATABASE crown FROM PUBLIC" }, "permission denied for database",
      "GRANT CONNECT ON DATABASE", "GRANT CONNECT ON DATABASE", "GRANT CONNECT ON DATABASE crown TO PUBLIC" },
    ["TLS"] = { {}, "does not support SSL", "turn ssl on", "turn ssl on", nil, "?sslmode=require" },
    ["the database"] = { {}, 'database "nix" does not exist', "createdb", "createdb", nil, nil, "nix" },
  } do
    it("tells a candidate what to do where it does not grant " .. title .. ", and check --store ends with 2", function()
      local name = user("u_" .. title:gsub("%W", "_"))
      for _, statement in ipairs(case[1]) do sql((statement:gsub("NAME", name))) end
      local url = server:url_for(name, case[7]) .. (case[6] or "")
      local tried, checked = try(url), check(url)
      if case[5] then sql(case[5]) end
      assert.equal(3, tried.code, tried.stderr)
      has(case[2], tried.stderr)
      has(case[3], tried.stderr)
      assert.matches("postgres at 127.0.0.1:%d+: ", tried.stderr)
      assert.equal(2, checked.code, checked.stdout .. checked.stderr)
      has((case[4]:gsub("NAME", name)), checked.stdout)
      assert.is_nil(checked.stdout:find("check --store", 1, true))
    end)
  end
end)
