--- A key-value bucket of JetStream as elections use it: create when there is no value, update at the last revision, watch.
-- One connection for all elections of this runtime in the same bucket.
-- @internal crown.nats.bucket

local base64 = require "crown.text.base64"
local calendar = require "crown.text.calendar"
local core = require "crown.core"
local Doubt = require "crown.oracle.doubt"
local figure = require "crown.check.figure"
local Followers = require "crown.oracle.followers"
local json = require "crown.text.json"
local nats_url = require "crown.nats.url"
local Reconnecting = require "crown.link.reconnecting"
local ServerClock = require "crown.oracle.server_clock"
local Servers = require "crown.nats.servers"
local Shared = require "crown.link.shared"
local subjects = require "crown.nats.subjects"
local Trust = require "crown.oracle.trust"
local value = require "crown.nats.value"
local watch = require "crown.nats.watch"

local Bucket = {}
Bucket.__index = Bucket

local NS = 1e9
local WRONG_REVISION, NO_STREAM, NO_MESSAGE = 10071, 10059, 10037
--- The code of an answer that there is no such bucket.
Bucket.MISSING = NO_STREAM
local NO_PEERS, NO_CLUSTER = 10005, 10074 -- more replicas were asked for than the cluster has servers; than a single one keeps
local MOST_REPLICAS = 5
local GONE = "the bucket %s is gone: a leader in it steps down at its deadline, the next claim makes it again, and everybody "
  .. "waits then, since leases are gone with it"

--- The headers of a write that deletes.
Bucket.DELETED = "KV-Operation: DEL\r\n"

local known = {}

-- What JetStream answers.
local function read(text)
  local answer = json.object(text)
  if answer then return answer end
  return nil, "unexpected reply from JetStream", "protocol"
end

-- What the server refuses, with its name and what to do next.
-- @tparam Connection connection that brought the answer
-- @tparam table refusal of JetStream's answer
local function refused(self, connection, refusal)
  local code = refusal.err_code or "store"
  if code ~= NO_STREAM then return nil, connection:explained(refusal.description or "it says no, and gives no reason"), code end
  self.fitted = nil -- the next claim makes it
  return nil, connection:explained(GONE:format(self.name)), code
end

--- Asks JetStream.
-- @string verb and what it is about
-- @tparam[opt] table body
-- @number[opt] timeout seconds
-- @bool[opt] new where nothing is begun by it yet: see Connection:request
-- @treturn table; or nil, message, code
function Bucket:api(verb, body, timeout, new)
  local connection, problem, code = self.link:ready(timeout)
  if not connection then return nil, problem, code end
  local text
  text, problem, code = connection:request("$JS.API." .. verb, nil, body and core.json.encode(body) or "",
    timeout or self.timeout, new)
  if not text then return nil, problem, code end
  local answer
  answer, problem, code = read(text)
  if not answer then return nil, problem, code end
  if answer.error then return refused(self, connection, answer.error) end
  return answer
end

local function open(self, link)
  local connection, problem, code = self.servers:open(link:patience(self.timeout), link)
  if not connection then return nil, problem, code end
  if self.options.label then watch.on(self, connection) end -- else it is a command that asks once
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
    prefix = "$KV." .. options.bucket .. ".", timeout = options.timeout, options = options, followers = Followers.new(),
    refreshers = {}, highest = 0, trust = Trust.of("nats " .. place),
    doubt = Doubt.of("nats", url:match "^%a+://[^/?]*" .. "/" .. options.bucket, options), clock = ServerClock.new() }, Bucket)
  self.fits = Shared.new(function() return self:inspect() end)
  self.looks = Shared.new(function() return self:look() end) -- those who ask while one is under way share the next
  self.link = Reconnecting.new { open = function(link) return open(self, link) end, label = options.label,
    store = "nats", timeout = options.timeout, server = self.servers:label(), tls = self.servers.parsed.tls }
  if options.label then known[key] = self end
  return self
end

local function make_with(self, replicas)
  local ttl = self.options.ttl
  return self:api("STREAM.CREATE." .. self.stream, { name = self.stream, subjects = { self.prefix .. ">" },
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

-- Keys end by the server's wall clock: where that was stepped forward, somebody may act on a key that is gone.
local function note_time(self, sent, now)
  if now and self.clock:saw(sent, now) then
    self.doubt:because(nil)
    self.trust:doubt()
  end
  return now
end

-- What time it is at the server. Versions before 2.10 do not tell; but they tell when a consumer was made.
local function time_now(self, sent, answer)
  if answer.ts then return note_time(self, sent, calendar.seconds(answer.ts)) end
  sent = core.now()
  local made = self:api("CONSUMER.CREATE." .. self.stream, { stream_name = self.stream, config = {
    deliver_policy = "new", ack_policy = "explicit", inactive_threshold = NS, mem_storage = true, num_replicas = 1 } })
  return made and note_time(self, sent, calendar.seconds(made.created))
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

-- Which values it may drop, whose leaders act on.
local function drops(config)
  if config.retention ~= "limits" then return ("values (retention %s)"):format(config.retention) end
  local is_limited = config.max_bytes > 0 or config.max_msgs > 0
  return is_limited and config.discard == "old" and "old values when it is full" or nil
end

-- Which writes it does not take, as an election makes them: over a value, each with an answer.
local function refuses(config)
  if config.discard_new_per_subject then return "refuses to write over a value (discard_new_per_subject)" end
  if config.no_ack then return "acknowledges no write (no_ack)" end
  if config.sealed then return "takes no writes (sealed)" end
  return config.mirror and "takes no writes (it is a mirror)" or nil
end

-- What decides whether elections can be held in it.
local function nature(config)
  return { ttl = config.max_age / NS, history = config.max_msgs_per_subject, drops = drops(config), refuses = refuses(config) }
end

--- What is known of the bucket; it is made when it is missing.
-- @treturn table `{ ttl =, history =, drops =, refuses = words or nil, replicas =, storage =, created =, age = seconds or nil,
-- now =, subjects =, largest = bytes of a write with its headers, -1 for any,
-- full = the number of keys that it has reached or nil, capacity, room = bytes in all and left,
-- leader =, peers = the other servers that keep it, where it is a cluster's: `{ name =, current =, offline =, lag = }` }`;
-- or nil, message, code
function Bucket:info()
  local sent = core.now()
  local answer, problem, code = self:api("STREAM.INFO." .. self.stream)
  if code == NO_STREAM and self.options.ttl then
    answer, problem, code = make(self)
    if not answer then return nil, ("%s; until then the bucket %s cannot be made"):format(problem, self.name), code end
  end
  if not answer then return nil, problem, code end
  local now = time_now(self, sent, answer)
  local info = nature(answer.config)
  local limits = answer.config
  info.subjects, info.largest = limits.subjects or {}, limits.max_msg_size
  local state = answer.state or {}
  info.full = limits.max_msgs > 0 and (state.messages or 0) >= limits.max_msgs and ("max_msgs %d"):format(limits.max_msgs) or nil
  info.capacity = limits.max_bytes > 0 and limits.max_bytes or math.huge
  info.room = info.capacity - (state.bytes or 0)
  info.replicas, info.storage, info.created = answer.config.num_replicas, answer.config.storage, answer.created
  info.age, info.now = age_of(self, now, calendar.seconds(answer.created)), now
  info.leader, info.peers = answer.cluster and answer.cluster.leader, answer.cluster and peers_of(answer.cluster)
  return info
end

-- A bucket that one server keeps may have lost its last writes at each start of that server. One whose TTL was made shorter
-- forgets who has a longer lease.
local function identity_of(answer, connection)
  local server = answer.config.num_replicas == 1 and connection.server
  return ("%s %.0f %s"):format(answer.created, answer.config.max_age, tostring(server))
end

-- Whether elections can be held in it as it is now. A TTL that suits none gave nobody a lease: there is none to be sat out.
local function suits(self, config)
  local fine, problem = self.options.check(self.name, nature(config))
  if fine then self.trust:lasts(config.max_age / NS) else self.fitted = nil end
  return fine, problem
end

-- Somebody has edited the bucket's TTL since the last look, and nothing else is new about it. @return words; or nil
local function ttl_change(self, answer, last)
  local before, ttl = self.seen or self.known, answer.config.max_age / NS
  self.seen = { ttl = ttl, created = answer.created } -- also where it suits no election
  if not before or before.ttl == ttl or before.created ~= answer.created or last < self.highest then return nil end
  return ("the TTL of the bucket %s was changed from %s s to %s s"):format(self.name, figure.exact(before.ttl), figure.exact(ttl))
end

-- Compares the bucket with what was known of it. @return true: it is told to `trust` what it is; or nil, message, code
function Bucket:look()
  local connection, problem, code = self.link:ready()
  if not connection then return nil, problem, code end
  self.trust:reached(self.highest)
  local sent = core.now()
  local answer
  answer, problem, code = self:api("STREAM.INFO." .. self.stream)
  if not answer then return nil, problem, code end
  if self.link.connection ~= connection then return nil, "the connection was lost meanwhile", "closed" end
  local fine
  fine, problem, code = self.servers:keep(connection, answer)
  if not fine then return nil, problem, code end
  note_time(self, sent, answer.ts and calendar.seconds(answer.ts))
  fine, problem = suits(self, answer.config)
  local last, ttl = answer.state.last_seq, answer.config.max_age / NS
  if self.known and ttl ~= self.known.ttl then self.fitted = nil end -- leases last as long as it says now
  local believed, back = self.trust:saw { identity = identity_of(answer, connection), at = last }
  local change = ttl_change(self, answer, last)
  if back then self.doubt:because(change) end
  if back and self.watch and self.watch.told > last then self.watch.astray = true end
  if not believed then self.highest = last end
  return fine, problem
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
  -- Nobody can have deleted one before it: so it is new, whoever has made it.
  if self.options.trust_empty and not self.trust.identity then self.trusted = info.created end
  if info.created ~= self.trusted then -- who led in a bucket that was here before may have a longer lease
    self.trust:saw { age = info.age }
    self.trust:lost(self.options.amnesia_wait - info.age)
  end
  fine, problem, code = self.looks:ask(self.timeout)
  if not fine then return nil, problem, code end
  self.fitted, self.known = connection, info
  return info
end

--- Sees to it that the bucket is one that elections can be held in, and that `trust` knows what answers now: once for each
-- connection, and when the bucket was deleted. Thousands that ask at once are answered by one look.
-- @treturn table what info tells; or nil, message, code
function Bucket:fit()
  if self.fitted and self.fitted == self.link.connection then return self.known end
  return self.fits:ask()
end

--- The last value of a key. Decided by the stream's leader, not by whoever is near.
-- @string key
-- @bool[opt] new where nothing is begun by it yet: see Connection:request
-- @treturn table `{ data =, revision =, headers =, gone =, written = the server's words, written_at = its seconds }`; false
-- when there is none; or nil, message, code
function Bucket:get(key, new)
  local answer, problem, code = self:api("STREAM.MSG.GET." .. self.stream, { last_by_subj = self.prefix .. key }, nil, new)
  if code == NO_MESSAGE then return false end
  if not answer then return nil, problem, code end
  local headers = {}
  for name, text in (base64.decode(answer.message.hdrs or "") or ""):gmatch "\r\n([^:\r\n]+):[ \t]*([^\r\n]*)" do
    headers[name:lower()] = text
  end
  return value.of(base64.decode(answer.message.data or "") or "", headers, answer.message.seq, answer.message.time)
end

-- Writes count only over the value of a revision.
local function at_revision(headers, revision)
  return ("%sNats-Expected-Last-Subject-Sequence: %d\r\n"):format(headers, revision)
end

-- @return the new revision; false when there is another value; or nil, message, code
local function written(self, connection, answer)
  local revision = answer
  if type(answer) == "string" then
    local said, problem, code = read(answer)
    if not said then return nil, problem, code end
    if said.error then
      if said.error.err_code == WRONG_REVISION then return false end
      return refused(self, connection, said.error)
    end
    revision = said.seq
  end
  self.highest = math.max(self.highest, revision)
  return revision
end

-- Nobody answers to a write: JetStream is off, or the bucket is gone, or it takes other subjects.
local function missing(self, connection, subject, problem, code)
  self.fitted = nil
  local there, why, reason = self:api("STREAM.INFO." .. self.stream)
  if not there then return nil, why, reason end
  local not_taken = subjects.problem(self.name, there.config.subjects or {}, subject)
  return nil, not_taken and connection:explained(not_taken) or problem, code
end

--- Writes a key, only at a revision.
-- @string key
-- @string data
-- @string headers each a line with its end
-- @number revision of the value that is there now; 0: there is none
-- @bool[opt] new where nothing is begun by it yet: see Connection:request
-- @treturn number the new revision; false when another one is there; or nil, message, code
function Bucket:put(key, data, headers, revision, new)
  local connection, problem, code = self.link:ready()
  if not connection then return nil, problem, code end
  local answer
  answer, problem, code = connection:request(self.prefix .. key, at_revision(headers, revision), data, self.timeout, new)
  if code == "store" then return missing(self, connection, self.prefix .. key, problem, code) end
  if not answer then return nil, problem, code end
  return written(self, connection, answer)
end

--- Writes many keys, each only at a revision, all at once.
-- @tparam table words key, data, headers and revision of each, one after the other
-- @number count how many
-- @treturn table for each of which there is an answer the new revision, or false when another one is there; or nil where nothing
-- was asked
-- @treturn[opt] string why there are not all
function Bucket:put_all(words, count)
  local connection, problem = self.link:ready()
  if not connection then return nil, problem end
  local asked = {}
  for i = 1, count do
    local at = 4 * i
    asked[3 * i - 2], asked[3 * i] = self.prefix .. words[at - 3], words[at - 2]
    asked[3 * i - 1] = at_revision(words[at - 1], words[at])
  end
  local answers
  answers, problem = connection:request_all(asked, count, self.timeout)
  if not answers then return nil, problem end
  local revisions = {}
  for i = 1, count do
    if answers[i] then revisions[i] = written(self, connection, answers[i]) end
  end
  return revisions, problem
end

--- Deletes a key, only at a revision; followers hear of it.
function Bucket:delete(key, revision)
  return self:put(key, "", Bucket.DELETED, revision)
end

--- Hands what happens to a key to an election: "put" or "gone", "evict", "missed".
-- @string key
-- @param follower its method `heard` is called with the word, the value's revision, who wrote it,
-- and when, as `get` has it
function Bucket:join(key, follower)
  self.followers:add(key, follower)
end

--- Tells those who follow a key.
function Bucket:tell(key, ...)
  for follower in self.followers:of(key) do follower:heard(...) end
end

--- The last values of all keys, by one question: see crown.nats.watch.
Bucket.values = watch.values

--- Asks the leader of a key to go, for a command that asks once.
-- @treturn boolean true; or nil, message, code: "store" where the server does not let us ask
function Bucket:ask_to_go(key, revision)
  local connection, problem, code = self.link:ready()
  if not connection then return nil, problem, code end
  connection.refused = nil
  connection:publish("crown.evict." .. self.name .. "." .. key, nil, nil, ("%d"):format(revision))
  connection:prove(self.timeout)
  if connection.refused then return nil, connection:explained(connection.refused), "store" end
  return true
end

--- Ends it.
function Bucket:close()
  self.link:close()
end

return Bucket
