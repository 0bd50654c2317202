--- What `crown-lua info` and `evict` ask of the keys.
-- @module crown.redis.admin

local eviction = require "crown.oracle.eviction"
local Leases = require "crown.redis.leases"
local redis = require "crown.redis"

local admin = {}

local SCAN_COUNT = "500"

local MARK = [[
local token = redis.call('HGET', KEYS[1], 'token')
if not token then return {} end
redis.call('HSET', KEYS[1], 'evicted', '1')
redis.call('PUBLISH', ARGV[1], 'evict ' .. ARGV[2])
return redis.call('HMGET', KEYS[1], 'node', 'epoch')]]

local function with_client(opts, fn)
  local client, problem = redis.connect(opts.urls and opts.urls[1] or opts.url, { timeout = opts.timeout or 5 })
  if not client then return nil, problem end
  local result
  result, problem = fn(client)
  client:close()
  return result, problem
end

local function each_key(client, pattern, fn)
  local cursor = "0"
  repeat
    local page, problem = client:call("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT)
    if not page then return nil, problem end
    cursor = page[1]
    for _, key in ipairs(page[2]) do fn(key) end
  until cursor == "0"
  return true
end

local function look(client, prefix, name)
  local lease, epochs = Leases.keys(prefix, name)
  local held, problem = client:call("HMGET", lease, "node", "epoch")
  if not held then return nil, problem end
  local left = client:call("PTTL", lease)
  local epoch = client:call("GET", epochs)
  return { name = name, node = held[1], epoch = tonumber(held[2] or epoch or 0),
    expires_in = held[1] and left and left > 0 and left / 1000 or nil }
end

--- Elections whose keys begin with the prefix.
-- @tparam table opts `url`, `prefix`
-- @treturn table an array of `{ name, node, epoch, expires_in }`, or nil and a message
function admin.list(opts)
  return with_client(opts, function(client)
    local names, found = {}, {}
    local scanned, problem = each_key(client, opts.prefix .. ":{*}:epoch", function(key)
      names[key:match "{(.*)}"] = true
    end)
    if not scanned then return nil, problem end
    for name in pairs(names) do
      local one
      one, problem = look(client, opts.prefix, name)
      if not one then return nil, problem end
      found[#found + 1] = one
    end
    table.sort(found, function(a, b) return a.name < b.name end)
    return found
  end)
end

--- Marks a leader as evicted, and waits until it has stepped down.
-- @tparam table opts `url`, `prefix`, `wait`
-- @string name of the election
-- @treturn table `{ node =, epoch = }`, or nil and a message
function admin.evict(opts, name)
  return with_client(opts, function(client)
    local channel = opts.prefix .. ":" .. Leases.CHANNEL
    local marked, problem = client:call("EVAL", MARK, "1", (Leases.keys(opts.prefix, name)), channel, name)
    if not marked then return nil, problem end
    if not marked[1] then return nil, ("nobody leads '%s'"):format(name) end
    local epoch = tonumber(marked[2])
    local ended
    ended, problem = eviction.await(name, opts.wait, function()
      local now, why = look(client, opts.prefix, name)
      if not now then return nil, why end
      return not now.node or now.epoch ~= epoch
    end, "the request stays until its lease ends")
    if not ended then return nil, problem end
    return { node = marked[1], epoch = epoch }
  end)
end

local function field(info, name)
  return info:match("\n" .. name .. ":([^\r\n]*)")
end

local function warnings_of(info, opts)
  local warnings = {}
  local policy = field(info, "maxmemory_policy")
  if field(info, "maxmemory") ~= "0" and policy and policy:find "allkeys" then
    warnings[#warnings + 1] = ("maxmemory-policy is %s: a full server may throw leases and epochs away"):format(policy)
  end
  if (tonumber(field(info, "connected_slaves")) or 0) > 0 and opts.min_replicas == 0 then
    warnings[#warnings + 1] = "replication is asynchronous: after a failover one TTL is sat out; min_replicas waits for replicas"
  end
  return warnings
end

--- What the server says of itself.
-- @tparam table opts `url`
-- @treturn table `{ facts =, warnings = }`, or nil and a message
function admin.health(opts)
  return with_client(opts, function(client)
    local info, problem = client:call "INFO"
    if not info then return nil, problem end
    local replicas = tonumber(field(info, "connected_slaves")) or 0
    return { facts = { { "Store", ("Redis %s, %s, %d replica%s, append-only file %s"):format(field(info, "redis_version"),
      field(info, "role"), replicas, replicas == 1 and "" or "s", field(info, "aof_enabled") == "1" and "on" or "off") } },
      warnings = warnings_of(info, opts) }
  end)
end

return admin
