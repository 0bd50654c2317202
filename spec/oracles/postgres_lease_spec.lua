local crown = require "crown"
local eventually = require("crown.testing").eventually
local lease = require "crown.oracles.postgres_lease"
local Player = require "support.oracle_candidate"
local Postgres = require "support.postgres"
local run = require "support.run"

local serial = 0

describe("the lease oracle on Postgres", function()
  local server, name

  setup(function() server = Postgres.start() end)
  teardown(function() server:destroy() end)
  before_each(function()
    serial = serial + 1
    name = "lease-" .. serial
  end)

  local function candidate(node, options)
    local given = { name = name, node = node, url = server.url, ttl = 30 }
    for key, value in pairs(options or {}) do given[key] = value end
    return Player.new(lease, given)
  end

  local function row()
    return server:sql("SELECT *, expires_at > clock_timestamp() AS runs FROM crown_lease_v1 WHERE lock_name = $1",
      name)[1]
  end

  it("tells a follower who leads, and in which epoch", function()
    local one, two = candidate "one", candidate "two"
    local won = one:claim()
    local denied = two:claim()
    assert.equal("denied", denied[1])
    assert.equal("one", denied[3])
    assert.equal(won[4], denied[4])
  end)

  it("refreshes at a third of the TTL by default", function()
    local one = candidate "one"
    one:claim()
    local delay = one:refresh()[2]
    assert.is_true(delay > 8 and delay <= 10)
    local short = Player.new(lease, { name = name .. "-b", url = server.url, duration = 12 })
    short:claim()
    delay = short:refresh()[2]
    assert.is_true(delay > 3 and delay <= 4)
  end)

  it("wakes each of several followers in one runtime", function()
    local one, two, three = candidate "one", candidate "two", candidate "three"
    one:claim()
    Postgres.await_listener(function() return two.state.store.store.listener end)
    one:abdicate()
    for _, follower in ipairs { two, three } do eventually(function() return follower:message() end) end
  end)

  it("frees at once on abdicate, keeps the row and its epoch, and wakes the followers", function()
    local one, two = candidate "one", candidate "two"
    local epoch = one:claim()[4]
    two:claim()
    Postgres.await_listener(function() return two.state.store.store.listener end)
    one:abdicate()
    assert.is_false(row().runs)
    local message = eventually(function() return two:message() end)
    assert.equal(epoch + 1, two:call("handle_info", message)[4])
  end)

  it("takes names and nodes with quotes, per cent signs and backslashes, up to the longest", function()
    for _, text in ipairs { [["quoted" 'twice']], "100 %s %d %%", [[back\slash {a,b}]], ("x"):rep(1000), "Ümläut ☂" } do
      name = text
      local one, two = candidate("no'de \"%s\\"), candidate "two"
      assert.equal("granted", one:claim()[1])
      assert.equal("no'de \"%s\\", two:claim()[3])
      assert.equal("granted", one:refresh()[1])
      one:abdicate()
    end
  end)

  it("counts a lost connection as not known, and goes on when it is back", function()
    local one = candidate "one"
    local epoch = one:claim()[4]
    server:sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crown'"
    eventually(function()
      local verdict = one:refresh()
      assert.are_not.equal("denied", verdict[1])
      return verdict[1] == "granted" and verdict[4] == epoch
    end)
  end)

  it("makes its table once, however many start on an empty database at once", function()
    server:sql "DROP DATABASE IF EXISTS empty"
    server:sql "CREATE DATABASE empty OWNER crown"
    local app = require("support.tempdir")() .. "/app.lua"
    local file = assert(io.open(app, "w"))
    file:write [[
local crown = require "crown"
crown.elect { name = "first", oracle = { "postgres_lease", url = arg[1], ttl = 90, timeout = 20 },
  handlers = { won = function(term) print("won " .. term.epoch) crown.sleep(0.2) os.exit(0) end } }
crown.on("leadership.rejected", function() os.exit(0) end)]]
    file:close()
    local won, wrong, done = 0, {}, 0
    for i = 1, 50 do
      crown.spawn(function()
        local result = run({ "--node", "n" .. i, app, server:url_for("crown", "empty") }, { timeout = 120 })
        if result.stdout:match "^won " then won = won + 1 end
        if result.stderr:find "error" then wrong[#wrong + 1] = result.stderr end
        done = done + 1
      end)
    end
    eventually(function() return done == 50 end, 60)
    assert.same({}, wrong)
    assert.is_true(won >= 1)
  end)

  describe("beside nodes of Elixir's Crown", function()
    -- The statements of Crown 0.2, as it sends them.
    local UPSERT = [[
INSERT INTO crown_lease_v1 (lock_name, holder, expires_at)
VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
ON CONFLICT (lock_name) DO UPDATE SET holder = EXCLUDED.holder, expires_at = EXCLUDED.expires_at
WHERE crown_lease_v1.expires_at < clock_timestamp() OR crown_lease_v1.holder = EXCLUDED.holder
RETURNING holder]]
    local function crown_claims(node, seconds)
      return #server:sql(UPSERT, name, node, seconds or 30) == 1
    end
    local function crown_abdicates(node)
      server:sql("DELETE FROM crown_lease_v1 WHERE lock_name = $1 AND holder = $2", name, node)
    end

    it("takes the deletion of a row of ours for an eviction: its leader may still act", function()
      local one, two = candidate "one", candidate "two"
      assert.equal("granted", one:claim()[1])
      server:sql("DELETE FROM crown_lease_v1 WHERE lock_name = $1", name)
      assert.equal("denied", two:claim()[1])
      assert.is_false(crown_claims "other@host")
      assert.equal("evicted", one:refresh()[1])
      one:abdicate()
      eventually(function() return two:claim()[1] == "granted" end, 2)
    end)

    it("never leads while their lease runs, nor lets them lead while ours does", function()
      local one = candidate "app@host"
      assert.equal("granted", one:claim()[1])
      assert.is_false(crown_claims "other@host")
      one:abdicate()
      eventually(function() return crown_claims "other@host" end, 1)
      local denied = one:claim()
      assert.same({ "denied", "other@host" }, { denied[1], denied[3] })
      assert.are_not.equal("granted", one:refresh()[1])
    end)

    it("is not taken for a node of theirs that bears the same name (R6)", function()
      local one = candidate "nonode@nohost"
      one:claim()
      assert.is_false(crown_claims "nonode@nohost")
    end)

    it("claims as soon as they abdicate, and keeps the epoch through it (R7, R8)", function()
      local one = candidate "one"
      local epoch = one:claim()[4]
      one:abdicate()
      eventually(function() return crown_claims "other@host" end, 1)
      one:claim()
      Postgres.await_listener(function() return one.state.store.store.listener end)
      crown_abdicates "other@host"
      local message = eventually(function() return one:message() end)
      assert.is_true(one:call("handle_info", message)[4] > epoch)
    end)

    it("extends a table that they have made, and keeps what is in it", function()
      server:sql "DROP DATABASE IF EXISTS elixir"
      server:sql "CREATE DATABASE elixir OWNER crown"
      local theirs = assert(crown.postgres.connect(server:url_for("crown", "elixir")))
      assert(theirs:query [[CREATE TABLE crown_lease_v1 (lock_name TEXT PRIMARY KEY, holder TEXT NOT NULL,
        expires_at TIMESTAMPTZ NOT NULL)]])
      assert(theirs:query(UPSERT, name, "other@host", 30))
      local url = server:url_for("crown", "elixir")
      assert.equal("other@host", lease.list({ url = url })[1].node)
      local denied = candidate("one", { url = url }):claim()
      assert.same({ "denied", "other@host" }, { denied[1], denied[3] })
      assert.is_false(denied[5])
      theirs:close()
    end)

    it("says what to do when it may not extend their table", function()
      server:sql "DROP DATABASE IF EXISTS foreign_owner"
      server:sql "CREATE DATABASE foreign_owner"
      local owner = server:admin "foreign_owner"
      assert(owner:query [[CREATE TABLE crown_lease_v1 (lock_name TEXT PRIMARY KEY, holder TEXT NOT NULL,
        expires_at TIMESTAMPTZ NOT NULL)]])
      assert(owner:query "GRANT SELECT, INSERT, UPDATE, DELETE ON crown_lease_v1 TO crown")
      local verdict = candidate("one", { url = server:url_for("crown", "foreign_owner") }):claim()
      owner:close()
      assert.equal("unknown", verdict[1])
      assert.matches("as the table's owner, or run the statements of docs/oracle%-postgres.md", verdict[2])
    end)
  end)

  describe("evict", function()
    it("makes the leader step down, and waits until it has", function()
      local one, two = candidate "one", candidate "two"
      local epoch = one:win()[4]
      two:claim()
      crown.spawn(function()
        eventually(function() return one:refresh()[1] == "evicted" end, 10)
        one:abdicate()
      end)
      assert.same({ node = "one", epoch = epoch }, lease.evict({ url = server.url }, name))
      assert.equal("granted", two:claim()[1])
      assert.equal("granted", two:refresh()[1])
    end)

    it("says that nobody leads where nobody has made the table yet", function()
      server:sql "CREATE DATABASE unused OWNER crown"
      local evicted, problem, code = lease.evict({ url = server:url_for("crown", "unused") }, name)
      assert.is_nil(evicted)
      assert.same({ ("nobody leads '%s'"):format(name), "no_leader" }, { problem, code })
    end)

    it("says when nobody leads, and when the leader is none of ours", function()
      candidate("one"):claim()
      local evicted, problem = lease.evict({ url = server.url }, "nobody")
      assert.is_nil(evicted)
      assert.equal("nobody leads 'nobody'", problem)
      server:sql("UPDATE crown_lease_v1 SET holder = 'other@host' WHERE lock_name = $1", name)
      evicted, problem = lease.evict({ url = server.url }, name)
      assert.is_nil(evicted)
      assert.matches("led by other@host, which takes no evictions", problem)
    end)
  end)

  it("lists elections with leader, epoch and time left, for info", function()
    local one = candidate "one"
    one:claim()
    local result = run { "info", "--oracle", server.url, "--json" }
    assert.equal(0, result.code)
    local found
    for _, election in ipairs(crown.json.decode(result.stdout).elections) do
      if election.name == name then found = election end
    end
    assert.equal("one", found.node)
    assert.is_true(found.renewed_ago < 30)
  end)

  it("ends info with exit code 3 when the server cannot be reached, without the password", function()
    local result = run { "info", "--oracle", "postgres://crown:secret@127.0.0.1:1/crown" }
    assert.equal(3, result.code)
    assert.is_nil((result.stdout .. result.stderr):find "secret")
  end)

  for option, case in pairs {
    ttl = { "0.1", "ttl must be at least 0.2" },
    refresh = { "40", "refresh" },
    synchronous_commit = { "off", "forget a lease in a crash" },
    colour = { "red", "colour" },
  } do
    it("refuses a wrong option at check time: " .. option, function()
      local dir = require("support.tempdir")()
      local file = assert(io.open(dir .. "/app.lua", "w"))
      file:write 'require("crown").elect { name = "x", oracle = arg[1] }'
      file:close()
      local result = run { "check", dir .. "/app.lua", ("%s?%s=%s"):format(server.url, option, case[1]) }
      assert.equal(2, result.code)
      assert.matches(case[2], result.stderr)
    end)
  end
end)

describe("the lease oracle, when the server cannot write", function()
  it("says that the disk is full, and leads as soon as it is not", function()
    local dir = require("support.tempdir")()
    local mounted = crown.exec { "mount", "-t", "tmpfs", "-o", "size=150m", "none", dir }
    if not mounted or mounted.code ~= 0 then return pending "only root can mount a small disk" end
    local server = Postgres.start { dir = dir, config = "autovacuum = off\nwal_recycle = off\nfull_page_writes = off" }
    local one = Player.new(lease, { name = "first", node = "one", url = server.url, ttl = 30 })
    assert.equal("granted", one:claim()[1])
    crown.exec { "dd", "if=/dev/zero", "of=" .. dir .. "/filler", "bs=64k" }
    local verdict
    for i = 1, 500 do -- each row is new, so that the table has to grow
      verdict = Player.new(lease, { name = i .. ("x"):rep(900), node = "one", url = server.url, ttl = 30 }):claim()
      if verdict[1] ~= "granted" then break end
    end
    assert.equal("unknown", verdict[1])
    assert.matches("^postgres at .*No space left on device; make room on the server's disk", verdict[2])
    os.remove(dir .. "/filler")
    eventually(function() return one:claim()[1] == "granted" end, 10)
    server:destroy()
    assert.equal(0, crown.exec({ "umount", "-l", dir }).code)
  end)

  it("says which right is missing", function()
    local server = Postgres.start()
    local one = Player.new(lease, { name = "first", node = "one", url = server.url, ttl = 30 })
    assert.equal("granted", one:claim()[1])
    server:sql "ALTER TABLE crown_lease_v1 OWNER TO postgres"
    server:sql "REVOKE ALL ON crown_lease_v1 FROM crown"
    local verdict = one:refresh()
    server:destroy()
    assert.equal("unknown", verdict[1])
    assert.matches("permission denied for table crown_lease_v1", verdict[2])
  end)
end)
