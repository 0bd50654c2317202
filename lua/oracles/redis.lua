--- A lease in Redis: a key that expires, kept by a script that is atomic on the server. On one server, on a primary
-- with replicas, or on a majority of independent ones. URL: `redis://host:6379/0?ttl=15`. See docs/oracle-redis.md.
-- @module crown.oracles.redis

local admin = require "crown.redis.admin"
local core = require "crown.core"
local Leases = require "crown.redis.leases"
local Quorum = require "crown.redis.quorum"
local schema = require "crown.schema"
local url = require "crown.url"

local Redis = {}
Redis.__index = Redis

local DEFAULT_TTL = 15

local RULES = {
  url = { type = "string" },
  urls = { type = "table" },
  ttl = { type = "number", least = 0.5, most = 86400 },
  duration = { type = "number", least = 0.5, most = 86400 },
  refresh = { type = "number", above = 0, most = 86400 },
  timeout = { type = "number", above = 0, most = 3600 },
  lock = { type = { "string", "number" } },
  prefix = { type = "string", default = "crown", match = "^[%w_.-]+$", match_words = "letters, digits, '_', '.' and '-'" },
  min_replicas = { type = "number", integer = true, least = 0, most = 100, default = 0 },
}
-- What every oracle gets besides, and what the URL's query says to the client.
local GIVEN = { crown_name = true, node = true, token = true, send = true, emit = true, path = true, wait = true,
  given = true }
local CLIENTS = { db = true, ca = true, cert = true, key = true, server_name = true, insecure = true,
  sentinel_user = true, sentinel_password = true }

local function check(opts)
  local own = {}
  for key, value in pairs(opts) do
    if not GIVEN[key] and not CLIENTS[key] then own[key] = value end
  end
  local checked = schema.check("oracle 'redis'", own, RULES)
  checked.url = url.without(checked.url or "redis://127.0.0.1", RULES)
  return checked
end

--- TTL and refresh delay that these options make.
function Redis.timing(opts)
  local ttl = tonumber(opts.ttl) or tonumber(opts.duration) or DEFAULT_TTL
  return ttl, tonumber(opts.refresh) or ttl / 3
end

local function leases_of(checked, timeout)
  local options = { timeout = timeout, prefix = checked.prefix, min_replicas = checked.min_replicas }
  if not checked.urls then return Leases.at(checked.url, options) end
  return Quorum.at(checked.urls, options)
end

-- One call at a time is under way for an election, so what it asks is one table.
local function item_of(self)
  return { name = self.name, token = self.token, node = self.node, claim = "0", ttl = ("%.0f"):format(self.ttl * 1000) }
end

function Redis.init(opts)
  local checked = check(opts)
  local ttl, delay = Redis.timing(checked)
  local timeout = checked.timeout or math.max(0.25, math.min(5, ttl / 4))
  local leases, problem = leases_of(checked, timeout)
  if not leases then return nil, problem end
  local self = setmetatable({ leases = leases, name = tostring(checked.lock or opts.crown_name), number = 0, ttl = ttl,
    delay = delay, timeout = timeout, token = opts.token, node = opts.node, send = opts.send }, Redis)
  self.item = item_of(self)
  leases:join(self)
  return self
end

-- Numbers that rise, also from one runtime of this candidate to the next: microseconds since the start of the host.
local function next_number(self)
  self.number = math.max(self.number + 1, math.floor(core.now() * 1e6))
  self.item.claim = ("%.0f"):format(self.number)
end

local function denied(self, answer)
  if answer.distrust then
    return false, { node = answer.node, epoch = answer.held, amnesia = true,
      expires_in = math.max(answer.distrust, answer.left or 0) }
  end
  if answer.token == self.token then return nil, "an older claim of ours was answered" end
  return false, { node = answer.node, epoch = answer.held, expires_in = answer.left }
end

function Redis:claim()
  next_number(self)
  local epoch, second, code = self.leases:claim(self.item, self.timeout)
  if epoch == nil then return nil, second, code end
  if not epoch then return denied(self, second) end
  self.leading, self.grant = true, { ttl = self.ttl, epoch = epoch }
  return true, self.delay, self.grant
end

function Redis:refresh()
  local epoch, second, code = self.leases:refresh(self.item, self.timeout)
  if epoch == nil then return nil, second, code end
  if epoch and second then return false, { evicted = true } end
  if epoch then
    if epoch ~= self.grant.epoch then self.grant = { ttl = self.ttl, epoch = epoch } end
    return true, self.delay, self.grant
  end
  self.leading = false
  if not second.token then return false, { amnesia = true, expires_in = self.ttl } end -- the key is gone
  return denied(self, second)
end

function Redis:abdicate()
  self.leading = false
  self.leases:release(self.item, self.timeout)
end

function Redis:handle_info(message)
  if message == "evict" then
    if self.leading then return self:refresh() end
  elseif message == "freed" or message == "missed" then
    if not self.leading then return self:claim() end
  end
end

--- Leases on the server.
-- @tparam table opts `url`, `prefix`
-- @treturn table an array of `{ name, node, epoch, expires_in }`, or nil and a message
function Redis.list(opts)
  return admin.list(check(opts))
end

--- Asks the leader to step down, and waits until it has.
-- @tparam table opts `url`, `prefix`; `wait` seconds (10)
-- @string name of the election
-- @treturn table `{ node =, epoch = }` of who was evicted, or nil and a message
function Redis.evict(opts, name)
  local checked = check(opts)
  checked.wait = opts.wait
  return admin.evict(checked, name)
end

--- What the server says of itself, for `info`.
-- @tparam table opts `url`
-- @treturn table `{ facts =, warnings = }`, or nil and a message
function Redis.health(opts)
  return admin.health(check(opts))
end

return Redis
