--- A lease in Redis: a key that expires, kept by a script that is atomic on the server. On one server, on a primary
-- with replicas, or on a majority of independent ones. URL: `redis://host:6379/0?ttl=15`. See docs/oracle-redis.md.
-- @module crown.oracles.redis

local admin = require "crown.redis.admin"
local candidate = require "crown.oracle.candidate"
local Lease = require "crown.oracle.lease"
local Leases = require "crown.redis.leases"
local majority = require "crown.redis.majority"
local Quorum = require "crown.redis.quorum"
local redis_options = require "crown.redis.options"
local store_options = require "crown.oracle.options"

local Redis = Lease.oracle {}
Redis.__index = Redis

local DEFAULT_TTL = 15

local RULES = {
  ttl = store_options.short_ttl(),
  duration = store_options.short_ttl "ttl",
  refresh = { type = "number", above = 0, most = 86400 },
  timeout = { type = "number", above = 0, most = 3600 },
  lock = store_options.lock(),
  amnesia_wait = store_options.AMNESIA_WAIT,
  trust_empty = store_options.trust_empty(false),
}
for name, rule in pairs(redis_options.RULES) do RULES[name] = rule end

local function check(opts) return redis_options.check(opts, RULES) end

--- TTL and refresh delay that these options make.
function Redis.timing(opts)
  return store_options.timing(opts, DEFAULT_TTL)
end

local function leases_of(checked, timeout)
  local options = { timeout = timeout, prefix = checked.prefix, min_replicas = checked.min_replicas,
    amnesia_wait = checked.amnesia_wait, trust_empty = checked.trust_empty }
  if not checked.urls then return Leases.at(checked.url, options) end
  return Quorum.at(checked.urls, options)
end

local function store_of(checked)
  return table.concat(checked.urls or { checked.url }, " ") .. " " .. checked.prefix
end

local function kind_of(leases, ttl, delay, timeout)
  return Lease.kind(Redis, leases, ttl, delay, timeout, function()
    return { milliseconds = ("%.0f"):format(ttl * 1000) }
  end)
end

function Redis.init(opts)
  local checked = check(opts)
  local ttl, delay = Redis.timing(checked)
  local timeout = store_options.timeout(checked, ttl, delay)
  local leases, problem = leases_of(checked, timeout)
  if not leases then return nil, problem end
  local name = tostring(checked.lock or opts.crown_name)
  local token
  token, problem = candidate.enter(store_of(checked), name, opts)
  if not token then return nil, problem end
  local self = setmetatable({ name = name, number = 0, heard = 0, token = token, mine = token, node = opts.node,
    send = opts.send }, kind_of(leases, ttl, delay, timeout))
  leases:join(self)
  return self
end

local function item_of(self)
  return { name = self.name, token = self.token, node = self.node, claim = ("%.0f"):format(self.number),
    ttl = self.milliseconds, heard = ("%.0f"):format(self.heard) }
end

function Redis:ask(op)
  local epoch, second, code = self.leases[op](self.leases, item_of(self), self.timeout)
  local heard = epoch or type(second) == "table" and second.held
  if type(heard) == "number" then self.heard = math.max(self.heard, heard) end
  if op == "claim" and epoch then
    self.refresher, self.refreshed = self.leases:refresher(self, item_of), item_of(self)
  end
  return epoch, second, code
end

--- Leases on the server.
-- @tparam table opts `url` or `urls`, `prefix`
-- @treturn table an array of `{ name, node, epoch, expires_in }`, or nil and a message
function Redis.list(opts)
  local checked = check(opts)
  return (checked.urls and majority or admin).list(checked)
end

--- Asks the leader to step down, and waits until it has.
-- @tparam table opts `url` or `urls`, `prefix`; `wait` seconds (10)
-- @string name of the election
-- @treturn table `{ node =, epoch = }` of who was evicted, or nil and a message
function Redis.evict(opts, name)
  local checked = check(opts)
  checked.wait = opts.wait
  return (checked.urls and majority or admin).evict(checked, name)
end

--- What the server says of itself, for `info`.
-- @tparam table opts `url` or `urls`
-- @treturn table `{ facts =, warnings = }`, or nil and a message
function Redis.health(opts)
  local checked = check(opts)
  return (checked.urls and majority or admin).health(checked)
end

--- What a candidate may not do on the server, for `check --store`.
-- @tparam table opts `url` or `urls`, `prefix`, `min_replicas`
-- @treturn table an array of texts, with `unchecked` where the server does not tell; or nil and a message
function Redis.rights(opts)
  local checked = check(opts)
  return (checked.urls and majority or admin).rights(checked)
end

return Redis
