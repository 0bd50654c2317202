--- A key-value bucket of JetStream as elections use it: create when there is no value, update at the last revision, watch.
-- One connection for all elections of this runtime in the same bucket.
-- @internal crown.nats.bucket

local base64 = require "crown.text.base64"
local core = require "crown.core"
local nats_url = require "crown.nats.url"
local promise = require "crown.core.promise"
local Reconnecting = require "crown.link.reconnecting"
local ServerClock = require "crown.oracle.server_clock"
local Servers = require "crown.nats.servers"
local Shared = require "crown.link.shared"
local Trust = require "crown.oracle.trust"

local Bucket = {}
Bucket.__index = Bucket

local NS = 1e9
local WRONG_REVISION, NO_STREAM, NO_MESSAGE = 10071, 10059, 10037
--- The code of an answer that there is no such bucket.
Bucket.MISSING = NO_STREAM
local NO_PEERS, NO_CLUSTER = 10005, 10074 -- more replicas were asked for than the cluster has servers; than a single one keeps
local MOST_REPLICAS = 5
-- What a consumer delivers has for a reply subject $JS.ACK.STREAM.CONSUMER.DELIVERED.SEQUENCE.SEQUENCE.TIME.PENDING, the time in
-- nanoseconds.
local DELIVERED = "^%$JS%.ACK%.[^.]+%.[^.]+%.%d+%.(%d+)%.%d+%.(%d+)%.(%d+)$"
local HEARTBEAT = 5 -- seconds between two signs of life of a watch

local known = {}

local function api(self, verb, body, timeout)
  local connection, problem, code = self.link:ready(timeout)
  if not connection then return nil, problem, code end
  local message
  message, problem, code = connection:request("$JS.API." .. verb, nil, body and core.json.encode(body) or "",
    timeout or self.timeout)
  if not message then return nil, problem, code end
  local fine, answer = pcall(core.json.decode, message.data)
  if not fine or type(answer) ~= "table" then return nil, "what came is no answer of JetStream", "protocol" end
  if answer.error then return nil, answer.error.description or "refused", answer.error.err_code or "store" end
  return answer
end

local function open(self, link)
  local connection, problem, code = self.servers:open(link:patience(self.timeout), link)
  if not connection then return nil, problem, code end
  self:watch_on(connection)
  return connection
end

--- The bucket; the first election in it makes it.
-- @string url
-- @tparam table options `bucket`, `timeout`, `ttl`, `storage`; `replicas`, nil for as many as the cluster has servers;
-- `check(name, info)` → true, or nil and a message where the bucket will not do; `amnesia_wait` in seconds; `trust_empty`
-- @treturn Bucket or nil and a message
function Bucket.at(url, options)
  local parsed, problem = nats_url.parse(url)
  if not parsed then return nil, problem end
  local place = url .. "\n" .. options.bucket
  local key = ("%s\n%s\n%s"):format(place, tostring(options.amnesia_wait), tostring(options.trust_empty))
  if options.label and known[key] then -- a command that asks once has one of its own, which it closes
    known[key].timeout = math.min(known[key].timeout, options.timeout)
    return known[key]
  end
  local self = setmetatable({ servers = Servers.new(parsed), name = options.bucket, stream = "KV_" .. options.bucket,
    timeout = options.timeout, options = options, followers = {}, highest = 0, trust = Trust.of("nats " .. place),
    clock = ServerClock.new() }, Bucket)
  self.fits = Shared.new(function() return self:inspect() end)
  self.looks = Shared.new(function() return self:look() end) -- those who ask while one is under way share the next
  self.link = Reconnecting.new { open = function(link) return open(self, link) end, label = options.label,
    store = "nats", timeout = options.timeout, server = self.servers:label() }
  if options.label then known[key] = self end
  return self
end

local function make_with(self, replicas)
  local ttl = self.options.ttl
  return api(self, "STREAM.CREATE." .. self.stream, { name = self.stream, subjects = { "$KV." .. self.name .. ".>" },
    max_msgs_per_subject = 1, discard = "new", max_age = ttl * NS, duplicate_window = math.min(ttl, 120) * NS,
    storage = self.options.storage, num_replicas = replicas, retention = "limits", max_consumers = -1,
    max_msgs = -1, max_bytes = -1, max_msg_size = -1, allow_rollup_hdrs = true, deny_delete = true })
end

-- Where no number of replicas is given, the servers themselves say how many they have room for.
local function make(self)
  local replicas = self.options.replicas or MOST_REPLICAS
  local answer, problem, code = make_with(self, replicas)
  while not self.options.replicas and replicas > 1 and (code == NO_PEERS or code == NO_CLUSTER) do
    replicas = code == NO_CLUSTER and 1 or replicas - 1
    answer, problem, code = make_with(self, replicas)
  end
  return answer, problem, code
end

-- Seconds since year 0 of a time as the server writes it: only the server's own times are ever compared.
local function server_time(text)
  local year, month, day, hour, minute, second = (text or ""):match "^(%d+)-(%d+)-(%d+)T(%d+):(%d+):([%d.]+)"
  if not year then return nil end
  year, month = tonumber(year), tonumber(month)
  if month <= 2 then year, month = year - 1, month + 12 end
  local days = 365 * year + math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400)
    + math.floor((153 * (month - 3) + 2) / 5) + tonumber(day)
  return ((days * 24 + tonumber(hour)) * 60 + tonumber(minute)) * 60 + tonumber(second)
end

-- Keys end by the server's wall clock: where that was stepped forward, somebody may act on a key that is gone.
local function note_time(self, sent, now)
  if now and self.clock:saw(sent, now) then self.trust:doubt() end
  return now
end

-- What time it is at the server. Versions before 2.10 do not tell; but they tell when a consumer was made.
local function time_now(self, sent, answer)
  if answer.ts then return note_time(self, sent, server_time(answer.ts)) end
  sent = core.now()
  local made = api(self, "CONSUMER.CREATE." .. self.stream, { stream_name = self.stream, config = {
    deliver_policy = "new", ack_policy = "explicit", inactive_threshold = NS, mem_storage = true, num_replicas = 1 } })
  return made and note_time(self, sent, server_time(made.created))
end

-- How old the bucket is: as old as the server said first, and what has passed since then by our own clock. The server's may be
-- stepped.
local function age_of(self, now, created)
  if not self.born or self.born.created ~= created then
    self.born = { created = created, at = core.now() - math.max(0, now and created and now - created or 0) }
  end
  return core.now() - self.born.at
end

local function peers_of(cluster)
  local peers = {}
  for i, one in ipairs(cluster.replicas or {}) do
    peers[i] = { name = one.name, current = one.current == true, offline = one.offline == true, lag = one.lag or 0 }
  end
  return peers
end

--- What is known of the bucket; it is made when it is missing.
-- @treturn table `{ ttl =, history =, replicas =, storage =, created =, age = seconds or nil, now =, leader =,
-- peers = the other servers that keep it, where it is a cluster's: `{ name =, current =, offline =, lag = }` }`; or nil,
-- message, code
function Bucket:info()
  local sent = core.now()
  local answer, problem, code = api(self, "STREAM.INFO." .. self.stream)
  if code == NO_STREAM and self.options.ttl then
    answer, problem, code = make(self)
    if not answer then return nil, ("make the bucket %s: %s"):format(self.name, problem), code end
    if self.options.trust_empty and not self.trust.identity then self.trusted = answer.created end
  end
  if not answer then return nil, problem, code end
  local now = time_now(self, sent, answer)
  return { ttl = answer.config.max_age / NS, history = answer.config.max_msgs_per_subject,
    replicas = answer.config.num_replicas, storage = answer.config.storage, created = answer.created,
    age = age_of(self, now, server_time(answer.created)), now = now, leader = answer.cluster and answer.cluster.leader,
    peers = answer.cluster and peers_of(answer.cluster) }
end

-- A bucket that one server keeps may have lost its last writes at each start of that server. One whose TTL was made shorter
-- forgets who has a longer lease.
local function identity_of(answer, connection)
  local server = answer.config.num_replicas == 1 and connection.server
  return ("%s %.0f %s"):format(answer.created, answer.config.max_age, tostring(server))
end

-- Compares the bucket with what was known of it. @return true: it is told to `trust` what it is; or nil, message, code
function Bucket:look()
  local connection, problem, code = self.link:ready()
  if not connection then return nil, problem, code end
  self.trust:reached(self.highest)
  local sent = core.now()
  local answer
  answer, problem, code = api(self, "STREAM.INFO." .. self.stream)
  if not answer then return nil, problem, code end
  if self.link.connection ~= connection then return nil, "the connection was lost meanwhile", "closed" end
  local fine
  fine, problem, code = self.servers:keep(connection, answer)
  if not fine then return nil, problem, code end
  note_time(self, sent, answer.ts and server_time(answer.ts))
  local last, ttl = answer.state.last_seq, answer.config.max_age / NS
  self.trust:lasts(ttl)
  if self.known and ttl ~= self.known.ttl then self.fitted = nil end -- leases last as long as it says now
  local believed, back = self.trust:saw { identity = identity_of(answer, connection), at = last }
  if back and self.watch and self.watch.told > last then self.watch.astray = true end
  if not believed then self.highest = last end
  return true
end

-- Whether elections can be held in it, by way of what answers now. @return what info tells; or nil, message, code
function Bucket:inspect()
  local connection, problem, code = self.link:ready()
  if not connection then return nil, problem, code end
  local info
  info, problem, code = self:info()
  if not info then return nil, problem, code end
  local fine
  fine, problem = self.options.check(self.name, info)
  if not fine then return nil, problem end
  self.trust:lasts(info.ttl)
  if info.created ~= self.trusted then -- who led in a bucket that was here before may have a longer lease
    self.trust:saw { age = info.age }
    self.trust:lost(self.options.amnesia_wait - info.age)
  end
  fine, problem, code = self.looks:ask(self.timeout)
  if not fine then return nil, problem, code end
  self.fitted, self.known = connection, info
  return info
end

--- Sees to it that the bucket is one that elections can be held in, once for each connection, and that `trust` knows what
-- answers now. Thousands that ask at once are answered by one look.
-- @treturn table what info tells; or nil, message, code
function Bucket:fit()
  if self.fitted and self.fitted == self.link.connection then return self.known end
  return self.fits:ask()
end

-- Whether what was written last says that the key was deleted.
local function is_gone(headers)
  return headers["kv-operation"] == "DEL" or headers["kv-operation"] == "PURGE"
end

-- What was written to a key; `written` in the server's words.
local function value_of(data, headers, revision, written)
  return { data = data, headers = headers, revision = revision, written = written, written_at = server_time(written),
    gone = is_gone(headers) }
end

local function key_of(self, message)
  return message.subject:sub(#("$KV." .. self.name .. ".") + 1)
end

--- The last value of a key. Decided by the stream's leader, not by whoever is near.
-- @string key
-- @treturn table `{ data =, revision =, headers =, gone =, written = the server's words, written_at = its seconds }`; false
-- when there is none; or nil, message, code
function Bucket:get(key)
  local answer, problem, code = api(self, "STREAM.MSG.GET." .. self.stream, { last_by_subj = "$KV." .. self.name .. "." .. key })
  if code == NO_MESSAGE then return false end
  if not answer then return nil, problem, code end
  local headers = {}
  for name, value in (base64.decode(answer.message.hdrs or "") or ""):gmatch "\r\n([^:\r\n]+):[ \t]*([^\r\n]*)" do
    headers[name:lower()] = value
  end
  return value_of(base64.decode(answer.message.data or "") or "", headers, answer.message.seq, answer.message.time)
end

--- Writes a key, only at a revision.
-- @string key
-- @string data
-- @tparam table headers
-- @number revision of the value that is there now; 0: there is none
-- @bool[opt] new where nothing is begun by it yet: see Connection:request
-- @treturn number the new revision; false when another one is there; or nil, message, code
function Bucket:put(key, data, headers, revision, new)
  local connection, problem, code = self.link:ready()
  if not connection then return nil, problem, code end
  headers["Nats-Expected-Last-Subject-Sequence"] = ("%d"):format(revision)
  local message
  message, problem, code = connection:request("$KV." .. self.name .. "." .. key, headers, data, self.timeout, new)
  if not message then return nil, problem, code end
  local fine, answer = pcall(core.json.decode, message.data)
  if not fine or type(answer) ~= "table" then return nil, "what came is no answer of JetStream", "protocol" end
  if answer.error then
    if answer.error.err_code == WRONG_REVISION then return false end
    return nil, answer.error.description, "store"
  end
  self.highest = math.max(self.highest, answer.seq)
  return answer.seq
end

--- Deletes a key, only at a revision; followers hear of it.
function Bucket:delete(key, revision)
  return self:put(key, "", { ["KV-Operation"] = "DEL" }, revision)
end

--- Hands what happens to a key to an election: "put" or "gone", "evict", "missed".
-- @string key
-- @tparam function fn called with the word, the value's revision and its headers
function Bucket:join(key, fn)
  self.followers[key] = self.followers[key] or {}
  table.insert(self.followers[key], fn)
end

local function tell(self, key, ...)
  for _, fn in ipairs(self.followers[key] or {}) do fn(...) end
end

local function hear(self, connection, watch, message)
  watch.alive = core.now()
  if message.headers.status then
    if message.reply then connection:publish(message.reply, nil, nil, "") end -- flow control
    return
  end
  local revision = tonumber(((message.reply or ""):match(DELIVERED)))
  watch.told = math.max(watch.told, revision or 0)
  if not watch.astray then self.highest = math.max(self.highest, watch.told) end
  tell(self, key_of(self, message), is_gone(message.headers) and "gone" or "put", revision, message.headers)
end

-- Has the last value of each key delivered to a subject that is subscribed to, and then what comes. A plain subscription would
-- also show writes that were refused.
local function consume(self, subject, more)
  local config = { deliver_subject = subject, deliver_policy = "last_per_subject", ack_policy = "none",
    replay_policy = "instant", filter_subject = "$KV." .. self.name .. ".>", max_deliver = 1, mem_storage = true,
    num_replicas = 1 }
  for key, value in pairs(more or {}) do config[key] = value end
  return api(self, "CONSUMER.CREATE." .. self.stream, { stream_name = self.stream, config = config })
end

local function new_subject(connection)
  return connection.inbox:gsub("%.$", "") .. ("w%d"):format(math.random(1, 2 ^ 31))
end

-- A value as a consumer delivers it. @return it, and how many are still to come; nil for what is none
local function delivered(message)
  local revision, time, pending = (message.reply or ""):match(DELIVERED)
  if not revision then return nil end
  local written = os.date("!%Y-%m-%dT%H:%M:%S", tonumber(time:sub(1, -10))) .. "." .. time:sub(-9) .. "Z"
  return value_of(message.data, message.headers, tonumber(revision), written), tonumber(pending)
end

--- The last values of all keys, by one question.
-- @treturn table by key, as `get` has them; or nil, message, code
function Bucket:values()
  local connection, problem, code = self.link:ready()
  if not connection then return nil, problem, code end
  local found, count, done = {}, 0, promise()
  local subject = new_subject(connection)
  local sid = connection:subscribe(subject, function(message)
    local value, pending = delivered(message)
    if not value then return end
    found[key_of(self, message)], count = value, count + 1
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
    local watch = { alive = core.now(), told = 0 }
    self.watch = watch
    local subject = new_subject(connection)
    local sid = connection:subscribe(subject, function(message) hear(self, connection, watch, message) end)
    if consume(self, subject, { idle_heartbeat = HEARTBEAT * NS, flow_control = true }) then
      for key in pairs(self.followers) do tell(self, key, "missed") end
      while not connection.closed and core.now() - watch.alive < 3 * HEARTBEAT do core.sleep(1) end
    else
      core.sleep(1)
    end
    connection:unsubscribe(sid)
  end
end

--- Watches the bucket on a new connection, and listens for wishes that a leader go.
function Bucket:watch_on(connection)
  if not self.options.label then return end -- a command that asks once
  local prefix = "crown.evict." .. self.name .. "."
  connection:subscribe(prefix .. ">", function(message)
    tell(self, message.subject:sub(#prefix + 1), "evict", tonumber(message.data))
  end)
  core.detach(run_watch, self, connection)
end

--- Asks the leader of a key to go.
function Bucket:ask_to_go(key, revision)
  local connection, problem, code = self.link:ready()
  if not connection then return nil, problem, code end
  connection:publish("crown.evict." .. self.name .. "." .. key, nil, nil, ("%d"):format(revision))
  return true
end

--- Ends it.
function Bucket:close()
  self.link:close()
end

return Bucket
