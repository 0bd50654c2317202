--- What the verbs `info`, `evict` and `check` ask of Consul, of elections in the format of `consul lock`.
-- @internal crown.consul.admin

local Client = require "crown.consul.client"
local eviction = require "crown.oracle.eviction"
local lock = require "crown.consul.lock"
local options = require "crown.consul.options"
local Orders = require "crown.consul.orders"
local place = require "crown.consul.place"
local session = require "crown.consul.session"
local tools = require "crown.consul.tools"

local admin = {}

local TIMEOUT = 5 -- seconds for a question
local NO_SESSIONS = 'no policy of the token allows session:write: session_prefix "" { policy = "write" }'
local STAYS = "the request stays until its term ends; one that leads by another program does not hear it"

-- What a question needs.
local function open(opts)
  local checked, problem = options.check(opts)
  if not checked then return nil, problem, "usage" end
  local client
  client, problem = Client.new(checked.url, checked, false)
  if not client then return nil, problem, "usage" end
  return { client = client, checked = checked, timeout = checked.timeout or TIMEOUT }
end

-- @return by "lock", "orders" and "evicted" what stands at an election; or nil, message, code
local function read(self, name)
  local base = lock.base(self.client.prefix, name)
  local answer, problem, code = self.client:ask({ path = place.path(base) .. "?recurse&consistent" }, self.timeout)
  if not answer then return nil, problem, code end
  local found = lock.all(lock.entries(answer), base)
  if not found then return self.client:strange() end
  return found
end

-- Of a leader of `consul lock` only its session has a name.
local function node_of(self, held)
  return held.node or session.name(self.client, held.session, self.timeout)
end

--- Elections below the prefix.
-- @tparam table opts `url` and the others
-- @treturn table an array of `{ name, node, epoch }`; or nil, message, code
function admin.list(opts)
  local self, problem, code = open(opts)
  if not self then return nil, problem, code end
  local answer
  answer, problem, code = self.client:ask({ path = place.path(self.client.prefix) .. "?recurse&consistent" }, self.timeout)
  if not answer then return nil, problem, code end
  local listed, entries = {}, lock.entries(answer)
  if not entries then return self.client:strange() end
  for _, entry in ipairs(entries) do
    local held = lock.read(entry)
    if not held then return self.client:strange() end
    local name, what = lock.of(tostring(entry.Key):sub(#self.client.prefix + 1))
    if name and what == "lock" and not held.is_foreign then
      listed[#listed + 1] = { name = name, node = held.session and node_of(self, held), epoch = held.index }
    end
  end
  return listed
end

--- Hands a tool the orders below the prefix.
-- @tparam table opts `url` and the others
-- @tparam function fn gets a store of orders
-- @return what it returns; or nil, message, code
function admin.with_orders(opts, fn)
  local self, problem, code = open(opts)
  if not self then return nil, problem, code end
  return fn(Orders.new(self.client, self.timeout))
end

--- Asks the leader to step down, and waits until it has. One that leads by another program hears no such wish.
-- @tparam table opts `url` and the others; `wait` seconds (10)
-- @string name of the election
-- @treturn table `{ node =, epoch = }` of who was evicted; or nil, message, code
function admin.evict(opts, name)
  local self, problem, code = open(opts)
  if not self then return nil, problem, code end
  local found
  found, problem, code = read(self, name)
  if not found then return nil, problem, code end
  local held = found.lock
  if not (held and held.session) then return eviction.nobody(name) end
  local key = lock.key(lock.base(self.client.prefix, name), "evicted")
  local answer
  answer, problem, code = self.client:ask({ path = place.path(key), method = "PUT", body = lock.wish(held) }, self.timeout)
  if not answer then return nil, problem, code end
  local gone
  gone, problem, code = eviction.await(name, opts.wait, function()
    local now = read(self, name)
    return now ~= nil and not (now.lock and now.lock.session == held.session)
  end, STAYS)
  if not gone then return nil, problem, code end
  return { node = node_of(self, held), epoch = held.index }
end

--- What Consul says of itself, and of the election's lock.
-- @tparam table opts `url` and the others
-- @treturn table `{ facts =, warnings =, problems = }`; or nil, message, code
function admin.health(opts)
  local self, problem, code = open(opts)
  if not self then return nil, problem, code end
  local found
  found, problem, code = tools.health(self.client, self.timeout)
  if not found or not opts.crown_name or #found.problems > 0 then return found, problem, code end
  local name = tostring(self.checked.lock or opts.crown_name)
  local there = read(self, name)
  local held = there and there.lock
  local key = lock.key(lock.base(self.client.prefix, name), "lock")
  if held and held.is_foreign then
    found.problems[1] = ("the key %s is no lock of Consul's clients: another program uses it"):format(key)
  elseif held then
    found.facts[#found.facts + 1] = { "Lock", held.session and ("held by '%s'"):format(tostring(node_of(self, held)))
      or "held by nobody" }
  end
  return found
end

--- What a candidate may not do, in the words of Consul's policies. A session is made, and ended.
-- @tparam table opts `url` and the others
-- @treturn table an array of texts; or nil, message, code
function admin.rights(opts)
  local self, problem, code = open(opts)
  if not self then return nil, problem, code end
  local missing
  missing, problem, code = tools.rights(self.client, self.timeout)
  if not missing then return nil, problem, code end
  local id
  id, problem = session.create(self.client, { node = "check", ttl = self.checked.ttl, lock_delay = 0 }, self.timeout)
  if id then session.destroy(self.client, id, self.timeout) else
    missing[#missing + 1] = problem:find("denied", 1, true) and NO_SESSIONS or problem
  end
  return missing
end

return admin
