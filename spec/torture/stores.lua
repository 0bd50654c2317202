--- The stores that are tortured: how each is started, what leads to it, and what can happen to it. `cost`: seconds after a
-- fault in which nobody need lead: a lease that runs out, a store that is sat out, a candidate that is started again.
local Candidate = require "support.candidate"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Nats = require "support.nats"
local port = require "support.port"
local Postgres = require "support.postgres"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"

local stores = {}

local TTL = 2

-- Faults that every server process has: it crashes and comes back with what it has, or it is frozen.
local function server_faults(down, up, freeze, thaw)
  return {
    restart = { weight = 2, begin = function(world)
      world:say "the store crashes"
      down()
      return up
    end },
    freeze = { weight = 2, begin = function(world)
      world:say "the store freezes"
      freeze()
      return thaw
    end },
  }
end

-- Every store has a leader that can be asked to go.
local function with_eviction(store)
  store.faults.evict = { weight = 2, begin = function(world)
    world:say "evict"
    world:command { "evict", "--force", "--wait", "1", "--oracle", store.url(), "spec" }
  end }
  return store
end

-- For a store whose epochs begin anew with its data: its page says so.
local function wiped(server, title)
  return { weight = 1, begin = function(world)
    world:say(title)
    world.anew = true
    server:down()
    server:wipe()
    return function() server:up() end
  end }
end

function stores.redis()
  local server = Redis.start()
  local store = { ttl = TTL, cost = 4 * TTL + 2, port = function() return server.port end, server = server }
  function store.url(number) return ("redis://127.0.0.1:%d"):format(number or server.port) end
  store.faults = server_faults(function() server:down() end, function() server:up() end, function() server:freeze() end,
    function() server:thaw() end)
  store.faults.flush = { weight = 1, begin = function(world)
    world:say "FLUSHALL"
    server:call "FLUSHALL"
  end }
  store.faults.sessions = { weight = 1, begin = function(world)
    world:say "the store ends all sessions"
    server:call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
  end }
  return with_eviction(store)
end

local function postgres(scheme)
  local server = Postgres.start()
  local standby
  local store = { ttl = TTL, cost = 4 * TTL + 4, server = server }
  function store.port() return server.port end
  function store.url(number) return ("%s://crown@127.0.0.1:%d/crown"):format(scheme, number or server.port) end

  -- The postmaster and its backends.
  local function signal_all(name)
    os.execute(("pkill -%s -P %d; kill -%s %d"):format(name, server.process.pid, name, server.process.pid))
  end
  store.faults = server_faults(function() server:down "immediate" end, function() server:up() end,
    function() signal_all "STOP" end, function() signal_all "CONT" end)
  store.faults.sessions = { weight = 2, begin = function(world)
    world:say "the store ends all sessions"
    server:sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crown'"
  end }
  store.faults.failover = { weight = 1, begin = function(world)
    world:say "fail over to the standby"
    standby = standby or server:replica()
    server:down "immediate"
    standby:promote()
    server, standby, store.server = standby, nil, standby
  end }
  -- Files that are copied back keep their timeline: where nobody knows better, epochs are given again, as the pages say.
  store.faults.older_data = { weight = 1, begin = function(world)
    world:say "the store comes back with older data"
    world.anew = true
    server:down "fast"
    local restore = server:backup()
    server:up()
    return function()
      server:down "immediate"
      restore()
      server:up()
    end
  end }
  store.faults.truncate = { weight = 1, begin = function(world)
    world:say "truncate and empty the tables, as far as that is allowed"
    for _, name in ipairs { "crown_lease_v1", "crown_advisory_v1" } do
      pcall(server.sql, server, "TRUNCATE " .. name)
      pcall(server.sql, server, "DELETE FROM " .. name)
    end
  end }
  return with_eviction(store)
end

function stores.postgres() return postgres "postgres" end

function stores.advisory() return postgres "postgres+advisory" end

function stores.etcd()
  local server = Etcd.start()
  local store = { ttl = TTL, cost = 4 * TTL + 4, port = function() return server.port end, server = server }
  function store.url(number) return ("etcd://127.0.0.1:%d"):format(number or server.port) end
  store.faults = server_faults(function() server:down() end, function() server:up() end, function() server:freeze() end,
    function() server:thaw() end)
  store.faults.wipe = wiped(server, "the store comes back without data")
  return with_eviction(store)
end

function stores.nats()
  local server = Nats.start()
  -- Epochs are revisions: they begin anew with a bucket (docs/oracle-nats.md), so none is made anew here.
  local store = { ttl = TTL + 1, cost = 4 * TTL + 6, port = function() return server.port end, server = server }
  function store.url(number) return ("nats://127.0.0.1:%d/SPEC"):format(number or server.port) end
  store.faults = server_faults(function() server:down() end, function() server:up() end, function() server:freeze() end,
    function() server:thaw() end)
  return with_eviction(store)
end

function stores.http()
  local number, process = port.free(), nil
  local function up(sit_out)
    process = Candidate.start { args = { "lua/examples/http_lease/lease_server.lua", number, sit_out }, node = "server",
      log = tempdir() .. "/log" }
    eventually(function() return process:output():find "port %d" end, 10)
  end
  local function down()
    process:hurt("KILL", "supervise", "runtime")
    process:wait(5)
  end
  up(0)
  local store = { ttl = TTL, cost = 4 * TTL + 2, port = function() return number end,
    server = { destroy = function() process:destroy() end } }
  function store.url(of) return ("http://127.0.0.1:%d/locks"):format(of or number) end
  store.faults = server_faults(down, function() up(TTL) end, function() process:hurt("STOP", "runtime", "supervise") end,
    function() process:hurt("CONT", "runtime", "supervise") end)
  return store
end

function stores.file()
  local dir = tempdir() .. "/locks"
  local store = { ttl = TTL, cost = 12, dir = dir, faults = {}, server = { destroy = function() end } }
  function store.url() return "file:" .. dir end
  for name, what in pairs { lock = "spec.lock", record = "spec.json" } do
    store.faults["remove_" .. name] = { weight = 1, begin = function(world)
      world:say("remove %s", what)
      os.remove(dir .. "/" .. what)
    end }
  end
  return with_eviction(store)
end

--- The names, in order.
stores.NAMES = { "file", "postgres", "advisory", "redis", "etcd", "nats", "http" }

--- Starts a store.
-- @string name
-- @treturn table
function stores.start(name)
  for _, known in ipairs(stores.NAMES) do
    if known == name then
      local store = stores[name]()
      store.name = name
      return store
    end
  end
  error(("there is no store '%s' to torture: %s"):format(name, table.concat(stores.NAMES, ", ")), 0)
end

return stores
