-- What MariaDB refuses, to a candidate and to crown-lua check --store: each with the cause and the next step.
local Mysql = require "support.mysql"
local run = require "support.run"

describe("a MariaDB server that refuses a candidate", function()
  local server

  setup(function() server = Mysql.start() end)
  teardown(function() server:destroy() end)

  local function has(words, text) assert.truthy(text:find(words, 1, true), ("%q is not in: %s"):format(words, text)) end

  for title, case in pairs {
    ["a locked user"] = { "CREATE USER who@'%' ACCOUNT LOCK; GRANT ALL ON crown.* TO who@'%'", "ACCOUNT UNLOCK" },
    ["as many connections as a user may have"] = { "CREATE USER who@'%' WITH MAX_USER_CONNECTIONS -1; GRANT ALL ON crown.* TO who@'%'",
      "max_user_connections" },
    ["writes"] = { "CREATE USER who@'%'; GRANT ALL ON crown.* TO who@'%'; SET GLOBAL read_only = 1", "replica" },
    ["a password that is out of date"] = { "CREATE USER who@'%' PASSWORD EXPIRE; GRANT ALL ON crown.* TO who@'%'", "set it anew" },
    ["more questions than a user may ask"] = { "CREATE USER who@'%' WITH MAX_QUERIES_PER_HOUR 1; GRANT ALL ON crown.* TO who@'%'",
      "_PER_HOUR 0" },
    ["a user that has no right to the database"] = { "CREATE USER who@'%'", "make it (CREATE DATABASE" },
    ["TLS"] = { "CREATE USER who@'%'; GRANT ALL ON crown.* TO who@'%'", "have the URL begin with mysql://", "mysqls" },
  } do
    it("says what to do about " .. title, function()
      server:sql(case[1])
      finally(function() server:sql "DROP USER who@'%'; SET GLOBAL read_only = 0" end)
      local url = server:url_for "who":gsub("^mysql", case[3] or "mysql")
      local tried = run { "run", "--once", "--wait", "1", "--oracle", url, "x", "true" }
      local checked = run { "check", "--store", "--oracle", url, "run", "x", "true" }
      assert.equal(3, tried.code, tried.stderr)
      assert.matches("mysql at 127.0.0.1:%d+: [^;]*; ", tried.stderr)
      has(case[2], tried.stderr)
      assert.is_nil(tried.stderr:find("?;", 1, true), tried.stderr)
      assert.equal(2, checked.code, checked.stdout .. checked.stderr)
      assert.equal(1, select(2, checked.stdout:gsub("PROBLEM", "")), checked.stdout)
      assert.matches("PROBLEM +mysql at 127.0.0.1:%d+[^ ]*: [^;]*; ", checked.stdout)
      has(case[2], checked.stdout)
    end)
  end

  it("names the table that a user has no right to, and not the other one", function()
    assert.equal(0, run({ "run", "--once", "--oracle", server.url .. "?trust_empty=true", "x", "true" }).code)
    server:sql "CREATE USER half@'%'; GRANT SELECT, INSERT, UPDATE, DELETE ON crown.crown_register TO half@'%'"
    finally(function() server:sql "DROP USER half@'%'" end)
    local url = server:url_for "half"
    local tried = run { "run", "--once", "--wait", "1", "--oracle", url, "x", "true" }
    local checked = run { "check", "--store", "--oracle", url, "run", "x", "true" }
    for _, text in ipairs { tried.stderr, checked.stdout } do
      has("there is no table crown_register_mark that this user has a right to, and it may not create it", text)
    end
    assert.equal(2, checked.code)
  end)

  it("lets a candidate lead whatever the server sets for sessions that care for nothing", function()
    server:sql "SET GLOBAL sql_safe_updates = 1; SET GLOBAL sql_select_limit = 0"
    finally(function() server:sql "SET GLOBAL sql_safe_updates = 0; SET GLOBAL sql_select_limit = DEFAULT" end)
    local tried = run { "run", "--once", "--wait", "5", "--oracle", server.url .. "?trust_empty=true", "set", "true" }
    local checked = run { "check", "--store", "--oracle", server.url, "run", "set", "true" }
    assert.same({ 0, 0 }, { tried.code, checked.code }, tried.stderr .. checked.stdout)
  end)

  it("says that a view is no table that can be relied on", function()
    assert.equal(0, run({ "run", "--once", "--oracle", server.url .. "?table=seen&trust_empty=true", "x", "true" }).code)
    server:sql "RENAME TABLE crown.seen TO crown.hidden; CREATE VIEW crown.seen AS SELECT * FROM crown.hidden"
    finally(function() server:sql "DROP VIEW crown.seen; RENAME TABLE crown.hidden TO crown.seen" end)
    local checked = run { "check", "--store", "--oracle", server.url .. "?table=seen", "run", "x", "true" }
    assert.equal(2, checked.code)
    assert.matches("PROBLEM +mysql at 127.0.0.1:%d+: seen is a view", checked.stdout)
  end)

  it("says that another session holds a lock, and how to find it", function()
    local url = server.url .. "?trust_empty=true&timeout=2"
    assert.equal(0, run({ "run", "--once", "--oracle", url, "x", "true" }).code)
    server:sql "LOCK TABLES crown.crown_register WRITE"
    finally(function() server:sql "UNLOCK TABLES" end)
    local tried = run { "run", "--once", "--wait", "5", "--oracle", url, "x", "true" }
    local checked = run { "check", "--store", "--oracle", url, "run", "x", "true" }
    assert.equal(3, tried.code, tried.stderr)
    has("another session holds a lock on the table or the row: see SHOW PROCESSLIST", tried.stderr)
    assert.equal(2, checked.code, checked.stdout)
    has("see SHOW PROCESSLIST", checked.stdout)
  end)

  it("has check --store find a lock on the election's row alone", function()
    assert.equal(0, run({ "run", "--once", "--oracle", server.url .. "?trust_empty=true", "x", "true" }).code)
    server:sql "BEGIN; SELECT 1 FROM crown.crown_register WHERE name = 'x' FOR UPDATE"
    finally(function() server:sql "ROLLBACK" end)
    local checked = run { "check", "--store", "--oracle", server.url .. "?ttl=2", "run", "x", "true" }
    assert.equal(2, checked.code, checked.stdout)
    has("see SHOW PROCESSLIST", checked.stdout)
  end)

  it("says that the database is missing, and how to make it", function()
    server:sql "CREATE USER every@'%'; GRANT ALL ON *.* TO every@'%'"
    finally(function() server:sql "DROP USER every@'%'" end)
    local url = server:url_for "every":gsub("/crown$", "/nowhere")
    local tried = run { "run", "--once", "--wait", "1", "--oracle", url, "x", "true" }
    has("CREATE DATABASE", tried.stderr)
    assert.equal(2, run({ "check", "--store", "--oracle", url, "run", "x", "true" }).code)
  end)
end)
