--- The stores that every table of spec/stores/cases is played on: how each is started, what leads to it, and what can happen to it.
-- `hurt` has a function for each word of stores.words; `lacks` says why it has none. The torture hurts the same stores.
local consul_place = require "crown.consul.place"
local oracle = require "crown.election.contract"
local record = require "crown.register.record"
local stores = require "torture.stores"
local Way = require "torture.way"
local Wire = require "support.nats_wire"


local drivers = {}

local Driver = {}
Driver.__index = Driver

-- Faults of the torture tell what they do, and look at a world of candidates.
local SILENT = { say = function() end }

local function begin(fault)
  return function() return fault.begin(SILENT, math.random) end
end

-- Begins and ends at once.
local function whole(fault)
  return function() fault.begin(SILENT, math.random)() end
end

local AMONG_SEVERAL = "no single server has what most of them have"
local BY_KEYS = "whoever deletes etcd's keys frees the election, as docs/oracle-etcd.md says"
local NO_SERVER = "there is no server"

--- Steps the clocks of the store's servers.
-- @number seconds how far they are ahead of the right ones
function Driver:clock(seconds)
  for _, clock in ipairs(self.store.clocks or {}) do clock:set(seconds) end
end

--- Opens ways of its own to the servers of the store, for one actor.
-- @treturn table of torture.way, none where the servers tell their addresses themselves
function Driver:ways()
  local ways = {}
  if self.store.announced then return ways end
  for i, target in ipairs(self.store.ports or {}) do ways[i] = Way.open(target) end
  return ways
end

--- The URL of an election by such ways.
-- @tparam table ways
-- @string name of the election
-- @number ttl seconds
-- @treturn string
function Driver:url(ways, name, ttl)
  local ports = {}
  for i, way in ipairs(ways) do ports[i] = way.port end
  return self.address(self.store, ports, name, ttl)
end

--- The module of its oracle.
-- @treturn table
function Driver:oracle()
  local ways = self:ways()
  local module = oracle.find("spec", self:url(ways, "spec", 8))
  for _, way in ipairs(ways) do way:close() end
  return module
end

local function with_ttl(store, ports, _, ttl)
  local url = store.url(unpack(ports))
  return ("%s%sttl=%g"):format(url, url:find "?" and "&" or "?", ttl)
end

-- A bucket has one TTL for all its keys, so each election has one of its own.
local function bucket(name) return (name:gsub("%W", "_")) end

local function in_a_bucket(store, ports, name, ttl)
  return (with_ttl(store, ports, name, ttl):gsub("/SPEC", "/" .. bucket(name)))
end

local function jetstream(server, what)
  local wire = Wire.open(server.port)
  local answer = wire:ask("$JS.API.STREAM." .. what, nil, "")
  wire.connection:close()
  assert(not answer.error, answer.error and answer.error.description)
end

local function hurt_of_nats(store)
  return { restart = whole(store.faults.restart), freeze = begin(store.faults.freeze), deny = begin(store.faults.users),
    delete = function(name) jetstream(store.servers[1], "PURGE.KV_" .. bucket(name)) end,
    forget = function(name) jetstream(store.servers[1], "DELETE.KV_" .. bucket(name)) end,
    evict = true, clock = true }
end

local function hurt_of_postgres(store, statement)
  local faults = store.faults
  return { restart = whole(faults.restart), freeze = begin(faults.freeze), sessions = begin(faults.sessions),
    deny = begin(faults.users), forget = begin(faults.drop), older = begin(faults.older_data), clock = true, evict = true,
    delete = statement and function(name) store.hands.server:sql("DELETE FROM crown_lease_v1 WHERE lock_name = $1", name) end }
end

local function hurt_of_redis(store, keeper)
  local faults = store.faults
  return { restart = whole(faults.restart), freeze = begin(faults.freeze), sessions = faults.sessions and begin(faults.sessions),
    deny = faults.users and begin(faults.users), forget = begin(faults.flush),
    older = faults.older_data and begin(faults.older_data), clock = true, evict = true,
    delete = function(name)
      keeper():call("DEL", ("crown:{%s}:record"):format(name))
    end }
end

local function hurt_of_etcd(store)
  local faults = store.faults
  return { restart = whole(faults.restart), freeze = begin(faults.freeze), clock = true, evict = true,
    forget = faults.wipe and whole(faults.wipe), older = faults.older_data and begin(faults.older_data) }
end

local function hurt_of_mysql(store)
  local faults, server = store.faults, store.server
  return { restart = whole(faults.restart), freeze = begin(faults.freeze), sessions = begin(faults.sessions),
    deny = begin(faults.users), forget = begin(faults.drop), older = begin(faults.older_data), clock = true, evict = true,
    delete = function(name)
      server:sql(("DELETE FROM crown.crown_register WHERE name = '%s'"):format(name))
    end }
end

local function hurt_of_kubernetes(store)
  local faults, server = store.faults, store.server
  return { restart = whole(faults.restart), freeze = begin(faults.freeze), deny = begin(faults.users), evict = true,
    delete = function(name) server:ask("DELETE", "/" .. name) end, forget = function() server:wipe() end }
end

local function hurt_of_zookeeper(store)
  local faults = store.faults
  return { restart = whole(faults.restart), freeze = begin(faults.freeze), evict = true, forget = whole(faults.wipe),
    older = begin(faults.older_data) }
end

-- Each election's Lease is there before, as somebody has left it: one that is missing is waited for, which has cases of its own.
local function in_a_lease(store, ports, name, ttl)
  store.made = store.made or {}
  if not store.made[name] then
    store.made[name] = true
    store.server:ask("POST", "", { apiVersion = "coordination.k8s.io/v1", kind = "Lease", metadata = { name = name }, spec = {
      holderIdentity = "" } })
  end
  return with_ttl(store, ports, name, ttl)
end

local function hurt_of_s3(store)
  local faults, server = store.faults, store.server
  return { restart = whole(faults.restart), freeze = begin(faults.freeze), deny = begin(faults.users), evict = true,
    older = begin(faults.older_data), forget = begin(faults.empty),
    delete = function(name) server:object("DELETE", name .. ".json") end }
end

local function hurt_of_consul(store)
  local faults, server = store.faults, store.server
  return { restart = whole(faults.restart), freeze = begin(faults.freeze), deny = begin(faults.users), evict = true,
    older = begin(faults.older_data), forget = begin(faults.empty),
    delete = function(name) server:key("DELETE", consul_place.key(name)) end }
end

-- Each election's object, or key, is there before, as a leader leaves it that has ended: one that is missing is doubted, which has
-- cases of its own.
local function once_made(make)
  return function(store, ports, name, ttl)
    store.made = store.made or {}
    if not store.made[name] then
      store.made[name] = true
      make(store.server, name, record.text({ v = 1, serial = 1, memory = "", epoch = 1 }, "spec"))
    end
    return with_ttl(store, ports, name, ttl)
  end
end

local in_an_object = once_made(function(server, name, text) server:object("PUT", name .. ".json", text) end)
local in_a_key = once_made(function(server, name, text) server:key("PUT", consul_place.key(name), text) end)

-- Each: `store`, the name in torture.stores, or a function that starts one; `address`, what makes its URL; `hurt(store)`; `lacks`;
-- `epochs_anew`: after which of these epochs may begin anew, as its page says.
local LIST = {
  { name = "postgres", store = "postgres", epochs_anew = { forget = true, older = true },
    hurt = function(store) return hurt_of_postgres(store, true) end },
  { name = "redis", store = "redis", hurt = function(store) return hurt_of_redis(store, function() return store.server end) end },
  { name = "cluster", store = "cluster", hurt = function(store)
    local hurt = hurt_of_redis(store, function() return store.server:keeper "crown:{none}:record" end)
    hurt.delete, hurt.forget, hurt.restart, hurt.freeze = nil, nil, nil, nil
    return hurt
  end, lacks = { delete = AMONG_SEVERAL, forget = AMONG_SEVERAL, restart = AMONG_SEVERAL, freeze = AMONG_SEVERAL,
    older = AMONG_SEVERAL, deny = AMONG_SEVERAL, sessions = AMONG_SEVERAL,
    prefer = "it is in the record, as on one server, and each election begins with a wait here",
    cut = "its nodes tell their addresses themselves" } },
  { name = "etcd", store = "etcd", hurt = hurt_of_etcd, epochs_anew = { forget = true, older = true },
    lacks = { sessions = "a connection is no session", deny = "a pass stays valid when its user is changed", delete = BY_KEYS } },
  { name = "etcd3", store = "etcd3", hurt = function() return { clock = true, evict = true } end,
    lacks = { restart = AMONG_SEVERAL, freeze = AMONG_SEVERAL, delete = BY_KEYS, sessions = "a connection is no session",
      deny = "it has no users", forget = AMONG_SEVERAL, older = AMONG_SEVERAL } },
  { name = "mysql", store = "mysql", epochs_anew = { forget = true, older = true }, hurt = hurt_of_mysql },
  { name = "nats", store = "nats", address = in_a_bucket, hurt = hurt_of_nats, epochs_anew = { forget = true, older = true },
    lacks = { sessions = "deny ends them", older = "the torture has it not" } },
  { name = "nats3", store = "nats3", address = in_a_bucket, hurt = function(store)
    return { evict = true, deny = begin(store.faults.users) }
  end, lacks = { clock = "its servers take no writes for as long as their clocks were set back: the torture steps them",
    restart = AMONG_SEVERAL, freeze = AMONG_SEVERAL, delete = AMONG_SEVERAL, sessions = "deny ends them",
    forget = AMONG_SEVERAL, older = AMONG_SEVERAL } },
  { name = "kubernetes", store = "kubernetes", address = in_a_lease, hurt = hurt_of_kubernetes, epochs_anew = { forget = true },
    lacks = { sessions = "a connection is no session", clock = "no time of the server counts",
      older = "its newcomers cannot tell: spec/oracles/kubernetes_spec.lua has what a follower does" } },
  { name = "s3", store = "s3", address = in_an_object, hurt = hurt_of_s3, epochs_anew = { forget = true, older = true },
    lacks = { sessions = "a connection is no session", clock = "no time of the server counts" } },
  { name = "consul", store = "consul", address = in_a_key, hurt = hurt_of_consul,
    epochs_anew = { forget = true, older = true },
    lacks = { sessions = "a connection is no session", clock = "no time of the server counts" } },
  { name = "consul_lock", store = "consul_lock", epochs_anew = { forget = true }, hurt = function(store)
    local hurt = hurt_of_consul(store)
    hurt.delete, hurt.older = nil, nil
    return hurt
  end, lacks = { sessions = "spec/oracles/consul_lock_spec.lua has it", clock = "no time of the server counts",
    delete = "who deletes the key frees the election, as docs/oracle-consul.md says", older = "its newcomers cannot tell" } },
  { name = "zookeeper", store = "zookeeper", hurt = hurt_of_zookeeper, epochs_anew = { forget = true, older = true },
    lacks = { sessions = "no client may end another's session", clock = "no clock of the server's counts",
      deny = "an ACL is a node's: spec/oracles/zookeeper_spec.lua has it",
      delete = "whoever deletes its node frees the election, as docs/oracle-zookeeper.md says" } },
  { name = "http", store = "http", hurt = function(store)
    return { restart = whole(store.faults.restart), freeze = begin(store.faults.freeze) }
  end, epochs_anew = { restart = true }, lacks = { sessions = "it has none", deny = "it has no users", forget = "a restart is that",
    older = "it keeps nothing", clock = "it counts on a clock that no wall clock moves", delete = "nothing can be deleted by hand",
    evict = "the protocol has no eviction" } },
  { name = "file", store = "file", address = function(store) return store.url() end, hurt = function() return { evict = true } end,
    lacks = { restart = NO_SERVER, freeze = NO_SERVER, sessions = NO_SERVER, deny = NO_SERVER, forget = "the torture removes its files",
      older = "the torture puts them back", clock = "a lock has no time", delete = "the torture removes its files",
      cut = "there is no way to cut" } },
  { name = "memory", store = function() return { server = { destroy = function() end },
    url = function() return "memory:cases" end } end, hurt = function() return { prefer = true } end,
    lacks = { restart = NO_SERVER, freeze = NO_SERVER, sessions = NO_SERVER, deny = NO_SERVER, forget = NO_SERVER, older = NO_SERVER,
      clock = NO_SERVER, delete = NO_SERVER, evict = "it is for tests, and has no eviction", cut = NO_SERVER } },
}

--- The names of all stores, in order.
drivers.NAMES = {}
for i, one in ipairs(LIST) do drivers.NAMES[i] = one.name end

--- Starts a store.
-- @string name
-- @treturn Driver `name`, `store` of torture.stores, `hurt`, `lacks`; `destroy()`
function drivers.start(name)
  for _, one in ipairs(LIST) do
    if one.name == name then
      local self = setmetatable({}, Driver)
      for key, value in pairs(one) do self[key] = value end
      self.store = type(one.store) == "string" and stores.start(one.store) or one.store()
      self.address, self.lacks = one.address or with_ttl, one.lacks or {}
      self.hurt = one.hurt(self.store)
      self.asks = self.store.ports ~= nil -- a server, which may be late
      self.hurt.order = self:oracle().order ~= nil or nil
      if not self.lacks.prefer then self.hurt.prefer = self.hurt.prefer or self.hurt.order end
      self.hurt.runs = self:oracle().runs ~= nil or nil
      self.lacks.order = self.lacks.order or "its records are in another system's format"
      self.lacks.runs, self.lacks.prefer = self.lacks.runs or self.lacks.order, self.lacks.prefer or self.lacks.order
      self.hurt.cut = self.store.ports and not self.store.announced or nil
      return self
    end
  end
  error(("there is no store '%s'"):format(name), 0)
end

function Driver:destroy() self.store.server:destroy() end

return drivers
