-- crown-lua check --store: asks real stores for settings and rights, and claims nothing.
local Candidate = require "support.candidate"
local crown = require "crown"
local Etcd = require "support.etcd"
local etcd = require "crown.oracles.etcd"
local eventually = require("crown.testing").eventually
local files = require "crown.core.files"
local Nats = require "support.nats"
local Player = require "support.oracle_candidate"
local Postgres = require "support.postgres"
local read_file = require "crown.text.read_file"
local Redis = require "support.redis"
local run = require "support.run"
local tempdir = require "support.tempdir"
local Wire = require "support.nats_wire"
local write_file = require "support.write_file"

describe("crown-lua check --store", function()
  it("says that a store gives no answer, with exit code 3", function()
    local result = run { "check", "--store", "--oracle", "redis://127.0.0.1:1", "run", "x", "true" }
    assert.equal(3, result.code)
    assert.matches("PROBLEM%s+redis at 127.0.0.1:1: Connection refused; is the server running", result.stdout)
    assert.matches("a store gives no answer", result.stdout)
  end)

  it("claims nothing", function()
    local place = tempdir()
    local result = run { "check", "--store", "--oracle", "file:" .. place, "run", "x", "true" }
    assert.equal(0, result.code, result.stderr)
    assert.matches("not checked%s+what this candidate may write", result.stdout)
    assert.matches("answer%s+the store answers\n", result.stdout)
    assert.same({}, crown.json.decode(run({ "info", "--oracle", "file:" .. place, "--json" }).stdout).elections)
  end)

  it("makes no directory for the locks of a file", function()
    local place = tempdir() .. "/new"
    for _, more in ipairs { "--json", "--store" } do
      local result = run { "check", more, "--oracle", "file:" .. place, "run", "x", "true" }
      assert.equal(0, result.code, result.stderr)
      assert.is_nil(files.kind(place))
    end
  end)

  it("says that the first start in a new store waits, and for how long", function()
    local server = Redis.start()
    finally(function() server:destroy() end)
    local function record(query)
      return run({ "check", "--store", "--oracle", server.url .. query, "run", "x", "true" }).stdout:match "record +([^\n]*)"
    end
    assert.equal("none yet; the store is new, so the first start waits for 61 s (trust_empty=true skips that)", record "")
    assert.matches("waits for 121 s", record "?ttl=60")
    assert.equal("none yet", record "?trust_empty=true")
    local one = Candidate.start { node = "ann", log = tempdir() .. "/log",
      args = { "run", "--oracle", server.quick, "other", "sleep", "60" } }
    eventually(function() return #one:pids "child" == 1 end, 20)
    assert.equal("none yet", record "")
    one:destroy()
  end)

  it("says which rights a Redis user lacks, each of those of the page, and leaves nothing", function()
    local needed = read_file("docs/oracle-redis.md"):match "ACL SETUSER crown on '>secret' (.-)\nexport":gsub("[\\\n']", " ")
    local server = Redis.start { config = "user all on nopass " .. needed .. "\n" }
    finally(function() server:destroy() end)
    local function check(user)
      return run { "check", "--store", "--oracle", ("redis://%s:x@127.0.0.1:%d"):format(user, server.port), "run", "x", "true" }
    end
    local all = check "all"
    assert.equal(0, all.code, all.stdout .. all.stderr)
    assert.matches("lets this candidate take part", all.stdout)
    for right in needed:gmatch "%S+" do
      local rights = { "reset", "on", "nopass" }
      for other in needed:gmatch "%S+" do
        if other ~= right then rights[#rights + 1] = other end
      end
      server:call("ACL", "SETUSER", "lacking", unpack(rights))
      local result = check "lacking"
      assert.equal(2, result.code, right .. ": " .. result.stdout)
      local words = right:find "^%+" and ("run the '%s' command"):format(right:sub(2)) or ("the right %s is missing"):format(right)
      assert.truthy(result.stdout:find("PROBLEM +lacking: [^\n]*" .. words:gsub("[|*]", "%%%0") .. "\n"),
        right .. ": " .. result.stdout)
      assert.is_nil(result.stdout:find "check %-%-store", right)
    end
    server:call("ACL", "SETUSER", "lacking", "off")
    assert.equal(2, check("lacking").code)
    eventually(function() return #server:call("KEYS", "*") == 0 end) -- who may not delete has them end
  end)

  it("says of a candidate that a right is missing, which server says so, and how to find out", function()
    local server = Redis.start { config = "user lacking on nopass ~* &* +@all -hget -hset\n" }
    finally(function() server:destroy() end)
    for _, right in ipairs { "-hget", "-hset", "-evalsha", "-hmget" } do
      server:call("ACL", "SETUSER", "lacking", "+@all", right)
      local result = run { "run", "--once", "--wait", "1", "--oracle",
        ("redis://lacking:x@127.0.0.1:%d?trust_empty=true"):format(server.port), "x", "true" }
      assert.equal(3, result.code, right)
      assert.matches(("redis at 127.0.0.1:%d: .*; crown%%-lua check %%-%%-store names the rights"):format(server.port),
        result.stderr, right)
      assert.is_nil(result.stderr:find("changes faster", 1, true))
    end
  end)

  describe("on NATS", function()
    local PASSWORDS = "{ user: %s, password: x, permissions: { publish: { %s }, subscribe: { %s } } }"
    local NEEDED = { "$KV.B.>", "$JS.API.STREAM.INFO.KV_B", "$JS.API.STREAM.MSG.GET.KV_B", "$JS.API.CONSUMER.CREATE.KV_B",
      "$JS.API.STREAM.CREATE.KV_B", "crown.evict.B.>" }
    local server

    local function allow(list)
      return ('allow: ["%s"]'):format(table.concat(list, '", "'))
    end

    local function without(word)
      local list = {}
      for _, one in ipairs(NEEDED) do
        if one ~= word then list[#list + 1] = one end
      end
      return allow(list)
    end

    before_each(function() -- one of its own: a test makes the bucket, and another looks how it is without
      local users = { "{ user: all, password: x }",
        PASSWORDS:format("exact", allow(NEEDED), allow { "_INBOX.>", "crown.evict.B.>" }),
        PASSWORDS:format("deaf", allow(NEEDED), allow { "_INBOX.>" }),
        PASSWORDS:format("mute", allow(NEEDED), allow { "crown.evict.B.>" }) }
      for i, word in ipairs(NEEDED) do
        users[#users + 1] = PASSWORDS:format("lacks" .. i, without(word), allow { "_INBOX.>", "crown.evict.B.>" })
      end
      server = Nats.start { config = "authorization { users: [" .. table.concat(users, ",\n") .. "] }" }
    end)

    after_each(function() server:destroy() end)

    local function check(user)
      return run { "check", "--store", "--oracle", ("nats://%s:x@127.0.0.1:%d/B?timeout=1"):format(user, server.port), "run",
        "x", "true" }
    end

    local function is_asked(user, subject)
      local result = check(user)
      assert.equal(2, result.code, user .. ": " .. result.stdout .. result.stderr)
      assert.truthy(result.stdout:find(subject, 1, true), user .. ": " .. result.stdout)
    end

    it("says each right that a user lacks, before there is a bucket", function()
      local exact = check "exact"
      assert.equal(0, exact.code, exact.stdout .. exact.stderr)
      assert.matches("which the first candidate makes", exact.stdout)
      assert.matches("lets this candidate take part", exact.stdout)
      for i, word in ipairs(NEEDED) do is_asked("lacks" .. i, (word:gsub("%.>$", ""))) end
      is_asked("deaf", 'Subscription to "crown.evict.B.>')
      is_asked("mute", 'Subscription to "_INBOX.')
    end)

    it("says why a user is not let in", function()
      local result = run { "check", "--store", "--oracle", ("nats://all:wrong@127.0.0.1:%d/B?timeout=1"):format(server.port), "run",
        "x", "true" }
      assert.equal(2, result.code, result.stdout .. result.stderr)
      assert.matches("PROBLEM.-Authorization Violation", result.stdout)
    end)

    it("goes by the bucket's TTL, and says so", function()
      run { "run", "--once", "--oracle", ("nats://all:x@127.0.0.1:%d/B?ttl=6&trust_empty=true"):format(server.port), "x", "true" }
      local result = run { "check", "--store", "--oracle", ("nats://all:x@127.0.0.1:%d/B?ttl=60"):format(server.port), "run", "x",
        "true" }
      assert.equal(0, result.code, result.stdout .. result.stderr)
      assert.matches("warning%s+the store's TTL of 6 s counts, not the 60 s of the options", result.stdout)
      assert.matches("TTL 6 s", result.stdout)
      assert.is_nil(result.stdout:find("TTL 60 s", 1, true))
    end)

    it("says which limits of a bucket keep a candidate from writing, and names the server", function()
      local wire = Wire.open(server.port, '{"verbose":false,"headers":true,"user":"all","pass":"x"}')
      local limits = { ["max_msg_size"] = { max_msg_size = 10 }, ["is full %(max_msgs 1%)"] = { max_msgs = 1 },
        ["keeps no more than 50 bytes %(max_bytes%)"] = { max_bytes = 50 },
        ["is full %(max_bytes 400"] = { max_bytes = 400 }, ["does not take %$KV.B.x"] = { subjects = { "$KV.B.y", "$KV.B.z.>" } } }
      for words, limit in pairs(limits) do
        wire:make_bucket("B", 60, limit)
        if limit.max_msgs or limit.max_bytes == 400 then assert(wire:ask("$KV.B.other", nil, ("x"):rep(99)).seq) end
        local result = check "all"
        wire:ask("$JS.API.STREAM.DELETE.KV_B", nil, "")
        assert.equal(2, result.code, result.stdout .. result.stderr)
        assert.matches(("PROBLEM%%s+nats at 127.0.0.1:%d: the bucket B .-"):format(server.port) .. words, result.stdout)
      end
      wire.connection:close()
    end)

    it("says that a user may not ask a leader to go", function()
      local wire = Wire.open(server.port, '{"verbose":false,"headers":true,"user":"all","pass":"x"}')
      wire:make_bucket("B", 60)
      assert(wire:ask("$KV.B.x", "Crown-Token: t\r\nCrown-Epoch: 1", "one").seq)
      wire.connection:close()
      local result = run { "evict", "--force", "--oracle", ("nats://lacks6:x@127.0.0.1:%d/B"):format(server.port), "x" }
      assert.equal(3, result.code)
      assert.matches('Permissions Violation for Publish to "crown.evict.B.x"', result.stderr)
    end)

    it("asks without making a bucket, or writing into one", function()
      local plain = ("nats://all:x@127.0.0.1:%d/B"):format(server.port)
      assert.matches("which the first candidate makes", check("all").stdout)
      run { "run", "--once", "--oracle", plain .. "?ttl=4&trust_empty=true", "x", "true" }
      local before = crown.json.decode(run({ "info", "--oracle", plain, "--json" }).stdout)
      assert.equal(0, check("exact").code)
      assert.equal(0, check("lacks5").code) -- what makes a bucket is not needed where there is one
      local after = crown.json.decode(run({ "info", "--oracle", plain, "--json" }).stdout)
      assert.same({ before.store, before.elections }, { after.store, after.elections })
    end)

    it("refuses a server without JetStream, and a bucket that keeps history", function()
      local bare = Nats.start { config = "accounts { A { users: [{ user: a, password: x }] } }" }
      local plain = Nats.start()
      finally(function() bare:destroy(); plain:destroy() end)
      local result = run { "check", "--store", "--oracle", ("nats://a:x@127.0.0.1:%d/B"):format(bare.port), "run", "x", "true" }
      assert.equal(2, result.code, result.stdout .. result.stderr)
      assert.matches("PROBLEM.-JetStream", result.stdout)
      assert.equal(3, run({ "check", "--store", "--oracle", "nats://127.0.0.1:1/B", "run", "x", "true" }).code)
      local wire = Wire.open(plain.port)
      wire:make_bucket("HISTORY", 60, { max_msgs_per_subject = 5 })
      wire.connection:close()
      local kept = run { "check", "--store", "--oracle", plain.url .. "/HISTORY", "run", "x", "true" }
      assert.equal(2, kept.code, kept.stdout .. kept.stderr)
      assert.matches("PROBLEM%s+nats at [^ ]+: the bucket HISTORY keeps history", kept.stdout)
    end)
  end)

  describe("on etcd", function()
    local server

    setup(function()
      server = Etcd.start()
      local function ctl(...) server:ctl(...) end
      for _, user in ipairs { "root", "fit", "reader", "writer", "stranger" } do ctl("user", "add", user .. ":x") end
      for role, kind in pairs { fit = "readwrite", reader = "read", writer = "write" } do
        ctl("role", "add", role)
        ctl("role", "grant-permission", role, "--prefix=true", kind, "app/")
        ctl("user", "grant-role", role, role)
      end
      ctl("user", "grant-role", "root", "root")
      ctl("auth", "enable")
    end)

    teardown(function() server:destroy() end)

    local function check(login, place)
      return run { "check", "--store", "--oracle", ("etcd://%s%s%s"):format(login, server.endpoint, place or "/app"), "run", "x",
        "true" }
    end

    it("says which keys a user may not read or write", function()
      local fit = check "fit:x@"
      assert.equal(0, fit.code, fit.stdout .. fit.stderr)
      assert.matches("store%s+etcd 3[%d.]+, 1 member", fit.stdout)
      assert.matches("lets this candidate take part", fit.stdout)
      for login, problem in pairs { ["reader:x@"] = "reader may not write app/x/", ["writer:x@"] = "writer may not read app/",
        ["stranger:x@"] = "stranger may not read app/", [""] = "user name is empty" } do
        local result = check(login)
        assert.equal(2, result.code, login .. result.stdout .. result.stderr)
        assert.truthy(result.stdout:find(problem, 1, true), result.stdout)
      end
      assert.truthy(check("fit:x@", "").stdout:find("fit may not read crown.age", 1, true))
      assert.matches("authentication failed", check("fit:wrong@").stdout)
    end)

    it("is not needed to learn from a candidate which key it may not use", function()
      local one = Player.new(etcd, { name = "x", url = ("etcd://fit:x@%s"):format(server.endpoint) })
      local verdict
      eventually(function() verdict = one:claim() return verdict[1] == "unknown" and verdict[2]:find "denied" end)
      assert.equal(("etcd at %s: etcdserver: permission denied: fit needs a right to read and write crown.age")
        :format(server.endpoint), verdict[2])
    end)

    it("is not needed to learn from the verbs which keys a user may not use", function()
      for words, verb in pairs { ["the keys from app/ to app0"] = "info", ["the keys from app/x/ to app/x0"] = "evict" } do
        local url = ("etcd://stranger:x@%s/app"):format(server.endpoint)
        local result = run { verb, "--oracle", url, unpack(verb == "evict" and { "--force", "x" } or {}) }
        assert.equal(3, result.code)
        assert.truthy(result.stderr:find("denied: stranger needs a right to read and write " .. words, 1, true), result.stderr)
      end
    end)

    it("says that the key of the store's age has no lease", function()
      server:ctl("--user", "root:x", "put", "app/.age", "10")
      local result = check "fit:x@"
      server:ctl("--user", "root:x", "del", "app/.age")
      assert.matches("warning%s+app/.age has no lease: .*, and the 10 s of its value: .*delete the key", result.stdout)
      assert.is_nil(check("fit:x@").stdout:find "no lease")
    end)

    it("warns of a ttl that etcd makes longer, a fraction of a second too", function()
      local function warning(ttl) return check("fit:x@", "/app?ttl=" .. ttl).stdout:match "warning%s+([^\n]*a ttl of[^\n]*)" end
      assert.equal("by its election time-out etcd makes a ttl of 1 s one of 2 s: a failover takes up to 2 s", warning "1")
      assert.equal("by whole seconds etcd makes a ttl of 1.5 s one of 2 s: a failover takes up to 2 s", warning "1.5")
      assert.equal("by whole seconds etcd makes a ttl of 2.5 s one of 3 s: a failover takes up to 3 s", warning "2.5")
      assert.is_nil(warning "2")
    end)

    it("writes nothing", function()
      assert.equal("", server:ctl("--user", "root:x", "get", "--prefix", "", "--keys-only"))
    end)
  end)

  it("says whether an HTTP service lets the candidate in, and claims nothing there", function()
    local seen, status = {}, "200 OK"
    local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
      seen[#seen + 1] = connection:read "*l"
      while (connection:read "*l" or "\r") ~= "\r" do end
      connection:write(("HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"):format(status))
      connection:close()
    end))
    finally(function() listener:close() end)
    local function check()
      return run { "check", "--store", "--oracle", ("http://127.0.0.1:%d/locks"):format(listener:port()), "run", "x", "true" }
    end
    for answer, code in pairs { ["200 OK"] = 0, ["404 Not Found"] = 0, ["405 No"] = 0, ["401 No"] = 2, ["403 No"] = 2,
      ["302 Found"] = 2, ["503 No"] = 3 } do
      status = answer
      local result = check()
      assert.equal(code, result.code, answer .. ": " .. result.stdout .. result.stderr)
      if code == 0 then assert.matches("not checked%s+whether it would grant a claim", result.stdout) end
      if code ~= 0 then assert.truthy(result.stdout:find(answer:match "%d+", 1, true), result.stdout) end
    end
    for _, line in ipairs(seen) do assert.matches("^GET /locks/x ", line) end
  end)

  it("says that a Redis takes no writes, or has too few replicas, and asks each of several servers", function()
    local server, replica = Redis.start(), Redis.start()
    finally(function() server:destroy(); replica:destroy() end)
    local function check(oracle) return run { "check", "--store", "--oracle", oracle, "run", "x", "true" } end
    local few = check(("redis://127.0.0.1:%d?min_replicas=1"):format(server.port))
    assert.equal(2, few.code, few.stdout .. few.stderr)
    assert.matches("PROBLEM%s+min_replicas is 1, and the server has 0 replicas", few.stdout)
    replica:call("REPLICAOF", "127.0.0.1", tostring(server.port))
    local old = check(("redis://127.0.0.1:%d"):format(replica.port))
    assert.equal(2, old.code, old.stdout .. old.stderr)
    assert.matches("PROBLEM%s+the server is a replica: name the primary, or its Sentinels", old.stdout)
    local path = write_file(tempdir() .. "/app.lua", ([[require("crown").elect { name = "c", oracle = { "redis",
      urls = { "redis://127.0.0.1:%d", "redis://127.0.0.1:%d", "redis://127.0.0.1:1" } } }]])
      :format(server.port, replica.port))
    local several = run { "check", "--store", path }
    assert.equal(2, several.code, several.stdout .. several.stderr)
    assert.matches(("PROBLEM%%s+127.0.0.1:%d: the server is a replica"):format(replica.port), several.stdout)
    assert.matches("PROBLEM%s+127.0.0.1:1: .-Connection refused", several.stdout)
    assert.is_nil(several.stdout:find(("PROBLEM%%s+127.0.0.1:%d: "):format(server.port)))
    local behind = check(("redis+majority://127.0.0.1:1,127.0.0.1:%d,127.0.0.1:%d"):format(server.port, replica.port))
    assert.equal(2, behind.code, behind.stdout .. behind.stderr)
    assert.matches("the server is a replica.-PROBLEM%s+127.0.0.1:1: .-Connection refused", behind.stdout)
    local none = check "redis+majority://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"
    assert.equal(3, none.code, none.stdout .. none.stderr)
    for i = 1, 3 do assert.matches(("127.0.0.1:%d: .-Connection refused"):format(i), none.stdout) end
  end)

  it("does not wait for each of a hundred answers of servers that stand still, and says which they are", function()
    local servers = { Redis.start(), Redis.start(), Redis.start() }
    finally(function()
      for _, one in ipairs(servers) do one:thaw(); one:destroy() end
    end)
    local function check(url) return run({ "check", "--store", "--oracle", url, "run", "x", "true" }, { timeout = 20 }) end
    local ports = { servers[1].port, servers[2].port, servers[3].port }
    local most = ("redis+majority://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?timeout=0.5"):format(unpack(ports))
    servers[1]:freeze()
    local alone = check(("redis://127.0.0.1:%d?timeout=0.5"):format(ports[1]))
    assert.equal(3, alone.code, alone.stdout .. alone.stderr)
    local one = check(most)
    assert.equal(2, one.code, one.stdout .. one.stderr)
    assert.matches(("PROBLEM%%s+127.0.0.1:%d: no answer"):format(ports[1]), one.stdout)
    servers[2]:freeze()
    local two = check(most)
    assert.equal(2, two.code, two.stdout .. two.stderr)
    for i = 1, 2 do assert.matches(("127.0.0.1:%d: no answer"):format(ports[i]), two.stdout) end
  end)

  it("does not call a store silent that answers one question and takes too long for another one", function()
    local path = write_file(tempdir() .. "/app.lua", [[
      local function late() return nil, "no answer within 5 s", "timeout" end
      require("crown").elect { name = "x", oracle = { init = function() return {} end, claim = function() return false end,
        refresh = function() return false end, rights = function() return {} end,
        health = function() return { facts = { { "Store", "is fine" } } } end, list = late } }]])
    local result = run { "check", "--store", path }
    assert.equal(2, result.code, result.stdout .. result.stderr)
    assert.matches("PROBLEM%s+the store answers, but does not say who leads: no answer within 5 s", result.stdout)
    assert.matches("store%s+is fine", result.stdout)
    assert.is_nil(result.stdout:find("gives no answer", 1, true))
  end)

  it("says that a Redis refuses writes for now, in the server's words, and leaves nothing there", function()
    local server = Redis.start()
    finally(function() server:destroy() end)
    local function check()
      return run { "check", "--store", "--oracle", ("redis://127.0.0.1:%d?timeout=1"):format(server.port), "run", "x", "true" }
    end
    assert.equal(0, check().code)
    assert.equal(0, server:call "DBSIZE")
    for _, case in ipairs { { "CONFIG", "maxmemory", "1", "0", "OOM" }, { "CONFIG", "min-replicas-to-write", "1", "0", "NOREPLICAS" } } do
      assert(server:call("CONFIG", "SET", case[2], case[3]))
      local result = check()
      assert.equal(2, result.code, result.stdout .. result.stderr)
      assert.matches("PROBLEM%s+the server refuses a write: .*" .. case[5], result.stdout)
      assert(server:call("CONFIG", "SET", case[2], case[4]))
    end
    assert(server:call("CLIENT", "PAUSE", "60000", "WRITE"))
    local paused = check()
    assert.equal(2, paused.code, paused.stdout .. paused.stderr)
    assert.matches("PROBLEM%s+the server refuses a write: no answer in time", paused.stdout)
  end)

  it("says what of several rights a Postgres user lacks", function()
    local server = Postgres.start()
    finally(function() server:destroy() end)
    local function sql(...)
      for _, statement in ipairs { ... } do server:sql(statement) end
    end
    local function check(url) return run { "check", "--store", "--oracle", url, "run", "x", "true" } end
    local function advisory(url) return (url:gsub("^postgres", "postgres+advisory")) end
    for _, url in ipairs { server.url, advisory(server.url) } do run { "run", "--once", "--oracle", url, "x", "true" } end
    sql("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC", "CREATE ROLE half LOGIN",
      "GRANT SELECT, INSERT ON crown_lease_v1 TO half", "GRANT SELECT ON crown_store_v1 TO half",
      "CREATE ROLE quiet LOGIN", "ALTER ROLE quiet SET default_transaction_read_only = on",
      "GRANT ALL ON crown_lease_v1, crown_store_v1 TO quiet", "GRANT EXECUTE ON FUNCTION pg_control_system() TO quiet")
    local half = check(server:url_for "half")
    assert.equal(2, half.code, half.stdout .. half.stderr)
    assert.matches("PROBLEM%s+half may not UPDATE crown_lease_v1\n", half.stdout)
    assert.matches("PROBLEM%s+half may not call pg_control_system%(%): GRANT EXECUTE", half.stdout)
    assert.is_nil(half.stdout:find("INSERT", 1, true))
    sql "GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC"
    assert.matches("half may not SELECT, INSERT and UPDATE crown_advisory_v1", check(advisory(server:url_for "half")).stdout)
    for _, more in ipairs { "?target_session_attrs=any", "" } do
      local quiet = check(server:url_for "quiet" .. more)
      assert.equal(2, quiet.code, quiet.stdout .. quiet.stderr)
      assert.matches("PROBLEM%s+quiet's transactions are read%-only", quiet.stdout)
    end
    sql "ALTER TABLE crown_lease_v1 SET UNLOGGED"
    assert.matches("PROBLEM%s+crown_lease_v1 is UNLOGGED", check(server.url).stdout)
    sql("ALTER TABLE crown_lease_v1 SET LOGGED", "DROP TRIGGER crown_lease_v1_stay ON crown_lease_v1")
    assert.matches("PROBLEM%s+crown_lease_v1 is not complete, and half does not own it", check(server:url_for "half").stdout)
    assert.equal(0, check(server.url).code) -- its owner completes it
    sql "ALTER TABLE crown_store_v1 DROP COLUMN behind" -- as version 0.1.0 made it
    assert.matches("PROBLEM%s+crown_store_v1 is not complete, and half does not own it", check(advisory(server:url_for "half")).stdout)
    sql("ALTER TABLE crown_store_v1 ADD COLUMN behind DOUBLE PRECISION NOT NULL DEFAULT 0", "DELETE FROM crown_store_v1")
    assert.matches("PROBLEM%s+crown_store_v1 has lost a row", check(advisory(server.url)).stdout)
  end)

  it("says that Oban's table is not there, or may not be read", function()
    local server = Postgres.start()
    finally(function() server:destroy() end)
    local function check(user)
      return run { "check", "--store", "--oracle", "oban+" .. server:url_for(user), "run", "x", "true" }
    end
    server:sql "CREATE ROLE reader LOGIN"
    assert.matches("PROBLEM%s+there is no table public.oban_peers", check("reader").stdout)
    server:sql "CREATE TABLE oban_peers (name text PRIMARY KEY, node text, started_at timestamp, expires_at timestamp)"
    local refused = check "reader"
    assert.equal(2, refused.code)
    assert.matches("PROBLEM%s+reader may not SELECT public.oban_peers", refused.stdout)
    server:sql "GRANT SELECT ON oban_peers TO reader"
    assert.equal(0, check("reader").code)
    local shown = run { "check", "--json", "--store", "--oracle", "oban+" .. server:url_for "reader", "run", "x", "true" }
    assert.truthy(shown.stdout:find('"problems":[]', 1, true), shown.stdout)
    assert.same({}, crown.json.decode(shown.stdout)[1].store.problems)
  end)

  it("says what rights a user lacks, and shows settings that are dangerous", function()
    local server = Postgres.start()
    finally(function() server:destroy() end)
    server:sql "CREATE ROLE stranger LOGIN"
    local result = run { "check", "--store", "--oracle", server:url_for "stranger", "run", "x", "true" }
    assert.equal(2, result.code, result.stdout .. result.stderr)
    assert.matches("PROBLEM%s+there is no table .-, and stranger may not create it", result.stdout)
    local fine = crown.json.decode(run({ "check", "--json", "--store", "--oracle", server.url, "run", "x", "true" }).stdout)[1].store
    assert.same({}, fine.problems)
    assert.is_true(fine.reached)
    assert.equal("Store", fine.facts[1][1])
    assert.same({}, crown.json.decode(run({ "info", "--oracle", server.url, "--json" }).stdout).elections)
  end)
end)
