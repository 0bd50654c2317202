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

--- The last values of all keys, by one question.
-- @tparam Bucket self of crown.nats.bucket
-- @treturn table by key, as its `get` has them; or nil, message, code
function watch.values(self)
  local connection, problem, code = self.link:ready()
  if not connection then return nil, problem, code end
  local found, count, done = {}, 0, promise()
  local subject = new_subject(connection)
  local sid = connection:subscribe(subject, function(message)
    local found_now, pending = delivered(message)
    if not found_now then return end
    found[key_of(self, message)], count = found_now, count + 1
    if pending == 0 then done:resolve(true) end
  end)
  local made, fine
  made, problem, code = consume(self, subject)
  if made then fine = made.num_pending == 0 and made.delivered.consumer_seq == 0 end
  local before
  while fine == false and before ~= count do -- however many there are, as long as they come
    before = count
    fine, problem, code = done:wait(self.timeout)
    fine = fine or false
  end
  connection:unsubscribe(sid)
  return fine and found or nil, problem, code
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
