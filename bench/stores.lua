--- Failover on real servers of etcd, NATS and ZooKeeper, on the example's HTTP lease server, and in a registry.
local core = require "crown.core"
local crown = require "crown"
local Etcd = require "support.etcd"
local http = require "support.http"
local http_server = require "http_server"
local moves = require "moves"
local Nats = require "support.nats"
local nats_oracle = require "crown.oracles.nats_kv"
local Postgres = require "support.postgres"
local probe = require "probe"
local ZooKeeper = require "support.zookeeper"

-- Seconds that the lease has left; each by the store's own clock.
local left = {}

function left.nats(server)
  return assert(nats_oracle.list { url = server.quick })[1].expires_in
end

-- Another one's claim is refused with how long it has to wait.
function left.http(server)
  local refused = http.ask(server.port, "POST /locks/spec/claim", '{"holder":"the bench","ttl":0.5,"claim":1}')
  return core.json.decode(refused.body).expires_in
end

-- A follower in NATS counts from when it has heard of the last write. So it has to be there when that comes.
local settled = {}

function settled.nats(server)
  local function revision() return assert(nats_oracle.list { url = server.quick })[1].revision end
  local first = revision()
  repeat crown.sleep(0.05) until revision() ~= first
end

local function store(measure, name, server, url, ttl, limits, left_of, settle)
  probe.store_rows(probe.rows(measure, function() return { url = url, ttl = ttl } end), name, limits, server, url)
  moves(measure, name, url, ttl)
  if left_of then
    measure(name .. ", tree SIGKILL, beyond the lease", "≤ 5", function()
      return probe.beyond_lease({ url = url, ttl = ttl, settled = settle and function() settle(server) end },
        function() return left_of(server) end, left_of == left.nats and probe.QUESTIONS)
    end)
  end
  server:destroy()
end

return function(measure)
  local nats, etcd, web, postgres, zookeeper = Nats.start(), Etcd.start(), http_server(), Postgres.start(), ZooKeeper.start()
  store(measure, "registry 2 s", postgres,
    postgres.url:gsub("^postgres", "registry+postgres") .. "?listen=127.0.0.1:0&secret=that-of-the-bench", 2,
    { "≤ 40", "≤ 120", "≤ 2100" })
  store(measure, "nats_kv 5 s", nats, nats.quick, 5, { "≤ 4", "≤ 80", "≤ 5100" }, left.nats, settled.nats)
  store(measure, "http_lease 2 s", web, web.url, 2, { "≤ 10", "≤ 80", "≤ 2100" }, left.http)
  store(measure, "etcd 2 s", etcd, etcd.quick, 2, { "≤ 6", "≤ 80", "≤ 3500" })
  store(measure, "zookeeper 4 s", zookeeper, zookeeper.quick, 4, { "≤ 40", "≤ 120", "≤ 4500" })
end
