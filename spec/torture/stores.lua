--- The stores that are tortured: how each is started, what leads to it, and what can happen to it. A store has `url(port…)`;
-- `ttl`; `ports`, functions that tell where a way may be put before each server; `faults` (torture.server_faults); `cost`:
-- seconds after a fault in which nobody need lead: a lease that runs out, a store that is sat out, a candidate that is
-- started again; `server:destroy()`; `servers`, those whose `process` ends only by a fault. Where its servers' own clocks
-- may keep it from taking writes for long: `serves()`, whether it does. `announced`: its servers tell their addresses
-- themselves, so nothing of a URL leads to the ways; `clocks` of its servers; `heeds`: nobody wins under an epoch below one that
-- it has heard of, whatever the store has lost.
local consul = require "torture.stores.consul"
local etcd = require "torture.stores.etcd"
local kubernetes = require "torture.stores.kubernetes"
local mysql = require "torture.stores.mysql"
local nats = require "torture.stores.nats"
local orders = require "torture.orders"
local ours = require "torture.stores.local"
local postgres = require "torture.stores.postgres"
local redis = require "torture.stores.redis"
local s3 = require "torture.stores.s3"
local zookeeper = require "torture.stores.zookeeper"

local stores = {}

local STARTS = { file = ours.file, postgres = postgres.lease, advisory = postgres.advisory, pgbouncer = postgres.bouncer,
  redis = redis.single, sentinel = redis.sentinel, cluster = redis.cluster, majority = redis.majority,
  etcd = etcd.single, etcd3 = etcd.three, mysql = mysql.single, nats = nats.single, nats3 = nats.three,
  kubernetes = kubernetes.single, apiserver = kubernetes.real, s3 = s3.single, consul = consul.single, consul_lock = consul.lock,
  zookeeper = zookeeper.single, zookeeper3 = zookeeper.three, http = ours.http }

--- The names, in order; `apiserver` only where it is asked for, since it takes `make kubernetes-peer`.
stores.NAMES = { "file", "postgres", "advisory", "pgbouncer", "redis", "sentinel", "cluster", "majority", "etcd", "etcd3", "mysql",
  "nats", "nats3", "kubernetes", "s3", "consul", "consul_lock", "zookeeper", "zookeeper3", "http" }

local TAKES_NO_ORDERS = { http = true }

--- Starts a store.
-- @string name one of NAMES, and the number of slots if the election is to have some: redis/2
-- @treturn table
function stores.start(name)
  local kind, slots = name:match "^([%w_]+)/(%d+)$"
  kind = kind or name
  if not STARTS[kind] then
    error(("there is no store '%s' to torture: %s"):format(kind, table.concat(stores.NAMES, ", ")), 0)
  end
  local store = STARTS[kind]()
  store.name, store.slots = name, tonumber(slots)
  if not TAKES_NO_ORDERS[kind] then store.faults.orders = orders.fault() end
  return store
end

return stores
