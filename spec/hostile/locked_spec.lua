-- Somebody holds a lock in Postgres, or all of its processes stand still: however long that lasts, the server sees so many
-- connections of each runtime and no more, and elections go on afterwards.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Pgbouncer = require "support.pgbouncer"
local Postgres = require "support.postgres"
local read_file = require "crown.text.read_file"
local run = require "support.run"
local tempdir = require "support.tempdir"

local CANDIDATES = 4
local TTL = 3
local HELD = 4 * TTL -- seconds
local FROZEN = 6 * TTL
local GIVEN_UP = 2 -- of each client, at most
local FORGOTTEN = 3 -- of each client in that time: after 2, 6 and 14 s

-- `clients` of a runtime: the lease has one for statements and one for notifications.
local KINDS = {
  lease = { scheme = "postgres", table = "crown_lease_v1", clients = 2 },
  advisory = { scheme = "postgres+advisory", table = "crown_advisory_v1", clients = 1 },
}

describe("a Postgres server", function()
  local server, started, holder

  setup(function() server = Postgres.start { config = "max_connections = 60" } end)
  teardown(function() server:destroy() end)
  before_each(function() started, holder = {}, server:admin() end)
  after_each(function()
    holder:close()
    for _, one in ipairs(started) do one:destroy() end
    server:empty()
  end)

  local function start(kind, url)
    url = (url or server.url):gsub("^postgres", kind.scheme)
    for i = 1, CANDIDATES do
      started[i] = Candidate.start { args = { "run", "--oracle", url .. "?ttl=" .. TTL, "x", "sleep", "1000" }, node = "node" .. i,
        log = tempdir() .. "/log" }
    end
  end

  local function await_leader()
    eventually(function()
      local count = 0
      for _, one in ipairs(started) do count = count + #one:pids "child" end
      return count == 1
    end, 30)
  end

  -- @return the most that `count` tells while somebody does something to the server.
  local function most_of(count, seconds)
    local most, late = 0, crown.now() + (seconds or HELD)
    while crown.now() < late do
      most = math.max(most, count())
      crown.sleep(0.2)
    end
    return most
  end

  local function backends()
    return server:sql("SELECT count(*)::int AS count FROM pg_stat_activity WHERE usename = 'crown'")[1].count
  end

  -- @return the most backends while the lock is held.
  local function hold(lock)
    assert(holder:query "BEGIN")
    assert(holder:query(lock))
    local most = most_of(backends)
    assert(holder:query "COMMIT")
    return most
  end

  for title, case in pairs {
    ["the table of the lease"] = { KINDS.lease, "LOCK TABLE crown_lease_v1" },
    ["one row of the lease"] = { KINDS.lease, "SELECT FROM crown_lease_v1 FOR UPDATE" },
    ["the memory beside the advisory lock"] = { KINDS.advisory, "LOCK TABLE crown_store_v1" },
    ["the table of the advisory lock"] = { KINDS.advisory, "LOCK TABLE crown_advisory_v1" },
  } do
    it("sees no more connections of a runtime while somebody locks " .. title, function()
      local kind, lock = unpack(case)
      start(kind)
      await_leader()
      local most = hold(lock)
      await_leader()
      assert.is_true(most <= CANDIDATES * (kind.clients + 1), most .. " connections")
    end)
  end

  it("is not taken for one that nobody reaches by who comes anew while somebody locks the table", function()
    local words = { "run", "--once", "--oracle", server.url .. "?timeout=1", "x", "true" }
    assert.equal(0, run(words).code)
    assert(holder:query "BEGIN")
    assert(holder:query "LOCK TABLE crown_lease_v1")
    local result = run(words)
    assert(holder:query "COMMIT")
    assert.equal(3, result.code, result.stderr)
    assert.is_nil(result.stderr:find("firewall", 1, true), result.stderr)
    assert.matches("postgres at 127.0.0.1:%d+: .*lock.*see pg_locks", result.stderr)
  end)

  it("is named, with what to look at, where it refuses to wait longer for a lock", function()
    server:sql "CREATE TABLE IF NOT EXISTS waited_for (a int)"
    server:sql "GRANT ALL ON waited_for TO crown"
    assert(holder:query "BEGIN")
    assert(holder:query "LOCK TABLE waited_for")
    local client = assert(crown.postgres.connect(server.url, { timeout = 4, bounded = true }))
    assert(client:query "SET lock_timeout = 50")
    local _, problem, code = client:query "SELECT FROM waited_for"
    client:close()
    assert(holder:query "COMMIT")
    assert.equal("55P03", code)
    assert.matches("^postgres at 127.0.0.1:%d+: canceling .* lock timeout; another session holds a lock .* pg_locks$", problem)
  end)

  it("sees no more connections of a pooler, which opens another one when a client has gone, while somebody locks a row", function()
    local pooler = Pgbouncer.start(server)
    finally(function() pooler:destroy() end)
    start(KINDS.lease, pooler.url)
    await_leader()
    local most = hold "SELECT FROM crown_lease_v1 FOR UPDATE"
    await_leader()
    assert.is_true(most <= 1 + CANDIDATES, most .. " connections") -- the pool has one; another one ends when its lock_timeout is over
  end)

  it("goes on with nothing that a client of the user's has given up, though the lock is held", function()
    server:sql "CREATE TABLE held (a int)"
    server:sql "GRANT ALL ON held TO crown"
    assert(holder:query "BEGIN")
    assert(holder:query "LOCK TABLE held")
    local client = assert(crown.postgres.connect(server.url, { timeout = 1 }))
    for _ = 1, 2 do crown.spawn(client.query, client, "SELECT FROM held") end
    eventually(function() return backends() == 1 end, 20)
    assert.equal("timeout", (select(3, client:query "SELECT FROM held")))
    eventually(function() return backends() == 0 end, 20)
    eventually(function() return client:condition().connections == 0 end, 20)
    assert.equal(4, client:condition().limit)
    assert(holder:query "COMMIT")
    assert(client:query "SELECT FROM held")
    assert.equal(1, client:condition().connections)
    client:close()
  end)

  -- Of this host, those to the server that some process of ours has open; `all`: also those that were closed by it alone.
  local function sockets(all)
    local count = 0
    local remote = (":%04X"):format(server.port)
    for line in read_file "/proc/net/tcp":gmatch "[^\n]+" do
      local to, state, inode = line:match "^%s*%d+: %x+:%x+ %x+(:%x+) (%x+) %S+ %S+ %S+%s+%d+%s+%d+%s+(%d+)"
      if to == remote and state ~= "06" and (all or inode ~= "0") then count = count + 1 end
    end
    return count
  end

  it("that stands still has so many connections of a runtime, and hardly more that were forgotten", function()
    start(KINDS.lease)
    await_leader()
    holder:close()
    server:sql "SELECT 1" -- there is one
    server.client:close()
    eventually(function() return sockets(true) == sockets() end, 20) -- a frozen server would not end what the spec has closed
    local most_at_once, most = 0, 0
    server:freeze()
    most_of(function()
      most_at_once, most = math.max(most_at_once, sockets()), math.max(most, sockets(true))
      return 0
    end, FROZEN)
    server:thaw()
    await_leader()
    server.client, holder = server:admin(), server:admin()
    local each = KINDS.lease.clients * (1 + GIVEN_UP + 1) -- one that is in use, or is being made, and one that cancels
    assert.is_true(most_at_once <= CANDIDATES * each, most_at_once .. " connections")
    assert.is_true(most <= CANDIDATES * KINDS.lease.clients * (GIVEN_UP + FORGOTTEN + 1), most .. " connections")
  end)
end)
