local crown = require "crown"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local promise = require "crown.core.promise"
local Proxy = require "support.proxy"
local read_file = require "crown.text.read_file"

describe("crown.postgres", function()
  local server, client

  setup(function() server = Postgres.start() end)
  teardown(function() server:destroy() end)
  before_each(function() client = assert(crown.postgres.connect(server.url)) end)
  after_each(function() client:close() end)

  it("returns rows by column name, numbers and booleans as such, NULL as nil", function()
    local rows = assert(client:query("SELECT $1::int AS a, $2::text AS b, true AS c, NULL AS d, 1.5::float8 AS e, "
      .. "9007199254740993::int8 AS f, $3::boolean AS g, (-9223372036854775808)::int8 AS h", 7, "x'\"%s\\", false))
    assert.same({ a = 7, b = "x'\"%s\\", c = true, e = 1.5, f = "9007199254740993", g = false,
      h = "-9223372036854775808" }, rows[1])
  end)

  it("gives the memory of a question back when it is answered, not when the collector comes", function()
    local text = ("x"):rep(1048576)
    local function resident()
      return tonumber(read_file("/proc/self/status"):match "VmRSS:%s+(%d+)") / 1024
    end
    local function ask()
      assert.equal(1048576, client:query("SELECT length($1) AS size", text)[1].size)
    end
    ask()
    local before = resident()
    collectgarbage "stop"
    for _ = 1, 40 do ask() end
    local grown = resident() - before
    collectgarbage "restart"
    assert(grown < 20, ("%.0f MB more after 40 questions of one"):format(grown))
  end)

  it("tells how many rows a statement touched", function()
    assert(client:query "CREATE TEMP TABLE t (a int)")
    assert.equal(3, assert(client:query "INSERT INTO t VALUES (1), (2), (3)").affected)
  end)

  it("returns nil, the server's message and the SQLSTATE", function()
    local rows, problem, code = client:query "SELECT * FROM nowhere"
    assert.is_nil(rows)
    assert.equal('relation "nowhere" does not exist', problem)
    assert.equal("42P01", code)
    assert.equal(1, client:query("SELECT 1 AS one")[1].one)
  end)

  it("answers each of many tasks with its own result, in whatever order they ask", function()
    local wrong, done = 0, 0
    for i = 1, 200 do
      crown.spawn(function()
        local rows = client:query("SELECT $1::int AS i, pg_sleep($2)", i, i % 7 / 1000)
        if not rows or rows[1].i ~= i then wrong = wrong + 1 end
        done = done + 1
      end)
    end
    eventually(function() return done == 200 end, 20)
    assert.equal(0, wrong)
  end)

  it("never reads the answer of a statement that timed out as that of the next one", function()
    client:set_timeout(0.1)
    local rows, _, code = client:query "SELECT pg_sleep(600), 'first' AS which"
    assert.is_nil(rows)
    assert.equal("timeout", code)
    client:set_timeout(20) -- on another connection: on this one it would wait for the first
    assert.equal("second", client:query("SELECT 'second' AS which")[1].which)
  end)

  it("does not go on with a transaction whose connection was lost", function()
    assert(client:query "BEGIN")
    local pid = client:query("SELECT pg_backend_pid() AS pid")[1].pid
    server:sql("SELECT pg_terminate_backend($1)", pid)
    eventually(function() return client.bare:generation() == 0 end)
    local rows, problem = client:query "SELECT 1 AS one"
    assert.is_nil(rows)
    assert.matches("in the middle of a transaction", problem)
    assert.equal(1, client:query("SELECT 1 AS one")[1].one)
  end)

  it("connects anew after the connection was lost", function()
    local pid = client:query("SELECT pg_backend_pid() AS pid")[1].pid
    server:sql("SELECT pg_terminate_backend($1)", pid)
    eventually(function()
      local rows = client:query "SELECT pg_backend_pid() AS pid"
      return rows and rows[1].pid ~= pid
    end)
  end)

  it("asks on the connection that is meant, or not at all", function()
    local before = client.bare:generation()
    assert.is_truthy(client.bare:query("SELECT 1 AS one", 20, before))
    server:sql("SELECT pg_terminate_backend($1)", client:query("SELECT pg_backend_pid() AS pid")[1].pid)
    eventually(function() return client:query "SELECT 1" and client.bare:generation() > before end)
    assert.is_nil((client.bare:query("SELECT 1 AS one", 20, before)))
  end)

  it("uses no connection that its setup refuses", function()
    local nobody, problem = crown.postgres.connect(server.url, { setup = function() return nil, "not this one" end })
    assert.is_nil(nobody)
    assert.matches("not this one", problem)
  end)

  it("uses none before its setup is done, also not one that is made anew", function()
    local done, looked = promise(), 0
    local other = assert(crown.postgres.connect(server.url, { timeout = 60, setup = function()
      looked = looked + 1
      if looked > 1 then done:wait() end
      return true
    end }))
    finally(function() other:close() end)
    local heard, order = {}, {}
    other:listen("made_anew", function(payload) heard[#heard + 1] = payload end)
    server:sql("SELECT pg_terminate_backend($1)", other:query("SELECT pg_backend_pid() AS pid")[1].pid)
    eventually(function() return other.bare:generation() == 0 end)
    crown.spawn(function() order[#order + 1] = other:query("SELECT 1") and "asked" end)
    eventually(function() return looked == 2 end)
    assert.same({}, order)
    done:resolve(true)
    eventually(function() return order[1] == "asked" end)
    eventually(function()
      server:sql("SELECT pg_notify('made_anew', 'hello')")
      return heard[1] == "hello"
    end)
  end)

  it("tries ever less often to reach a server that ends each connection", function()
    local tries = {}
    local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(peer)
      tries[#tries + 1] = crown.now()
      peer:close()
    end))
    local other = assert(crown.postgres.new(("postgres://crown@127.0.0.1:%d/crown?sslmode=disable"):format(listener:port())))
    other:listen("channel", print)
    eventually(function() return #tries == 6 end, 30)
    other:close()
    listener:close()
    -- A random half is taken off: 25 ms at least before the second try, 400 ms before the sixth.
    assert.is_true(tries[6] - tries[5] >= 0.4)
  end)

  it("hands notifications to functions, and says when some may have been missed", function()
    local heard, missed = {}, 0
    local listener = assert(crown.postgres.connect(server.url))
    local subscription = listener:listen('a "quoted" channel', function(payload) heard[#heard + 1] = payload end,
      function() missed = missed + 1 end)
    eventually(function()
      client:query("SELECT pg_notify($1, $2)", 'a "quoted" channel', "hello")
      return heard[1] == "hello"
    end)
    assert.equal(0, missed)
    server:sql("SELECT pg_terminate_backend($1)", listener:query("SELECT pg_backend_pid() AS pid")[1].pid)
    eventually(function() return missed == 1 end)
    subscription.cancel()
    listener:close()
  end)

  it("hands over all notifications that come together, in their order", function()
    local heard, expected, listening = {}, {}, false
    for i = 1, 100 do expected[i] = tostring(i) end
    local listener = assert(crown.postgres.connect(server.url))
    finally(function() listener:close() end)
    listener:listen("together", function(payload)
      listening = true
      if payload ~= "0" then heard[#heard + 1] = payload end
    end)
    eventually(function()
      client:query "SELECT pg_notify('together', '0')"
      return listening
    end)
    client:query "SELECT pg_notify('together', n::text) FROM generate_series(1, 100) AS n"
    eventually(function() return #heard >= 100 end)
    assert.same(expected, heard)
  end)

  it("finds the primary among several servers", function()
    local replica = server:replica()
    local url = ("postgres://crown@127.0.0.1:%d,127.0.0.1:%d/crown"):format(replica.port, server.port)
    local other = assert(crown.postgres.connect(url))
    assert.is_false(other:query("SELECT pg_is_in_recovery() AS standby")[1].standby)
    other:close()
    local nobody, problem = crown.postgres.connect(replica.url)
    replica:destroy()
    assert.is_nil(nobody)
    assert.matches("read%-only", problem)
  end)

  it("holds up nobody while a server is silent, and gives up in time", function()
    local proxy = Proxy.start(server.port)
    proxy:freeze()
    local beats, done = 0, false
    crown.spawn(function()
      while not done do
        beats = beats + 1
        crown.sleep(0.01)
      end
    end)
    local connected, _, code = crown.postgres.connect(server:url_for("crown", "crown", proxy.port), { timeout = 2 })
    done = true
    proxy:destroy()
    assert.is_nil(connected)
    assert.equal("timeout", code)
    assert.is_true(beats > 20)
  end)

  it("fails a COPY, which pipelines cannot do, and goes on with another connection", function()
    assert(client:query "CREATE TABLE copied (a int)")
    for _, sql in ipairs { "COPY (SELECT 1) TO STDOUT", "COPY copied FROM STDIN" } do
      local rows, problem = client:query(sql)
      assert.is_nil(rows)
      assert.matches("COPY", problem)
      assert.equal(1, assert(client:query "SELECT 1 AS one")[1].one)
    end
  end)

  it("gives each of several servers its share of the time", function()
    local silent = Proxy.start(server.port)
    silent:freeze()
    local url = ("postgres://crown@127.0.0.1:%d,127.0.0.1:%d/crown"):format(silent.port, server.port)
    local other, problem = crown.postgres.connect(url, { timeout = 3 })
    silent:destroy()
    assert(other, problem):close()
  end)

  -- libpq would take the whole list for it, and look its names up in the way.
  it("goes where libpq goes for an empty host in a list", function()
    local _, problem = crown.postgres.connect "postgres:///crown?user=crown&host=nowhere.invalid,&port=1"
    assert.matches("^postgres at /[^:]*:1: ", problem)
  end)

  describe("does not wait for a file that is a pipe:", function()
    local dir

    -- Tries to connect, with a variable that names the pipe, or its directory.
    local function said(url, pipe, variable, value)
      dir = require("support.tempdir")()
      assert.equal(0, crown.exec({ "/usr/bin/mkfifo", dir .. "/" .. pipe }).code)
      local app = assert(io.open(dir .. "/app.lua", "w"))
      app:write(('print(select(2, require("crown").postgres.connect %q))'):format(url))
      app:close()
      local result = require "support.run"({ dir .. "/app.lua" }, { env = { [variable] = dir .. value }, timeout = 30 })
      return result.stdout .. result.stderr
    end

    it("the service file", function()
      assert.matches("no plain file", said("postgres://?service=mine", "service", "PGSERVICEFILE", "/service"))
    end)

    it("the system's service file", function()
      assert.matches("no plain file", said("postgres://?service=mine", "pg_service.conf", "PGSYSCONFDIR", ""))
    end)

    it("the file of passwords", function()
      assert.matches("Connection refused", said("postgres://x@127.0.0.1:1/x", "pass", "PGPASSFILE", "/pass"))
    end)
  end)

  describe("with an URL that does not work", function()
    local cases = {
      { "a host that does not exist", "postgres://crown:secret@nowhere.invalid/crown", "look up nowhere.invalid" },
      { "a port where nobody listens", "postgres://crown:secret@127.0.0.1:1/crown", "Connection refused" },
      { "a database that does not exist", nil, 'database "nowhere" does not exist' },
      { "an option that libpq does not know", "postgres://crown:secret@127.0.0.1/x?colour=red", "colour" },
      { "a bare @ in the password", "postgres://crown:sec@ret@127.0.0.1/x", "percent%-encode it" },
      { "a bare / in the password", "postgres://crown:sec/ret@127.0.0.1/x", "percent%-encode it" },
      { "a bare @ and a bare / in the password", "postgres://crown:sec@ret/x@127.0.0.1:1/x", "percent%-encode it" },
      { "a bad escape in the password", "postgres://crown:secret%zz@127.0.0.1/x", "percent%-encode it" },
      { "an open bracket", "postgres://crown:secret@[::1/x", "IPv6" },
      { "another scheme", "mysql://crown:secret@127.0.0.1/x", "is written postgres://" },
    }
    for _, case in ipairs(cases) do
      it("says so in one line without the password: " .. case[1], function()
        local url = case[2] or ("postgres://crown:secret@127.0.0.1:%d/nowhere"):format(server.port)
        local connected, problem = crown.postgres.connect(url)
        assert.is_nil(connected)
        assert.matches(case[3], problem)
        assert.is_nil(problem:find("sec", 1, true))
        assert.is_nil(problem:find("\n", 1, true))
      end)
    end
  end)
end)

describe("a connection to Postgres that ended", function()
  local server

  setup(function() server = Postgres.start() end)
  teardown(function() server:destroy() end)

  it("is no lost transaction to an oracle, whose every statement is whole", function()
    local client = assert(crown.postgres.connect(server.url, { timeout = 5, bounded = true }))
    finally(function() client:close() end)
    client:set_timeout(0.5)
    local first
    crown.spawn(function() first = client:query "SELECT pg_sleep(0.2)" end)
    crown.sleep(0.05) -- so that both are under way at once
    local rows, problem = client:query [[DO $$ BEGIN PERFORM pg_sleep(2);
      EXCEPTION WHEN query_canceled THEN PERFORM pg_sleep(1); END $$]] -- so the server does not end it by itself
    assert.is_nil(rows)
    assert.is_table(first)
    assert.matches("no answer within 0.5 s", problem)
    client:set_timeout(5)
    assert.same({ { one = 1 } }, { (assert(client:query "SELECT 1 AS one"))[1] })
  end)

  it("is named to who was in the middle of a transaction", function()
    local client = assert(crown.postgres.connect(server.url))
    finally(function() client:close() end)
    assert(client:query "BEGIN")
    server:sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crown'"
    local problem
    eventually(function()
      problem = select(2, client:query "SELECT 1")
      return problem and problem:find "transaction"
    end, 20)
    assert.matches(("^postgres at 127.0.0.1:%d/crown: the connection was lost in the middle of a transaction"):format(server.port), problem)
  end)
end)

describe("a Postgres server that lets nobody in", function()
  local server

  setup(function()
    server = Postgres.start { hba = table.concat({ "host all postgres,nobody,asleep 127.0.0.1/32 trust",
      "host all crown 127.0.0.1/32 scram-sha-256", "host all shut 127.0.0.1/32 reject\n" }, "\n") }
    server:sql "CREATE ROLE asleep NOLOGIN"
    server:sql "CREATE ROLE shut LOGIN"
  end)
  teardown(function() server:destroy() end)

  local MISSING = "; the database is missing: make it %(createdb NAME%), or mend its name in the URL$"
  local HBA = "; let this user in from this host by a line of the server's pg_hba.conf, and reload it$"

  for what, case in pairs {
    ["a database that is missing"] = { "postgres", "nowhere", 'database "nowhere" does not exist' .. MISSING },
    ["a role that is missing"] = { "nobody", "crown",
      'role "nobody" does not exist; the role is missing: make it %(createuser NAME%), or mend the user in the URL$' },
    ["a role that may not log in"] = { "asleep", "crown", 'role "asleep" is not permitted to log in; allow it %(ALTER ROLE … LOGIN%)' },
    ["a wrong password"] = { "crown:wrong", "crown", "password authentication failed.*; check the user and the password in the URL" },
    ["a user without a line in pg_hba.conf"] = { "stranger", "crown", "no pg_hba.conf entry.*" .. HBA },
    ["a user whom pg_hba.conf rejects"] = { "shut", "crown", "pg_hba.conf rejects connection.*" .. HBA },
  } do
    it("says what to do about " .. what, function()
      local connected, problem = crown.postgres.connect(("postgres://%s@127.0.0.1:%d/%s"):format(case[1], server.port, case[2]))
      assert.is_nil(connected)
      assert.matches(case[3], (problem:gsub(" %(the last of %d tries%)$", "")))
      assert.equal(case[1] == "crown:wrong", problem:find "the password in the URL" ~= nil, problem)
    end)
  end
end)

describe("crown.postgres with passwords", function()
  local server

  setup(function() server = Postgres.start { hba = "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n" } end)
  teardown(function() server:destroy() end)

  local function url(password)
    return ("postgres://crown:%s@127.0.0.1:%d/crown"):format(password, server.port)
  end

  it("takes one from the URL", function()
    assert(crown.postgres.connect(url "secret")):close()
  end)

  -- Whatever a server asks for in SCRAM is computed by the client: here some seconds' worth.
  describe("at a server that asks for very many rounds of SCRAM", function()
    local slow

    setup(function()
      local key = "nRtUQf5pIHa0d+xQ2cWCWzU+KT9AKQ8ghWbnNrIjnGs="
      server:sql "CREATE ROLE slow LOGIN"
      server:sql("UPDATE pg_authid SET rolpassword = $1 WHERE rolname = 'slow'",
        "SCRAM-SHA-256$50000000:c2FsdHNhbHRzYWx0c2FsdA==$" .. key .. ":" .. key)
      slow = ("postgres://slow:x@127.0.0.1:%d/crown"):format(server.port)
    end)

    it("goes on with everything else", function()
      local beats, done = 0, false
      crown.spawn(function()
        while not done do
          beats = beats + 1
          crown.sleep(0.01)
        end
      end)
      local client, _, code = crown.postgres.connect(slow, { timeout = 2 })
      done = true
      assert.is_nil(client)
      assert.equal("timeout", code)
      assert.is_true(beats > 20)
    end)

    -- A thread that computes cannot be ended: here they are given up, one after the other, and go on.
    it("leaves other servers their connections, and gets a few threads at the most", function()
      local path = require("support.tempdir")() .. "/app.lua"
      local app = assert(io.open(path, "w"))
      local other = Proxy.start(server.port)
      app:write(([[
local crown = require "crown"
local bare = require "crown.core.postgres"
local problem
repeat
  local given_up = assert(bare.open("%s", { connect_timeout = 0.1 }))
  problem = select(2, given_up:ready(5))
  given_up:close()
until not problem:find "no answer within"
local _, threads = table.concat(require("crown.core.files").list "/proc/self/task", " "):gsub("%%S+", "")
local fine, why = crown.postgres.connect("%s", { timeout = 20 })
print(problem, threads < 16, fine and fine:query("SELECT 1 AS one")[1].one or why)
os.exit(0)]]):format(slow, server:url_for("crown:secret", "crown", other.port)))
      app:close()
      local result = require "support.run"({ path }, { timeout = 60 })
      other:destroy()
      assert.matches("still busy with 127.0.0.1:%d+, though they were given up\ttrue\t1\n", result.stdout, result.stderr)
    end)

    it("ends in the middle of them as well as at any other time", function()
      local path = require("support.tempdir")() .. "/app.lua"
      local app = assert(io.open(path, "w"))
      app:write(('print(select(3, require("crown").postgres.connect("%s", { timeout = 0.1 })))'):format(slow))
      app:close()
      for _ = 1, 10 do
        local result = require "support.run" { path }
        assert.equal("timeout\n", result.stdout)
        assert.equal(0, result.code, result.stderr)
      end
    end)
  end)

  it("says that it is wrong, without showing it", function()
    local client, problem = crown.postgres.connect(url "guessed")
    assert.is_nil(client)
    assert.matches("password authentication failed", problem)
    assert.is_nil(problem:find "guessed")
  end)

  it("reads PGPASSFILE, PGSERVICE and the environment as every libpq program does", function()
    local dir = require("support.tempdir")()
    local function write(name, text)
      local file = assert(io.open(dir .. "/" .. name, "w"))
      file:write(text)
      file:close()
      return dir .. "/" .. name
    end
    local pass = write("pass", ("127.0.0.1:%d:crown:crown:secret\n"):format(server.port))
    assert(crown.exec { "/bin/chmod", "600", pass })
    local service = write("service", ("[mine]\nhost=127.0.0.1\nport=%d\ndbname=crown\nuser=crown\n"):format(server.port))
    local app = write("app.lua", [[
local crown = require "crown"
local client, problem = crown.postgres.connect "postgres://"
print(client and client:query("SELECT current_user AS u")[1].u or problem)]])
    local result = require "support.run"({ app }, { env = { PGPASSFILE = pass, PGSERVICE = "mine",
      PGSERVICEFILE = service } })
    assert.equal("crown\n", result.stdout)
  end)
end)
