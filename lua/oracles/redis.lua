--- A lease in Redis: a key that expires, kept by a script that is atomic on the server. On one server, on a primary
-- with replicas, or on a majority of independent ones. URL: `redis://host:6379/0?ttl=15`. See docs/oracle-redis.md.
-- @module crown.oracles.redis

local admin = require "crown.redis.admin"
local candidate = require "crown.oracle.candidate"
local Lease = require "crown.oracle.lease"
local Leases = require "crown.redis.leases"
local majority = require "crown.redis.majority"
local Quorum = require "crown.redis.quorum"
local same = require "crown.redis.same"
local store_options = require "crown.oracle.options"
local url = require "crown.text.url"
local usage = require "crown.check.usage"

local Redis = Lease.oracle {}
Redis.__index = Redis

local DEFAULT_TTL = 15
local LEAST = 3 -- servers of a majority

local RULES = {
  url = { type = "string", default = "redis://127.0.0.1" },
  urls = { type = "table" },
  ttl = store_options.short_ttl(),
  duration = store_options.short_ttl "ttl",
  refresh = { type = "number", above = 0, most = 86400 },
  timeout = { type = "number", above = 0, most = 3600 },
  lock = store_options.lock(),
  prefix = { type = "string", default = "crown", match = "^[%w_.-]+$", match_words = "letters, digits, '_', '.' and '-'" },
  amnesia_wait = store_options.AMNESIA_WAIT,
  trust_empty = store_options.trust_empty(false),
  min_replicas = { type = "number", integer = true, least = 0, most = 100, default = 0 },
}
-- What the client reads from the URL.
local CLIENTS = { db = true, ca = true, cert = true, key = true, server_name = true, insecure = true,
  sentinel_user = true, sentinel_password = true }

-- redis+majority://login@one,two,three/db?query is each of the three by itself. The last @ before the query ends the login, as
-- in every URL.
local function take_apart(checked)
  local scheme, front, query = checked.url:match "^(rediss?)%+majority://([^?]*)(.*)$"
  if not scheme then return checked.urls end
  if checked.urls then usage.error "oracle 'redis': urls has no effect here: redis+majority:// names the servers" end
  local login, place = front:match "^(.*@)(.*)$"
  local hosts, path = (place or front):match "^([^/]*)(.*)$"
  local urls = {}
  for host in hosts:gmatch "[^,]+" do urls[#urls + 1] = ("%s://%s%s%s%s"):format(scheme, login or "", host, path, query) end
  return urls
end

-- A server that is named twice would have two voices. Where two names lead to one server only the server tells: see
-- crown.redis.same.
local function refuse_twice(urls)
  local named = {}
  for _, one in ipairs(urls) do
    local place = same.place(one)
    if place and named[place] then
      url.refuse_login(one)
      usage.error("oracle 'redis': two of these servers are one: %s", place)
    end
    if place then named[place] = true end
  end
end

local function check(opts)
  local checked = store_options.check("redis", opts, RULES, CLIENTS)
  checked.urls = take_apart(checked)
  if checked.urls and #checked.urls < LEAST then
    usage.error("oracle 'redis': a majority that survives the loss of a server needs %d servers at least", LEAST)
  end
  if checked.urls then refuse_twice(checked.urls) end
  for _, name in ipairs { "sentinel_user", "sentinel_password" } do
    if checked.url:find(name .. "=", 1, true) and not checked.url:find "^redis%+sentinel:" then
      usage.error("oracle 'redis': %s has no effect here: it is for redis+sentinel://", name)
    end
  end
  return checked
end

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
