-- Two versions in one election, the one before and this one: one leads at a time, and no epoch is lost. On three stores that
-- are unlike each other; tools/package/test-upgrade.sh has every one.
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

-- Rows as Oban has them: who leads there is appointed.
local function oban()
  local server = Postgres.start()
  server:sql [[CREATE TABLE oban_peers (name TEXT PRIMARY KEY, node TEXT NOT NULL,
    started_at TIMESTAMP NOT NULL, expires_at TIMESTAMP NOT NULL)]]
  server:sql "GRANT SELECT ON oban_peers TO crown"
  local store = on(server, (server.url:gsub("^postgres", "oban+postgres")))
  store.app = [[require("crown").elect { name = "spec", oracle = { arg[1], check = 0.2 }, child = { unpack(arg, 2) } }]]
  function store.appoint(node)
    server:sql([[INSERT INTO oban_peers VALUES ('Oban', $1, timezone('UTC', clock_timestamp()),
      timezone('UTC', clock_timestamp()) + interval '10 minutes')
      ON CONFLICT (name) DO UPDATE SET node = excluded.node, started_at = excluded.started_at]], node)
  end
  return store
end

local function redis_majority()
  local servers, urls = {}, {}
  for i = 1, 3 do
    servers[i] = Redis.start()
    urls[i] = servers[i].url
  end
  return {
    url = table.concat(urls, " "),
    app = [[
      local urls = {}
      for url in arg[1]:gmatch "%S+" do urls[#urls + 1] = url end
      require("crown").elect { name = "spec", oracle = { "redis", urls = urls, ttl = tonumber(os.getenv "TTL"), amnesia_wait = 0 },
        child = { unpack(arg, 2) } }]],
    close = function()
      for _, server in ipairs(servers) do server:destroy() end
    end,
  }
end

local STORES = {
  file = function() return { url = "file:" .. tempdir() .. "/locks", close = function() end } end,
  postgres = postgres "postgres",
  ["postgres+advisory"] = postgres "postgres+advisory",
  ["registry+postgres"] = postgres("registry+postgres", "?listen=127.0.0.1:0&secret=a-secret-of-the-specs"),
  oban = oban,
  redis = function()
    local server = Redis.start()
    return on(server, server.url .. "?amnesia_wait=0")
  end,
  ["a majority of Redis servers"] = redis_majority,
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

-- The version before kept other records: this one waits for its leases, and it leads no more where this one has led.
local ONE_WAY = { redis = true, ["a majority of Redis servers"] = true }

-- Those of one part of so many: CROWN_UPGRADE=1/5. Else three, without what they would wait for on a second empty store.
-- @return names, whether all of it is tried
local function chosen()
  local part, parts = (os.getenv "CROWN_UPGRADE" or ""):match "^(%d+)/(%d+)$"
  if not part then return { "file", "postgres", "redis" }, false end
  local names, ours = {}, {}
  for name in pairs(STORES) do names[#names + 1] = name end
  table.sort(names)
  for i = tonumber(part), #names, tonumber(parts) do ours[#ours + 1] = names[i] end
  return ours, true
end

describe("the version before and this one", function()
  if not before then
    pending "take turns: skipped, since this clone has not the history to build the version before"
    return
  end

  local cluster, store, term
  after_each(function()
    cluster:finish()
    store.close()
  end)

  -- Ends the one that leads, in order or by a crash. The other one leads then, in a later epoch.
  local function turn(from, to, in_order)
    if in_order then from:signal "TERM" else from:hurt("KILL", "supervise", "runtime", "keeper") end
    if store.appoint then store.appoint(to.node) end
    repeat -- on a busy machine it may have lost and won once more before it ended
      term = cluster:succeed(term.epoch, SECONDS)
    until term.node ~= from.node
    assert.equal(to.node, term.node)
    if in_order then assert.equal(0, from:wait(SECONDS)) end
  end

  local function join(node, words)
    local member = cluster:join(node, nil, words)
    member:follows(SECONDS)
    return member
  end

  local function leads(node, words)
    if store.appoint then store.appoint(node) end
    local member = cluster:join(node, nil, words)
    term = cluster:succeed(0, SECONDS)
    return member
  end

  local function open(start)
    store = start()
    cluster = Cluster.new { url = store.url, app = store.app, ttl = 3 }
  end

  local names, all = chosen()
  for _, name in ipairs(names) do
    it("take turns on " .. name, function()
      open(STORES[name])
      local old = leads("old", { before })
      local new = join "new"
      turn(old, new, true) -- upgraded while it leads
      old = join("old", { before })
      if ONE_WAY[name] then return turn(new, join "newer", false) end -- the old one waits
      turn(new, old, false) -- what the new one leaves is a lease
      new = join "new"
      turn(old, new, false)
      old = join("old", { before })
      turn(new, old, true) -- and back again
    end)

    if all and not ONE_WAY[name] then
      it("take turns on tables and keys that this one has made, on " .. name, function()
        open(STORES[name])
        local new = leads "new"
        local old = join("old", { before })
        turn(new, old, true)
        new = join "new"
        turn(old, new, false)
      end)
    end
  end
end)
