--- A real Redis Cluster of the spec's own: primaries with a replica each, on free loopback ports, each with a wall clock of its
-- own (`clocks`).
local crown = require "crown"
local eventually = require("crown.testing").eventually
local port = require "support.port"
local Redis = require "support.redis"
local WrongClock = require "support.wrong_clock"

local RedisCluster = {}
RedisCluster.__index = RedisCluster

local CONFIG = "cluster-enabled yes\ncluster-port %d\ncluster-node-timeout %d\ncluster-replica-validity-factor 0\n"
local NODE_TIMEOUT = 1000 -- milliseconds until a primary counts as gone

--- Starts one.
-- @tparam[opt] table options `primaries` (3), `replicas` of each (1)
function RedisCluster.start(options)
  options = options or {}
  local primaries, replicas = options.primaries or 3, options.replicas or 1
  local self = setmetatable({ servers = {}, clocks = WrongClock.several(primaries * (1 + replicas)) }, RedisCluster)
  local words = { "redis-cli", "--cluster", "create" }
  for i = 1, primaries * (1 + replicas) do
    local bus = port.free()
    self.servers[i] = Redis.start { config = CONFIG:format(bus, NODE_TIMEOUT), env = self.clocks[i]:environment() }
    words[#words + 1] = ("127.0.0.1:%d@%d"):format(self.servers[i].port, bus)
  end
  for _, word in ipairs { "--cluster-replicas", tostring(replicas), "--cluster-yes" } do words[#words + 1] = word end
  local made = assert(crown.exec(words, { timeout = 60 }))
  assert(made.code == 0, made.stdout .. made.stderr)
  self:await_whole()
  self.url = ("redis://127.0.0.1:%d"):format(self.servers[1].port)
  return self
end

--- Waits until every server that runs sees all slots served, and each replica has its primary's data.
function RedisCluster:await_whole()
  for _, server in ipairs(self.servers) do
    if not server.process.code then
      eventually(function()
        local info = server:call("CLUSTER", "INFO")
        local replication = server:call("INFO", "replication")
        return info and info:find "cluster_state:ok" and (replication:find "role:master" or replication:find "master_link_status:up")
      end, 60)
    end
  end
end

--- The URL with all servers in it.
function RedisCluster:seeds()
  local hosts = {}
  for i, server in ipairs(self.servers) do hosts[i] = "127.0.0.1:" .. server.port end
  return "redis+cluster://" .. table.concat(hosts, ",")
end

-- A server that answers.
local function any(self)
  for _, server in ipairs(self.servers) do
    if not server.process.code and server.frozen == nil then return server end
  end
end

function RedisCluster:by_port(number)
  for _, server in ipairs(self.servers) do
    if server.port == number then return server end
  end
end

--- Who keeps a key now, by what the servers say.
-- @string key
-- @treturn Redis the primary
-- @treturn Redis a replica of it, or nil
function RedisCluster:keeper(key)
  local one = any(self)
  local slot = one:call("CLUSTER", "KEYSLOT", key)
  for _, range in ipairs(one:call("CLUSTER", "SLOTS")) do
    if slot >= range[1] and slot <= range[2] then
      return self:by_port(range[3][2]), range[4] and self:by_port(range[4][2])
    end
  end
end

--- Begins to move a key's slot to another primary; whoever asks meanwhile is sent from one to the other.
-- @string key
-- @treturn Redis who keeps it
-- @treturn Redis who is to keep it
-- @treturn function ends it
function RedisCluster:move(key)
  local from = self:keeper(key)
  local slot, to = from:call("CLUSTER", "KEYSLOT", key), nil
  for _, range in ipairs(from:call("CLUSTER", "SLOTS")) do
    local one = self:by_port(range[3][2])
    if one ~= from then to = one end
  end
  local function set(server, ...) assert(server:call("CLUSTER", "SETSLOT", tostring(slot), ...)) end
  local from_id, to_id = from:call("CLUSTER", "MYID"), to:call("CLUSTER", "MYID")
  set(to, "IMPORTING", from_id)
  set(from, "MIGRATING", to_id)
  return from, to, function()
    local keys = from:call("CLUSTER", "GETKEYSINSLOT", tostring(slot), "100")
    if #keys > 0 then
      assert(from:call("MIGRATE", "127.0.0.1", tostring(to.port), "", "0", "2000", "REPLACE", "KEYS", unpack(keys)))
    end
    set(to, "NODE", to_id)
    set(from, "NODE", to_id)
  end
end

--- Waits until somebody else keeps a key.
-- @string key
-- @tparam Redis before who kept it
-- @treturn Redis
function RedisCluster:succeed(key, before)
  return eventually(function()
    local now = self:keeper(key)
    return now and now ~= before and now:call("CLUSTER", "INFO"):find "cluster_state:ok" and now
  end, 60)
end

function RedisCluster:destroy()
  for _, server in ipairs(self.servers) do server:destroy() end
end

return RedisCluster
