--- What a bucket says by itself: the last values of its keys, what happens to them, wishes that a leader go, and orders.
-- @internal crown.nats.watch

local core = require "crown.core"
local ordered = require "crown.oracle.ordered"
local Orders = require "crown.nats.orders"
local promise = require "crown.core.promise"
local value = require "crown.nats.value"

local watch = {}

local NS = 1e9
local HEARTBEAT = 5 -- seconds between two signs of life of a watch
local AT_ONCE = 0.2 -- seconds for a value that was written over while it was to be delivered

local function key_of(self, message)
  return message:subject(#self.prefix)
end

local function hear(self, connection, now, message)
  now.alive = core.now()
  if message:status() then
    local reply = message:reply()
    if reply then connection:publish(reply, nil, nil, "") end -- flow control
    return
  end
  local revision, time = message:delivered()
  now.told = math.max(now.told, revision or 0)
  if not now.astray then self.highest = math.max(self.highest, now.told) end
  self:tell(key_of(self, message), value.is_gone(message:header "kv-operation") and "gone" or "put", revision,
    message:header "crown-token", time and value.time_of(time))
end

-- Has the last value of each key delivered to a subject that is subscribed to, and then what comes. A plain subscription would
-- also show writes that were refused.
local function consume(self, subject, more)
  local config = { deliver_subject = subject, deliver_policy = "last_per_subject", ack_policy = "none",
    replay_policy = "instant", filter_subject = self.prefix .. ">", max_deliver = 1, mem_storage = true,
    num_replicas = 1 }
  for key, what in pairs(more or {}) do config[key] = what end
  return self:api("CONSUMER.CREATE." .. self.stream, { stream_name = self.stream, config = config })
end

local function new_subject(connection)
  return connection.inbox:gsub("%.$", "") .. ("w%d"):format(math.random(1, 2 ^ 31))
end

-- A value as a consumer delivers it. @return it, and how many are still to come; nil for what is none
local function delivered(message)
  local revision, time, pending = message:delivered()
  if not revision then return nil end
  local when = os.date("!%Y-%m-%dT%H:%M:%S", tonumber(time:sub(1, -10))) .. "." .. time:sub(-9) .. "Z"
  return value.of(message:data(), message:headers(), revision, when), pending
end

-- A value that is written over while it is to be delivered comes with the new one: a server that says that none is left may not
-- count that, or may count the old one for ever. So how many it has said in the beginning is counted too.
local function collect(self, connection)
  local all = { values = {}, keys = 0, count = 0, last = promise(), whole = promise(), subject = new_subject(connection) }
  function all.look()
    local is_whole = all.wanted ~= nil and all.keys >= all.wanted
    if is_whole then all.whole:resolve(true) end
    if is_whole or all.pending == 0 then all.last:resolve(true) end
  end
  all.sid = connection:subscribe(all.subject, function(message)
    local found, pending = delivered(message)
    if not found then return end
    local key = key_of(self, message)
    all.keys, all.count = all.keys + (all.values[key] and 0 or 1), all.count + 1
    all.values[key], all.pending = found, pending
    all.look()
  end)
  return all
end

-- Waits for as long as values come of keys that are new to it, however many there are.
-- @return true; or false, message, code
local function await(self, all)
  local before, fine, problem, code
  repeat
    before = all.keys
    fine, problem, code = all.last:wait(self.timeout)
  until fine or all.keys == before
  if fine then all.whole:wait(AT_ONCE) end -- in vain for a key that came to an end meanwhile
  return fine or all.count >= all.wanted, problem, code
end

--- The last values of all keys, by one question.
-- @tparam Bucket self of crown.nats.bucket
-- @treturn table by key, as its `get` has them; or nil, message, code
function watch.values(self)
  local connection, problem, code = self.link:ready()
  if not connection then return nil, problem, code end
  local all = collect(self, connection)
  local made, fine
  made, problem, code = consume(self, all.subject)
  if made then
    all.wanted = made.num_pending + made.delivered.consumer_seq
    all.look()
    fine, problem, code = await(self, all)
  end
  connection:unsubscribe(all.sid)
  return fine and all.values or nil, problem, code
end

-- What stops sending signs of life is made anew. It may be on a replica that has come apart from the stream's leader, and
-- be ahead for good: once the leader turned out to be behind, its sequences count no more.
local function run_watch(self, connection)
  while not connection.closed do
    local now = { alive = core.now(), told = 0 }
    self.watch = now
    local subject = new_subject(connection)
    local sid = connection:subscribe(subject, function(message) hear(self, connection, now, message) end)
    if consume(self, subject, { idle_heartbeat = HEARTBEAT * NS, flow_control = true }) then
      for _, follower in ipairs(self.followers:all()) do follower:heard "missed" end
      ordered.hear(self)
      while not connection.closed and core.now() - now.alive < 3 * HEARTBEAT do core.sleep(1) end
    else
      core.sleep(1)
    end
    connection:unsubscribe(sid)
  end
end

--- Watches the bucket on a new connection, and listens for wishes that a leader go.
-- @tparam Bucket self of crown.nats.bucket
-- @tparam Connection connection of crown.nats.connection
function watch.on(self, connection)
  local prefix = "crown.evict." .. self.name .. "."
  connection:subscribe(prefix .. ">", function(message)
    local key, word = message:subject(#prefix), message:data()
    if word == Orders.WORD then return ordered.hear(self, key) end
    self:tell(key, "evict", tonumber(word))
  end)
  core.detach(run_watch, self, connection)
end

return watch
