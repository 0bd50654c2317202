--- An election as etcd's own recipe has it: each candidate puts a key under the election's name, bound to a lease of its own;
-- the one that was created first leads. `etcdctl elect NAME` sees and joins the same election.
-- URL: `etcd://host:2379,host:2379/PREFIX?ttl=10`. See docs/oracle-etcd.md.
-- @module crown.oracles.etcd

local base64 = require "crown.text.base64"
local candidate = require "crown.oracle.candidate"
local Client = require "crown.etcd.client"
local core = require "crown.core"
local eviction = require "crown.oracle.eviction"
local store_options = require "crown.oracle.options"
local Trust = require "crown.oracle.trust"

local Etcd = {}
Etcd.__index = Etcd

local DEFAULT_TTL = 10

local RULES = {
  url = { type = "string", default = "etcd://127.0.0.1:2379" },
  ttl = { type = "number", least = 1, most = 86400 },
  refresh = { type = "number", above = 0, most = 86400 },
  timeout = { type = "number", above = 0, most = 3600 },
  lock = { type = { "string", "number" } },
  ca = { type = "string" },
  cert = { type = "string" },
  key = { type = "string" },
}

--- TTL and refresh delay that these options make. etcd counts leases in whole seconds.
function Etcd.timing(opts)
  local ttl = math.ceil(tonumber(opts.ttl) or DEFAULT_TTL)
  return ttl, tonumber(opts.refresh) or ttl / 3
end

local function check(opts)
  local checked = store_options.check("etcd", opts, RULES)
  local parsed, problem = Client.parse(checked.url)
  if not parsed then return nil, problem end
  parsed.ca, parsed.cert, parsed.key = checked.ca, checked.cert, checked.key
  checked.parsed = parsed
  return checked
end

local function base_of(checked, name)
  return checked.parsed.prefix ~= "" and checked.parsed.prefix .. "/" .. name or name
end

-- What the numbers of this candidate's leases begin with, also from one of its runtimes to the next.
local function own_digits(token)
  local sum = 7
  for i = 1, #token do sum = (sum * 31 + token:byte(i)) % 2147483647 end
  return ("%d"):format(sum + 1)
end

function Etcd.init(opts)
  local checked, problem = check(opts)
  if not checked then return nil, problem end
  local ttl, delay = Etcd.timing(checked)
  local timeout = store_options.timeout(checked, ttl, delay)
  local base = base_of(checked, tostring(checked.lock or opts.crown_name))
  local token
  token, problem = candidate.enter("etcd " .. checked.url, base, opts)
  if not token then return nil, problem end
  local trust = Trust.of("etcd " .. checked.url)
  trust:lasts(ttl)
  return setmetatable({ client = Client.new(checked.parsed, timeout), ttl = ttl, delay = delay, node = opts.node,
    base = base, name = opts.crown_name, send = opts.send, trust = trust,
    digits = own_digits(token) },
    Etcd)
end

-- The range of all keys that begin with a text.
local function range_end(prefix)
  return prefix:sub(1, -2) .. string.char(prefix:byte(-1) + 1)
end

-- A revision that went back, or another cluster: the store was made anew, and has forgotten who leads.
local function remembers(self, answer, known)
  local header = answer.header or {}
  return self.trust:saw { identity = header.cluster_id, at = tonumber(header.revision) or 0, known = known }
end

-- Chosen here, so that it can be revoked also when its answer never came. 62 bits, more than a number holds: text.
local function new_lease_id(self)
  return self.digits .. ("%09d"):format(math.random(0, 999999999))
end

-- Decimal text to hexadecimal, without loss.
local function to_hex(decimal)
  local digits = {}
  for digit in decimal:gmatch "%d" do digits[#digits + 1] = tonumber(digit) end
  local hex = ""
  while #digits > 0 do
    local rest, quotient = 0, {}
    for _, digit in ipairs(digits) do
      local value = rest * 10 + digit
      rest = value % 16
      if #quotient > 0 or value >= 16 then quotient[#quotient + 1] = math.floor(value / 16) end
    end
    hex, digits = ("0123456789abcdef"):sub(rest + 1, rest + 1) .. hex, quotient
  end
  return hex
end

local function unwatch(self)
  for _, watch in ipairs(self.watches or {}) do watch:cancel() end
  self.watches = {}
end

-- Gives up the session: whatever it holds is gone with its lease.
local function forget(self)
  unwatch(self)
  self.lease, self.key, self.created, self.leading = nil, nil, nil, nil
end

local function keep_alive(self)
  local answer, problem, code = self.client:ask("/v3/lease/keepalive", { ID = self.lease })
  if not answer then return nil, problem, code end
  return tonumber(answer.TTL or 0) > 0
end

-- A follower's key has to stay as well: it is its place in the queue.
local function keep_place(self, lease)
  core.detach(function()
    while self.lease == lease and not self.leading do
      core.sleep(self.delay)
      if self.lease ~= lease or self.leading then return end
      if keep_alive(self) == false then
        forget(self)
        self.send "again"
      end
    end
  end)
end

local function open_session(self)
  if self.lease then return true end
  local lease = new_lease_id(self)
  self.lease = lease
  local answer, problem, code = self.client:ask("/v3/lease/grant", { TTL = ("%d"):format(self.ttl), ID = lease })
  if not answer then return nil, problem, code end
  self.key = self.base .. "/" .. to_hex(lease)
  keep_place(self, lease)
  return true
end

-- Puts our key, unless it is there: its place in the queue is from when it was created.
local function take_place(self)
  if self.created then return true end
  local key = base64.encode(self.key)
  local put = { request_put = { key = key, value = base64.encode(self.node), lease = self.lease } }
  local answer, problem, code = self.client:ask("/v3/kv/txn", {
    compare = { { key = key, target = "CREATE", result = "EQUAL", create_revision = "0" } },
    success = { put }, failure = { { request_range = { key = key } } } })
  if not answer then return nil, problem, code end
  local before = answer.responses and answer.responses[1].response_range
  self.created = before and before.kvs and before.kvs[1].create_revision or answer.header.revision
  return true
end

local function first_of(self, body)
  body.key, body.range_end = base64.encode(self.base .. "/"), base64.encode(range_end(self.base .. "/"))
  body.sort_target, body.limit = "CREATE", "1"
  local answer, problem, code = self.client:ask("/v3/kv/range", body)
  if not answer then return nil, problem, code end
  local kv = answer.kvs and answer.kvs[1]
  return kv and { key = base64.decode(kv.key), node = base64.decode(kv.value or ""), epoch = tonumber(kv.create_revision) }
    or {}, answer
end

-- A runtime of this candidate that died has left its place in the queue behind; nothing of its tree is left, or this one
-- would not run.
local function clean(self)
  if self.cleaned then return true end
  local prefix = self.base .. "/"
  local answer, problem, code = self.client:ask("/v3/kv/range", { key = base64.encode(prefix),
    range_end = base64.encode(range_end(prefix)), keys_only = true })
  if not answer then return nil, problem, code end
  for _, kv in ipairs(answer.kvs or {}) do
    if tostring(kv.lease):match("^" .. self.digits .. "%d%d%d%d%d%d%d%d%d$") then
      self.client:ask("/v3/lease/revoke", { ID = kv.lease })
    end
  end
  self.cleaned = true
  return true
end

local function before(revision)
  return ("%.0f"):format(tonumber(revision) - 1)
end

-- Only the candidate right behind a key is woken when it goes.
local function watch_predecessor(self)
  if #self.watches > 0 then return end
  local ahead, answer = first_of(self, { sort_order = "DESCEND", max_create_revision = before(self.created) })
  if not ahead then return end
  if not ahead.key then return self.send "freed" end
  self.watches[1] = self.client:watch(ahead.key, ("%.0f"):format(tonumber(answer.header.revision) + 1), function(event)
    if event == "PUT" then return end
    unwatch(self)
    self.send "freed"
  end)
end

-- A key that somebody deletes, and a wish that we go, are heard of at once.
local function watch_ourselves(self, revision)
  unwatch(self)
  local from = ("%.0f"):format(tonumber(revision) + 1)
  self.watches[1] = self.client:watch(self.key, from, function(event)
    if event ~= "PUT" then self.send "check" end
  end)
  self.watches[2] = self.client:watch(self.base .. ".evict", from, function() self.send "check" end)
end

-- Out of the queue, so that nobody waits for a place that takes no part.
local function leave(self)
  local lease = self.lease
  forget(self)
  if lease then self.client:ask("/v3/lease/revoke", { ID = lease }) end
end

function Etcd:claim()
  if self.trust:left() > 0 then return self.trust:denial() end
  self.watches = self.watches or {}
  local fine, problem, code = clean(self)
  if fine then fine, problem, code = open_session(self) end
  if fine then fine, problem, code = take_place(self) end
  if not fine then return nil, problem, code end
  local known = self.trust.at
  local leader, answer, why = first_of(self, { sort_order = "ASCEND" })
  if not leader then return nil, answer, why end
  if not remembers(self, answer, known) then
    leave(self)
    return self.trust:denial()
  end
  if leader.key ~= self.key then
    if not leader.key then forget(self) return nil, "our lease has run out while we were in the queue", "store" end
    watch_predecessor(self)
    return false, { node = leader.node, epoch = leader.epoch, retry_in = self.delay }
  end
  fine, problem, code = keep_alive(self)
  if not fine then
    if fine == false then forget(self) end
    return nil, problem or "our lease has run out while we were in the queue", code
  end
  self.leading = true
  watch_ourselves(self, answer.header.revision)
  return true, self.delay, { ttl = self.ttl, epoch = leader.epoch }
end

local function is_evicted(self)
  local answer = self.client:ask("/v3/kv/range", { key = base64.encode(self.base .. ".evict") })
  local kv = answer and answer.kvs and answer.kvs[1]
  return kv and base64.decode(kv.value or "") == self.key
end

function Etcd:refresh()
  if not self.lease then return false end
  local alive, problem, code = keep_alive(self)
  if alive == nil then return nil, problem, code end
  local leader, answer, known = nil, nil, self.trust.at
  if alive then leader, answer, code = first_of(self, { sort_order = "ASCEND" }) end
  if alive and not leader then return nil, answer, code end
  if not alive or leader.key ~= self.key then
    forget(self)
    if answer and not remembers(self, answer, known) then return self.trust:denial() end
    return false, leader and leader.key and { node = leader.node, epoch = leader.epoch } or nil
  end
  if is_evicted(self) then return false, { evicted = true } end
  return true, self.delay, { ttl = self.ttl, epoch = leader.epoch }
end

function Etcd:abdicate()
  leave(self)
end

function Etcd:handle_info(message)
  if message == "check" then
    if self.leading then return self:refresh() end
  elseif not self.leading then
    return self:claim()
  end
end

local function with_client(opts, fn)
  local checked, problem = check(opts)
  if not checked then return nil, problem end
  return fn(Client.new(checked.parsed, checked.timeout or 5), checked)
end

--- Elections under the prefix.
-- @tparam table opts `url`
-- @treturn table an array of `{ name, node, epoch }`, or nil and a message
function Etcd.list(opts)
  return with_client(opts, function(client, checked)
    local prefix = checked.parsed.prefix ~= "" and checked.parsed.prefix .. "/" or ""
    local body = { key = base64.encode(prefix == "" and "\0" or prefix), sort_order = "ASCEND", sort_target = "CREATE",
      range_end = base64.encode(prefix == "" and "\0" or range_end(prefix)) }
    local answer, problem = client:ask("/v3/kv/range", body)
    if not answer then return nil, problem end
    local found, seen = {}, {}
    for _, kv in ipairs(answer.kvs or {}) do
      local name = base64.decode(kv.key):sub(#prefix + 1):match "^(.*)/%x+$"
      if name and kv.lease then
        local node = base64.decode(kv.value or "")
        local one = seen[name] or { name = name, node = node, epoch = tonumber(kv.create_revision), candidates = {} }
        if not seen[name] then found[#found + 1] = one end
        seen[name] = one
        table.insert(one.candidates, node)
      end
    end
    table.sort(found, function(a, b) return a.name < b.name end)
    return found
  end)
end

--- Asks the leader to step down, and waits until it has. A leader by `etcdctl elect` hears no such wish.
-- @tparam table opts `url`; `wait` seconds (10)
-- @string name of the election
-- @treturn table `{ node =, epoch = }` of who was evicted, or nil and a message
function Etcd.evict(opts, name)
  return with_client(opts, function(client, checked)
    local self = { client = client, base = base_of(checked, name) }
    local leader, problem = first_of(self, { sort_order = "ASCEND" })
    if not leader then return nil, problem end
    if not leader.key then return nil, ("nobody leads '%s'"):format(name) end
    local mark = base64.encode(self.base .. ".evict")
    local put
    put, problem = client:ask("/v3/kv/put", { key = mark, value = base64.encode(leader.key) })
    if not put then return nil, problem end
    local gone
    gone, problem = eviction.await(name, opts.wait, function()
      local now = first_of(self, { sort_order = "ASCEND" })
      return now ~= nil and now.key ~= leader.key
    end)
    if not gone then return nil, problem end
    client:ask("/v3/kv/deleterange", { key = mark })
    return { node = leader.node, epoch = leader.epoch }
  end)
end

return Etcd
