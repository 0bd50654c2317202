--- Leases on one Redis server, for all elections of this runtime that name it: one connection for the script, one for
-- the channel. Calls that come close together go out as one call of the script. In a cluster there is a connection to each
-- node, and each election is asked for by itself.
-- @internal crown.redis.leases

local Client = require "crown.redis.client"
local Cluster = require "crown.redis.cluster"
local confirmed = require "crown.redis.confirmed"
local core = require "crown.core"
local Doubt = require "crown.oracle.doubt"
local Followers = require "crown.oracle.followers"
local gathered = require "crown.oracle.gathered"
local promise = require "crown.core.promise"
local reading = require "crown.redis.reading"
local redis_url = require "crown.redis.url"
local script = require "crown.redis.script"
local Sentinels = require "crown.redis.sentinels"
local server = require "crown.redis.server"
local ServerClock = require "crown.oracle.server_clock"
local Subscriber = require "crown.redis.subscriber"

local Leases = {}
Leases.__index = Leases

Leases.CHANNEL = "crown:leases"

-- Seconds that a call waits for company: a claim for that of its own turn of the loop; a refresh has time, the more the longer
-- the lease.
local CLAIM_WINDOW, REFRESH_WINDOW = 0, 0.05
local MOST = 128 -- leases in one call, so that the server is never busy for long

local STRANGE = "unexpected reply from Redis"

local known = {}

--- The keys of an election; the braces keep them in one slot of a Redis Cluster.
-- @string prefix
-- @string name
-- @treturn string the lease
-- @treturn string the epoch
function Leases.keys(prefix, name)
  local base = ("%s:{%s}"):format(prefix, name)
  return base .. ":lease", base .. ":epoch"
end

--- The key that says since when the server's memory is known, and the longest TTL in use.
-- @string prefix
-- @string[opt] name of the election in a cluster: there every key of a call has to be in one slot, so each has one of its own
-- @treturn string the key
function Leases.store(prefix, name)
  return name and ("%s:{%s}:store"):format(prefix, name) or prefix .. ":store"
end

-- In a cluster a replica leads on to its primary; elsewhere it is no store.
local function set_up(self, connection, timeout)
  local info, problem = connection:call(timeout, "INFO")
  if not info then return nil, problem end
  if type(info) ~= "string" then return nil, STRANGE end
  self.id = server.id(info)
  if not info:find "master_replid:%x+" then return nil, "this server does not tell its replication id" end
  if info:find "redis_mode:cluster" then
    self.in_cluster = true
  else
    local role
    role, problem = connection:call(timeout, "ROLE")
    if not role then return nil, problem end
    if type(role) ~= "table" then return nil, STRANGE end
    if role[1] ~= "master" then return nil, "this server is a replica: name the primary, or its Sentinels" end
  end
  self.sha, problem = connection:call(timeout, "SCRIPT", "LOAD", script)
  return self.sha ~= nil, problem
end

local function options_of(self)
  local sentinels = self.sentinels
  return { url = self.url, timeout = self.timeout, label = "redis",
    choose = sentinels and function(timeout) return sentinels:primary(timeout) end,
    setup = function(...) return set_up(self, ...) end }
end

-- What it takes to find a cluster out is one connection to any of its nodes.
local function in_cluster(self)
  if self.cluster then return self.cluster end
  self.cluster = Cluster.new(options_of(self))
  self.home:close()
  return self.cluster
end

--- The leases of a server; the first election that names it makes them.
-- @string url
-- @tparam table options `timeout`, `prefix`, `min_replicas`; `amnesia_wait` in seconds; `trust_empty`
-- @treturn Leases or nil and a message
function Leases.at(url, options)
  local key = table.concat({ url, options.prefix, options.min_replicas, options.amnesia_wait, tostring(options.trust_empty) },
    "\n")
  if known[key] then return known[key] end
  local self = setmetatable({ url = url, prefix = options.prefix, store = Leases.store(options.prefix),
    channel = options.prefix .. ":" .. Leases.CHANNEL, timeout = options.timeout,
    min_replicas = options.min_replicas, floor = ("%.0f"):format(options.amnesia_wait * 1000),
    trust_empty = options.trust_empty, seen = {}, set_back = {}, longest = 0, followers = Followers.new(), batches = {},
    refreshers = {}, kinds = {}, doubt = Doubt.of("redis", url, options) }, Leases)
  local parsed, problem = redis_url.parse(url)
  if not parsed then return nil, problem end
  self.sentinels = parsed.master and Sentinels.new(parsed)
  self.home, problem = Client.new(url, options_of(self))
  if not self.home then return nil, problem end
  self.subscriber = Subscriber.new(url, options.timeout, function() return self.cluster and self.cluster:any() end)
  self.subscriber:subscribe(self.channel, function(payload) self:hear(payload) end)
  known[key] = self
  return self
end

--- Passes a message on: "freed NAME", "evict NAME", or nil when some may have been missed.
function Leases:hear(payload)
  if not payload then
    for _, lease in ipairs(self.followers:all()) do lease.send "missed" end
    return
  end
  local what, name = payload:match "^(%l+) (.*)$"
  for lease in self.followers:of(name) do lease.send(what) end
end

--- Hands messages about a lease to an election.
-- @tparam table lease `name`, `send`
function Leases:join(lease)
  self.followers:add(lease.name, lease)
end

local function store_of(self, items)
  return self.cluster and Leases.store(self.prefix, items[1].name) or self.store
end

-- An empty store is trusted once, by who has not seen it before.
local function floor_of(self, store)
  return self.trust_empty and not self.seen[store] and "-1" or self.floor
end

local function words_of(self, client, op, items)
  local store = store_of(self, items)
  local words = { "EVALSHA", self.sha, #items + 1, store }
  local at = 4
  for i = 1, #items do
    local item = items[i]
    item.lease = item.lease or Leases.keys(self.prefix, item.name)
    words[at + i] = item.lease
  end
  at = at + #items
  words[at + 1], words[at + 2], words[at + 3] = op, ("%d"):format(self.longest), self.channel
  words[at + 4] = floor_of(self, store)
  words[at + 5] = ("%.0f"):format(client.clock and client.clock:due() * 1000 or 0)
  words[at + 6] = ("%d"):format(self.set_back[store] or -1)
  words[at + 7] = ("%.0f"):format(self.seen[store] and (core.now() - self.seen[store]) * 1000 or 0)
  at = at + 7
  for i = 1, #items do
    local item = items[i]
    words[at + 1], words[at + 2], words[at + 3], words[at + 4] = item.token, item.node, item.claim, item.ttl
    words[at + 5] = item.heard or "0"
    at = at + 5
  end
  return words
end

-- SCRIPT FLUSH is no reason to lose anything.
local function evaluate(self, client, op, items)
  local answer, problem, code = client:call(unpack(words_of(self, client, op, items)))
  if code == "NOSCRIPT" then
    answer, problem, code = client:call("SCRIPT", "LOAD", script)
    if answer then answer, problem, code = client:call(unpack(words_of(self, client, op, items))) end
  end
  return answer, problem, code
end

-- With min_replicas an answer counts when enough replicas have it.
local function replicated(self, client)
  if not self.min_replicas or self.min_replicas == 0 then return true end
  local milliseconds = ("%d"):format(math.max(1, self.timeout * 500))
  local count, problem, code = client:call("WAIT", ("%d"):format(self.min_replicas), milliseconds)
  if not count then return nil, problem, code end
  if type(count) == "number" and count >= self.min_replicas then return true end
  return nil, ("only %s of %d replicas have it"):format(tostring(count), self.min_replicas), "store"
end

-- Where leases have ended too early by the server's clock the doubt is noted there, and what was granted is taken back.
local function take_back(self, client, op, items)
  local doubted, problem, code = evaluate(self, client, "doubt", items)
  if not doubted then return nil, problem, code end
  client.clock:settle()
  if op ~= "claim" and op ~= "restore" then return true end
  evaluate(self, client, "undo", items)
  return nil, "the server's clock was stepped forward", "store"
end

local function ask_server(self, client, op, items)
  local sent = core.now()
  local answers, problem, code = evaluate(self, client, op, items)
  if not answers then return nil, problem, code end
  if not reading.fits(answers, #items) then return nil, STRANGE, "protocol" end
  local store = store_of(self, items)
  self.seen[store], self.set_back[store] = self.seen[store] or core.now(), answers[#items + 3]
  client.clock = client.clock or ServerClock.new()
  local fine = true
  if client.clock:is_doubted(sent, tonumber(answers[#items + 2]) / 1000) then
    fine, problem, code = take_back(self, client, op, items)
  end
  if fine and op ~= "release" then fine, problem, code = replicated(self, client) end
  if not fine then return nil, problem, code end
  self.longest = math.max(self.longest, answers[#items + 1])
  return answers
end

-- The primary that Sentinels named counts as long as most of them name it.
local function ask_home(self, op, items)
  return confirmed(self, op, #items, function() return ask_server(self, self.home, op, items) end,
    function() evaluate(self, self.home, "undo", items) end)
end

local function settle(items, answers, problem, code)
  for i, item in ipairs(items) do
    if answers then
      item.answer:resolve(answers[i])
    else
      item.answer:resolve(nil, problem or "no answer", code)
    end
  end
end

local function run_in_cluster(self, op, item)
  local items = { item }
  settle(items, in_cluster(self):run(Leases.keys(self.prefix, item.name), function(client)
    return ask_server(self, client, op, items)
  end))
end

local function run_batch(self, op, items)
  local ready, problem, code = self.home:ready()
  if self.in_cluster then
    for _, item in ipairs(items) do core.detach(run_in_cluster, self, op, item) end
  elseif ready then
    settle(items, ask_home(self, op, items))
  else
    settle(items, nil, problem, code)
  end
end

-- The answers come in the order of the items: nobody may come between an item's place and the item.
local function join_batch(self, op, item, window)
  local batch = self.batches[op]
  if not batch then
    batch = {}
    self.batches[op] = batch
    core.detach(function()
      core.sleep(window)
      if self.batches[op] == batch then self.batches[op] = nil end
      run_batch(self, op, batch)
    end)
  end
  batch[#batch + 1] = item
  if #batch == MOST then self.batches[op] = nil end
end

--- Asks for one operation on one lease, together with what else is asked now.
-- @string op "claim", "restore", "refresh", "release", "undo" or "raise"
-- @tparam table item `name`, `token`, `node`, `claim`, `ttl` in ms, all as text, and `heard`, the last epoch that the asker
-- has heard of (0); made for this one call, since its answer may come when nobody waits for it any more
-- @number timeout seconds
-- @number window seconds to wait for company
-- @treturn table what the script answers; or nil, message, code
function Leases:ask(op, item, timeout, window)
  item.answer = promise()
  if self.cluster then
    core.detach(run_in_cluster, self, op, item)
  else
    core.atomic(join_batch, self, op, item, window)
  end
  local answer, problem, code = item.answer:wait(timeout)
  if code == "timeout" then problem = self.home:late(timeout) end
  return answer, problem, code
end

local function ask_for(self, op, item, timeout)
  local answer, problem, code = self:ask(op, item, timeout, CLAIM_WINDOW)
  if not answer then return nil, problem, code end
  if type(answer) == "string" then return reading.epoch(answer) end
  return false, reading.denial(answer)
end

--- Claims a lease.
-- @tparam table item as ask takes it
-- @number timeout seconds
-- @treturn number the epoch when granted; false and `{ node =, held =, left =, distrust =, mine = }`, where `mine` is the
-- holder's token; or nil, message, code
function Leases:claim(item, timeout)
  return ask_for(self, "claim", item, timeout)
end

local function refresh_window(ttl) return math.min(REFRESH_WINDOW, ttl / 100) end

--- Refreshes a lease that a claim has won.
-- @return as claim; with the epoch, whether the leader was evicted
function Leases:refresh(item, timeout)
  local answer, problem, code = self:ask("refresh", item, timeout, refresh_window(tonumber(item.ttl) / 1000))
  if not answer then return nil, problem, code end
  if type(answer) == "string" then return reading.epoch(answer) end
  if answer[1] ~= 1 then return false, reading.denial(answer) end
  local epoch, why, kind = reading.epoch(tostring(answer[2]))
  return epoch, epoch and true or why, kind
end

local function items_of(states, item_of)
  local items = {}
  for i = 1, #states do items[i] = item_of(states[i]) end
  return items
end

-- These are asked for again and again: nobody waits for the answer of one of them.
local function refreshed(state) return state.refreshed end

local function refresh_all(self, items)
  local ready, problem = self.home:ready()
  if not ready then return nil, problem end
  if self.in_cluster then return {} end -- it has become one: the elections ask for themselves
  local answers
  answers, problem = ask_home(self, "refresh", items)
  if not answers then return nil, problem end
  return reading.epochs(answers, #items)
end

local function release_all(self, items)
  for _, item in ipairs(items) do item.answer = promise() end
  run_batch(self, "release", items)
  for _, item in ipairs(items) do item.answer:wait(self.timeout) end
  return {}
end

--- What refreshes leases without a task for each, as long as nothing has changed, and gives them back. In a cluster, where a
-- call may name one election only, there is none.
-- @tparam table state of the election's oracle: `ttl`, `delay`, `timeout` in seconds; those that are alike share one. Its
-- `refreshed` is what `ask` would take to refresh it; it stays the same for the term
-- @func item_of makes what `ask` takes of a state
-- @treturn userdata for a grant, or nil
function Leases:refresher(state, item_of)
  if self.in_cluster then return nil end
  local ttl, delay, timeout = state.ttl, state.delay, state.timeout
  local key = ("%.17g %.17g %.17g"):format(ttl, delay, timeout)
  self.refreshers[key] = self.refreshers[key] or gathered { ttl = ttl, delay = delay, timeout = timeout,
    window = refresh_window(ttl), most = MOST,
    refresh = function(states) return refresh_all(self, items_of(states, refreshed)) end,
    release = function(states) return release_all(self, items_of(states, item_of)) end,
    late = function() return self.home:late(timeout) end }
  return self.refreshers[key]
end

--- Gives a lease that most servers know back to one that has lost it.
-- @return as claim
function Leases:restore(item, timeout)
  return ask_for(self, "restore", item, timeout)
end

--- Raises the epoch of a lease that is ours.
-- @tparam table item as ask takes it
-- @number epoch
-- @number timeout seconds
-- @treturn number the epoch; false when the lease is not ours; or nil, message, code
function Leases:raise(item, epoch, timeout)
  item.node = ("%.0f"):format(epoch)
  local answer, problem, code = self:ask("raise", item, timeout, CLAIM_WINDOW)
  if not answer then return nil, problem, code end
  return type(answer) == "string" and epoch
end

--- Releases a lease, and takes back a claim that may still be on its way.
function Leases:release(item, timeout)
  return self:ask("release", item, timeout, CLAIM_WINDOW)
end

--- Takes a claim back that made nobody leader: as release, but nobody is told.
function Leases:undo(item, timeout)
  return self:ask("undo", item, timeout, CLAIM_WINDOW)
end

return Leases
