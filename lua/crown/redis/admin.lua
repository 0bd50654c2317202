--- What `crown-lua info` and `evict` ask of the keys.
-- @internal crown.redis.admin

local Cluster = require "crown.redis.cluster"
local Doubt = require "crown.oracle.doubt"
local eviction = require "crown.oracle.eviction"
local Leases = require "crown.redis.leases"
local redis = require "crown.redis"
local redis_url = require "crown.redis.url"
local Sentinels = require "crown.redis.sentinels"
local server = require "crown.redis.server"

local admin = {}

local MARK = [[
local token = redis.call('HGET', KEYS[1], 'token')
if not token then return {} end
redis.call('HSET', KEYS[1], 'evicted', '1')
redis.call('PUBLISH', ARGV[1], 'evict ' .. ARGV[2])
return redis.call('HMGET', KEYS[1], 'node', 'epoch')]]

-- What the elections are kept in: a single server, or a cluster.
local function store_of(client, info, url, timeout)
  if not info:find "redis_mode:cluster" then
    return { info = info, run = function(_, fn) return fn(client) end, each = function(fn) return fn(client) end,
      close = function() end }
  end
  local cluster, problem = Cluster.new { url = url, timeout = timeout }
  if not cluster then return nil, problem end
  return { info = info, is_cluster = true, run = function(key, fn) return cluster:run(key, fn) end,
    each = function(fn) return cluster:each(fn) end, close = function() cluster:close() end }
end

-- Runs fn with `{ info =, is_cluster =, run(key, fn), each(fn) }`. blind: also where INFO is refused, as on a single server
-- that has nothing to say.
local function with_store(opts, fn, blind)
  local url, timeout = opts.url, opts.timeout or 5
  local client, problem, code = redis.connect(url, { timeout = timeout })
  if not client then return nil, problem, code end
  local info, store, result
  info, problem = client:call "INFO"
  if blind then info = info or "" end
  if info then store, problem = store_of(client, info, url, timeout) end
  if store then
    result, problem, code = fn(store)
    store.close()
  end
  client:close()
  return result, problem, code
end

-- The longest TTL in use, as the store knows it, in seconds; nil before anybody has been there.
local function longest_ttl(client, key)
  local longest = client:call("HGET", key, "longest")
  return tonumber(longest) and tonumber(longest) / 1000
end

-- Seconds for which the store grants nothing, as it would answer a claim with this `amnesia_wait`.
local function doubted_for(client, key, amnesia_wait)
  local known, time = client:call("HMGET", key, "since", "longest", "lost"), client:call "TIME"
  local since = known and time and tonumber(known[1])
  if not since then return 0 end
  local now, longest, lost = time[1] * 1000 + time[2] / 1000, tonumber(known[2]) or 0, tonumber(known[3]) or 0
  return math.max(0, since + longest - now, lost + amnesia_wait * 1000 - now) / 1000
end

-- In a cluster each election has a store of its own, so each has a TTL.
local function look(store, prefix, name)
  local lease, epochs = Leases.keys(prefix, name)
  return store.run(lease, function(client)
    local held, problem, code = client:call("HMGET", lease, "node", "epoch", "token")
    if not held then return nil, problem, code end
    local left = client:call("PTTL", lease)
    local epoch = client:call("GET", epochs)
    return { name = name, node = held[1], token = held[3], epoch = tonumber(held[2] or epoch) or 0,
      expires_in = held[1] and left and left > 0 and left / 1000 or nil,
      ttl = store.is_cluster and longest_ttl(client, Leases.store(prefix, name)) or nil }
  end)
end

--- Elections whose keys begin with the prefix, on whichever node of a cluster they are.
-- @tparam table opts `url`, `prefix`
-- @treturn table an array of `{ name, node, token, epoch, expires_in }`, in a cluster with `ttl`; or nil and a message
function admin.leases(opts)
  return with_store(opts, function(store)
    local names, found = {}, {}
    local scanned, problem = store.each(function(client)
      return server.each_key(client, opts.prefix .. ":{*}:epoch", function(key) names[key:match "{(.*)}"] = true end)
    end)
    if not scanned then return nil, problem end
    for name in pairs(names) do
      local one
      one, problem = look(store, opts.prefix, name)
      if not one then return nil, problem end
      found[#found + 1] = one
    end
    table.sort(found, function(a, b) return a.name < b.name end)
    return found
  end)
end

--- As admin.leases, without the tokens, which are the candidates' secrets.
function admin.list(opts)
  local found, problem, code = admin.leases(opts)
  for _, one in ipairs(found or {}) do one.token = nil end
  return found, problem, code
end

local function mark(store, prefix, name)
  local channel, lease = prefix .. ":" .. Leases.CHANNEL, (Leases.keys(prefix, name))
  return store.run(lease, function(client) return client:call("EVAL", MARK, "1", lease, channel, name) end)
end

--- Marks whoever holds a lease as evicted.
-- @tparam table opts `url`, `prefix`
-- @string name of the election
-- @treturn table the node and the epoch, nothing where nobody holds it; or nil and a message
function admin.mark(opts, name)
  return with_store(opts, function(store) return mark(store, opts.prefix, name) end)
end

--- Marks a leader as evicted, and waits until it has stepped down.
-- @tparam table opts `url`, `prefix`, `wait`
-- @string name of the election
-- @treturn table `{ node =, epoch = }`, or nil and a message
function admin.evict(opts, name)
  return with_store(opts, function(store)
    local marked, problem = mark(store, opts.prefix, name)
    if not marked then return nil, problem end
    if not marked[1] then return eviction.nobody(name) end
    local epoch = tonumber(marked[2])
    local ended
    ended, problem = eviction.await(name, opts.wait, function()
      local now, why = look(store, opts.prefix, name)
      if not now then return nil, why end
      return not now.node or now.epoch ~= epoch
    end, "the request stays until its lease ends")
    if not ended then return nil, problem end
    return { node = marked[1], epoch = epoch }
  end)
end

local function warnings_of(info, opts)
  local warnings = {}
  local policy = server.field(info, "maxmemory_policy")
  if server.field(info, "maxmemory") ~= "0" and policy and policy ~= "noeviction" then
    local what = policy:find "^volatile" and "leases" or "leases and epochs"
    warnings[#warnings + 1] = ("maxmemory-policy is %s: a full server throws %s away, and two may lead; set noeviction")
      :format(policy, what)
  end
  if server.count_replicas(info) > 0 and opts.min_replicas == 0 then
    warnings[#warnings + 1] = "replication is asynchronous: after a failover one TTL is sat out; min_replicas waits for replicas"
  end
  return warnings
end

local function health_of_server(store, opts)
  local info = store.info
  local key = Leases.store(opts.prefix)
  local ttl = store.run(key, function(client) return longest_ttl(client, key) end)
  local facts = { { "Store", server.words(info) } }
  Doubt.tell(facts, store.run(key, function(client) return doubted_for(client, key, opts.amnesia_wait or 0) end) or 0)
  return { ttl = ttl, facts = facts, warnings = warnings_of(info, opts), id = server.id(info) }
end

-- What is to be said of one node is to be said of all of them.
local function health_of_cluster(store, opts)
  local primaries, warnings = {}, {}
  local asked, problem = store.each(function(client, name)
    local info, why, code = client:call "INFO"
    if not info then return nil, why, code end
    primaries[#primaries + 1] = ("%s (%s)"):format(name, server.replicas(info))
    warnings = #warnings > 0 and warnings or warnings_of(info, opts)
    return true
  end)
  if not asked then return nil, problem end
  return { facts = { { "Store", server.version(store.info) .. ", a cluster" },
    { "Primaries", table.concat(primaries, ", ") } }, warnings = warnings }
end

--- What the server says of itself; of a cluster, each node that keeps slots.
-- @tparam table opts `url`
-- @treturn table `{ ttl =, facts =, warnings =, id = of a single server }`, or nil and a message
function admin.health(opts)
  return with_store(opts, function(store)
    if store.is_cluster then return health_of_cluster(store, opts) end
    return health_of_server(store, opts)
  end)
end

-- What a candidate sends and its script calls, on a name that no election has.
local function commands(prefix)
  local lease, epoch = Leases.keys(prefix, "check")
  local store, channel = Leases.store(prefix), prefix .. ":" .. Leases.CHANNEL
  return { { "EVAL", "return 1", "1", lease }, { "EVALSHA", "0", "1", lease }, { "SCRIPT", "LOAD", "return 1" },
    { "HSET", lease, "node", "x" }, { "HSET", store, "since", "1" }, { "HMGET", lease, "node" }, { "HGET", lease, "node" },
    { "GET", epoch }, { "SET", epoch, "1" }, { "DEL", lease }, { "PEXPIRE", lease, "1" }, { "PTTL", lease }, { "TIME" },
    { "PUBLISH", channel, "x" }, { "SUBSCRIBE", channel }, { "INFO" }, { "ROLE" }, { "WAIT", "0", "1" }, { "SELECT", "0" },
    { "SCAN", "0" } }
end

-- What keeps most Sentinels from confirming a lease.
local function unconfirmed(opts)
  local parsed = redis_url.parse(opts.url)
  if not parsed.master then return nil end
  local sentinels = Sentinels.new(parsed)
  local primary, problem = sentinels:primary(opts.timeout or 5)
  sentinels:close()
  return not primary and problem or nil
end

local function lacks_of(client, opts)
  return server.lacks(client, { commands = commands(opts.prefix), min_replicas = opts.min_replicas, more = unconfirmed(opts),
    key = opts.prefix .. ":{check}:write" })
end

--- What a candidate lacks, for `check --store`: rights, as ACL DRYRUN of Redis 7 tells them, and a server that takes writes. In
-- a cluster the node is asked that would keep a key: one that the URL names may be a replica, and leads on to it.
-- @tparam table opts `url`, `prefix`, `min_replicas`
-- @treturn table an array of texts, with `unchecked` where the server does not tell, and its `id`; or nil and a message
function admin.rights(opts)
  return with_store(opts, function(store)
    return store.run((Leases.keys(opts.prefix, "check")), function(client) return lacks_of(client, opts) end)
  end, true)
end

return admin
