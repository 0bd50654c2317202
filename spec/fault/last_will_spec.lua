-- The last will of a runtime on Postgres: when it has died and its trees are gone, its supervisor gives its leases back, over
-- its own connection. The TTL here is one that no wait comes near to.
local authority = require "support.authority"
local Candidate = require "support.candidate"
local Cluster = require "support.cluster"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local Proxy = require "support.proxy"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"
local tls_stores = require "support.tls_stores"
local write_file = require "support.write_file"

local TTL = 30 -- seconds, where a renewal is waited for

describe("a runtime's last will on Postgres", function()
  local cluster, server

  setup(function() server = Postgres.start { config = "log_statement = all" } end)
  teardown(function() server:destroy() end)
  before_each(function()
    server:empty()
    cluster = Cluster.new { url = server.url, ttl = 3600 }
  end)
  after_each(function() cluster:finish() end)

  -- Ctrl-C twice: no other runtime comes that could give the lease back.
  local function interrupt_twice(leader)
    leader:hurt("STOP", "runtime")
    leader:signal "INT"
    leader:signal "INT"
    leader:wait(10)
  end

  local function is_led(by)
    return by:sql("SELECT expires_at > clock_timestamp() AS led FROM crown_lease_v1 WHERE lock_name = 'spec'")[1].led
  end

  -- How many have come so far.
  local function wills_heard()
    return select(2, read_file(server.dir .. "/log"):gsub("/%* last will", ""))
  end

  -- Sessions over which a will came.
  local function sessions(state)
    return server:sql("SELECT count(*) AS n FROM pg_stat_activity WHERE query LIKE '%last will%' "
      .. "AND pid <> pg_backend_pid() AND state LIKE $1", state)[1].n
  end

  local function sockets(leader)
    local list = io.popen(("ls -l /proc/%d/fd"):format(leader:pids("runtime")[1]))
    local _, count = list:read("*a"):gsub("socket:", "")
    list:close()
    return count
  end

  it("gives the lease back when no runtime follows it", function()
    local leader, _, term = cluster:pair()
    interrupt_twice(leader)
    cluster:succeed(term.epoch, 20, "two")
  end)

  it("waits for the last process of the tree", function()
    local leader, _, term = cluster:pair()
    leader:hurt("STOP", "keeper", "warden")
    leader:hurt("KILL", "runtime")
    cluster:succeed(term.epoch, 20)
  end)

  it("is revoked by a runtime that ends in order", function()
    local leader, _, term = cluster:pair()
    local already = wills_heard()
    leader:signal "TERM"
    cluster:succeed(term.epoch, 20, "two")
    assert.equal(0, leader:wait(10))
    assert.equal(already, wills_heard())
  end)

  -- Postgres ends a session that it cannot answer, whatever it has not read there yet.
  it("waits a moment for what the server still does for the dead runtime", function()
    cluster.options.ttl = TTL
    local leader, _, term = cluster:pair()
    local other = assert(crown.postgres.connect(server.url))
    finally(function() other:close() end)
    assert(other:query "BEGIN")
    assert(other:query("SELECT FROM crown_lease_v1 WHERE holder LIKE 'one %' FOR UPDATE")) -- its renewal waits for that
    eventually(function()
      return server:sql("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'WITH here%'")[1]
    end, TTL)
    leader:hurt("STOP", "runtime")
    leader:signal "INT"
    leader:signal "INT"
    eventually(function() return #leader:pids "child" + #leader:pids "keeper" == 0 end, 10)
    assert(other:query "COMMIT")
    leader:wait(10)
    cluster:succeed(term.epoch, TTL / 2, "two")
  end)

  it("takes nothing from the next runtime when it comes late", function()
    local proxy = Proxy.start(server.port)
    local leader = cluster:join("one", (server.url:gsub(":" .. server.port, ":" .. proxy.port)))
    local before = ticks.await(cluster.ticks, 0, 10)
    eventually(function() -- it has its answers, and it listens: so nothing more is to come
      return server:sql("SELECT FROM pg_stat_activity WHERE state = 'idle' AND query LIKE '%AS memory%'")[1]
        and server:sql("SELECT FROM pg_stat_activity WHERE state = 'idle' AND query LIKE 'LISTEN%'")[1]
    end, 10)
    local own = sockets(leader)
    proxy:freeze_connections()
    leader:hurt("KILL", "runtime")
    local after = ticks.await(cluster.ticks, before.epoch, 10)
    local already = wills_heard()
    proxy:thaw()
    eventually(function() return wills_heard() > already end, 10)
    eventually(function() return sessions "active" == 0 end)
    assert.is_true(is_led(server))
    eventually(function() return sessions "%" == 0 end)
    eventually(function() return sockets(leader) == own end, 10) -- it has not kept the connection
    assert.equal(after.epoch, ticks.await(cluster.ticks, before.epoch).epoch)
    proxy:destroy()
  end)

  it("is left to the end of the lease on a connection with TLS, which is the runtime's alone", function()
    local secure, url = tls_stores.postgres(authority())
    cluster.options.url = url:format(secure.port)
    local leader = cluster:join "one"
    ticks.await(cluster.ticks, 0, 10)
    interrupt_twice(leader)
    assert.is_true(is_led(secure))
    secure:destroy()
  end)

  -- A server that lets everybody in, and answers nothing else.
  describe("on a connection", function()
    local APP = [[
local client = require("crown.core.postgres").open(
  ("postgres://x@127.0.0.1:%s/x?sslmode=disable&target_session_attrs=any"):format(arg[1]), {})
client:ready(10)
assert(client:will(require("crown.postgres.will").messages "SELECT 1 AS the_will"))
client:query("SELECT " .. ("x"):rep(tonumber(arg[2])), 60, 0)
]]

    local ROOM = 1000000

    -- What the server has heard when the runtime is dead.
    local function heard_at_the_end(size)
      local stream
      local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
        connection:read(8, 10)
        connection:write "R\0\0\0\8\0\0\0\0Z\0\0\0\5I"
        local heard = connection:read "*s"
        while not heard:find("SELECT x", 1, true) do heard = heard .. connection:read "*s" end
        stream = connection
      end))
      finally(function() listener:close() end)
      local app = tempdir() .. "/app.lua"
      write_file(app, APP)
      local one = Candidate.start { args = { app, listener:port(), size }, node = "one", log = app .. ".log" }
      eventually(function() return stream end, 10)
      one:hurt("STOP", "runtime")
      local parts = {}
      if size > ROOM then parts[1] = stream:read(ROOM) end -- what comes behind would have room
      one:hurt("KILL", "runtime")
      one:wait(10)
      for part in function() return (stream:read "*s") end do parts[#parts + 1] = part end
      return table.concat(parts)
    end

    it("comes behind all that the runtime has said there, with a farewell", function()
      assert.matches("SELECT 1 AS the_will%zX%z%z%z\4$", heard_at_the_end(10))
    end)

    it("is not said where the runtime died in the middle of a message", function()
      local heard = heard_at_the_end(6e7)
      assert.is_true(#heard < 6e7)
      assert.is_nil(heard:find("the_will", 1, true))
    end)
  end)
end)
