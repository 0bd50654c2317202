--- Redis: one server; a primary with a replica and its Sentinels; a cluster of six; most of three servers.
local eventually = require("crown.testing").eventually
local Redis = require "support.redis"
local RedisCluster = require "support.redis_cluster"
local server_faults = require "torture.server_faults"
local WrongClock = require "support.wrong_clock"

local redis = {}

local TTL = 2
local FAILOVER = 6 -- seconds that a failover takes at most, beside what every fault costs
local COST = 4 * TTL + 2
local KEY = "crown:{spec}:record"

local function flush(pick)
  return { weight = 1, begin = function(world)
    world:say "FLUSHALL"
    pick():call "FLUSHALL"
  end }
end

-- New connections are refused for a while, and those that there are end: somebody changed the password.
local function users(server)
  return { weight = 1, begin = function(world)
    world:say "the password is changed"
    server:call("CONFIG", "SET", "requirepass", "other")
    server:call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    return function() server:call("CONFIG", "SET", "requirepass", "") end
  end }
end

function redis.single()
  local clock = WrongClock.new(0)
  local server = Redis.start { config = "appendonly yes\n", env = clock:environment() }
  local store = { ttl = TTL, cost = COST, heeds = true, ports = { function() return server.port end }, server = server,
    servers = { server }, clocks = { clock } }
  function store.url(number) return ("redis://127.0.0.1:%d?amnesia_wait=0"):format(number or server.port) end
  store.faults = server_faults.of { down = function() server:down() end, up = function() server:up() end,
    freeze = function() server:freeze() end, thaw = function() server:thaw() end }
  store.faults.wipe, store.faults.older_data = server_faults.wipe(server), server_faults.older_data(server)
  store.faults.flush = flush(function() return server end)
  store.faults.users = users(server)
  store.faults.step = server_faults.step({ clock }, true)
  store.faults.put_right = server_faults.put_right({ clock }, TTL)
  store.faults.sessions = { weight = 1, begin = function(world)
    world:say "the store ends all sessions"
    server:call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
  end }
  store.faults.evict = server_faults.evict()
  return store
end

local SENTINEL = "sentinel monitor mine 127.0.0.1 %d 2\nsentinel down-after-milliseconds mine 500\n"
  .. "sentinel failover-timeout mine 2000\n"

local DEMOTION = 14 -- seconds until the Sentinels have made a replica of a server that comes back, and it has the data

-- Two servers, of which the Sentinels make one the primary.
function redis.sentinel()
  local clocks, sentinels, hosts = WrongClock.several(5), {}, {}
  local servers = { Redis.start { env = clocks[1]:environment() } }
  servers[2] = Redis.start { config = ("replicaof 127.0.0.1 %d\n"):format(servers[1].port), env = clocks[2]:environment() }
  eventually(function() return servers[1]:call("INFO", "replication"):find "state=online" end, 30)
  for i = 1, 3 do
    sentinels[i] = Redis.start { sentinel = true, config = SENTINEL:format(servers[1].port),
      env = clocks[2 + i]:environment() }
    hosts[i] = "127.0.0.1:" .. sentinels[i].port
  end
  eventually(function() return sentinels[1]:call("SENTINEL", "ckquorum", "mine") end, 30)
  eventually(function() return #sentinels[1]:call("SENTINEL", "replicas", "mine") == 1 end, 30)
  local function primary()
    local place = sentinels[1]:call("SENTINEL", "get-master-addr-by-name", "mine")
    return tonumber(place[2]) == servers[1].port and servers[1] or servers[2]
  end
  local all = { unpack(servers) }
  for _, one in ipairs(sentinels) do all[#all + 1] = one end
  local store = { ttl = TTL, cost = COST + DEMOTION, heeds = true, ports = server_faults.ports(all), announced = true,
    servers = all, server = server_faults.all(all), clocks = clocks }
  function store.url() return "redis+sentinel://" .. table.concat(hosts, ",") .. "/mine?amnesia_wait=0" end
  -- A replica whose clock was set back does not notice for as long that its connection is no more; a Sentinel whose clock jumped
  -- fails nobody over for 30 s.
  function store.serves() return primary():call("INFO", "replication"):find "role:master" end
  store.faults = server_faults.of_one(primary)
  store.faults.any_restart = server_faults.of_one(function(random) return servers[random(#servers)] end).restart
  store.faults.outage = server_faults.outage(all)
  store.faults.flush = flush(primary)
  store.faults.step = server_faults.step(clocks, true)
  store.faults.failover = { weight = 2, begin = function(world)
    world:say "a Sentinel fails over"
    sentinels[2]:call("SENTINEL", "failover", "mine")
  end }
  store.faults.sentinel = { weight = 1, begin = function(world, random)
    local one = sentinels[1 + random(2)]
    world:say("Sentinel %d crashes", one.port)
    one:down()
    return function() one:up() end
  end }
  store.faults.evict = server_faults.evict()
  return store
end

function redis.cluster()
  local cluster = RedisCluster.start()
  local function keeper() return (cluster:keeper(KEY)) end
  local store = { ttl = TTL, cost = COST + FAILOVER, heeds = true, ports = server_faults.ports(cluster.servers), announced = true,
    server = cluster, servers = cluster.servers, clocks = cluster.clocks }
  function store.url() return cluster:seeds() .. "?amnesia_wait=0" end
  -- A node that becomes a primary and whose clock was set back says for as long that the cluster is down.
  function store.serves() return keeper():call("CLUSTER", "INFO"):find "cluster_state:ok" end
  store.faults = server_faults.of_one(keeper)
  store.faults.any_restart = server_faults.of_one(function(random) return cluster.servers[random(#cluster.servers)] end).restart
  store.faults.outage = server_faults.outage(cluster.servers)
  store.faults.move = { weight = 2, begin = function(world)
    local from, to, finish = cluster:move(KEY)
    world:say("port %d begins to hand one slot over to %d", from.port, to.port)
    return finish
  end }
  store.faults.flush = flush(keeper)
  store.faults.step = server_faults.step(cluster.clocks, true)
  store.faults.failover = { weight = 2, begin = function(world)
    local server, replica = cluster:keeper(KEY)
    world:say("port %d hands its slots over to %s", server.port, replica and replica.port or "nobody")
    if replica then replica:call("CLUSTER", "FAILOVER") end
  end }
  store.faults.evict = server_faults.evict()
  return store
end

function redis.majority()
  local clocks, servers = WrongClock.several(3), {}
  for i = 1, 3 do servers[i] = Redis.start { config = "appendonly yes\n", env = clocks[i]:environment() } end
  local function one_of(random) return servers[random(#servers)] end
  local store = { ttl = TTL, cost = COST, heeds = true, ports = server_faults.ports(servers), servers = servers,
    server = server_faults.all(servers), clocks = clocks }
  function store.url(...) return ("redis+majority://%s?amnesia_wait=0"):format(server_faults.hosts(servers, ...)) end
  store.faults = server_faults.of_one(one_of)
  store.faults.outage, store.faults.minority = server_faults.outage(servers), server_faults.minority(servers)
  store.faults.flush = { weight = 1, begin = function(world, random)
    world:say "FLUSHALL on one of them"
    one_of(random):call "FLUSHALL"
  end }
  store.faults.step = server_faults.step(clocks, true)
  store.faults.evict = server_faults.evict()
  return store
end

return redis
