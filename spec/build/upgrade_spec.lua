-- Two versions in one election, the one before and this one: one leads at a time, and no epoch is lost. On three stores that
-- are unlike each other, and with CROWN_UPGRADE=all on every one (tools/package/test-upgrade.sh).
local Candidate = require "support.candidate"
local Cluster = require "support.cluster"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Nats = require "support.nats"
local port = require "support.port"
local Postgres = require "support.postgres"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"
local version_before = require "support.version_before"

local SECONDS = 30

local before = version_before()

local function on(server, url)
  return { url = url or server.url, close = function() server:destroy() end }
end

local function postgres(scheme, more)
  return function()
    local server = Postgres.start()
    return on(server, server.url:gsub("^postgres", scheme) .. (more or ""))
  end
end

local STORES = {
  file = function() return { url = "file:" .. tempdir() .. "/locks", close = function() end } end,
  postgres = postgres "postgres",
  ["postgres+advisory"] = postgres "postgres+advisory",
  ["registry+postgres"] = postgres("registry+postgres", "?listen=127.0.0.1:0&secret=a-secret-of-the-specs"),
  redis = function() return on(Redis.start()) end,
  etcd = function() return on(Etcd.start()) end,
  nats = function()
    local server = Nats.start()
    return on(server, server.url .. "/SPEC")
  end,
  http = function()
    local number = port.free()
    local server = Candidate.start { args = { "lua/examples/http_lease/lease_server.lua", number, 0 }, node = "server",
      log = tempdir() .. "/log" }
    eventually(function() return server:output():find "port %d" end, SECONDS)
    return on(server, ("http://127.0.0.1:%d/locks"):format(number))
  end,
}

local function chosen()
  if os.getenv "CROWN_UPGRADE" == "all" then return STORES end
  return { file = STORES.file, postgres = STORES.postgres, redis = STORES.redis }
end

local function leads(cluster, term, node)
  local next_term = cluster:succeed(term.epoch, SECONDS)
  assert.equal(node, next_term.node)
  return next_term
end

describe("the version before and this one", function()
  if not before then
    pending "take turns: skipped, since this clone has not the history to build the version before"
    return
  end

  local cluster, store
  after_each(function()
    cluster:finish()
    store.close()
  end)

  for name, start in pairs(chosen()) do
    it("take turns on " .. name, function()
      store = start()
      cluster = Cluster.new { url = store.url, ttl = 3 }
      local old = cluster:join("old", nil, { before })
      local term = cluster:succeed(0, SECONDS)
      local new = cluster:join("new")
      new:follows(SECONDS)

      old:signal "TERM" -- upgraded while it leads
      term = leads(cluster, term, "new")
      assert.equal(0, old:wait(SECONDS))

      old = cluster:join("old", nil, { before })
      old:follows(SECONDS)
      new:hurt("KILL", "supervise", "runtime", "keeper") -- what it leaves is a lease
      term = leads(cluster, term, "old")

      new = cluster:join("new")
      new:follows(SECONDS)
      old:hurt("KILL", "supervise", "runtime", "keeper")
      leads(cluster, term, "new")
    end)
  end
end)
