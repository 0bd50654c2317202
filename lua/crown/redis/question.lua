--- One question to one Redis server: the scripts by which records are read and written, and what it takes for an answer to count.
--
-- A store has `parsed` (crown.redis.url), `shas`, `place` with `timeout` in seconds, which may change, `min_replicas`, and
-- `sentinels` where it was found by some. What is told of a server: `in_cluster`, where nothing is marked; `forgets`, why nobody
-- claims there; `id`.
-- @internal crown.redis.question

local server = require "crown.redis.server"

local question = {}

local FEW = "NOREPLICAS" -- Redis' own word for that
local SHARE = 0.5 -- of the time-out, for the replicas' and for the Sentinels' answers

--- What is said of an answer that cannot be read.
question.STRANGE = "unexpected reply from Redis"

--- What is said of a server that the URL takes for a node of a cluster.
question.NO_CLUSTER = "this server is no node of a cluster: have the URL begin with redis:// or rediss://"

--- The version of what is no record: what the server says of it stands in the record's place.
question.NONE = "none"

-- The memory is the server's, and where there is a key for it also that key's, which is gone when all is lost: but not in a
-- cluster, where a script may use the keys of one slot alone.
-- Who only looks has no name for a new one, and leaves nothing there.
-- The lease of an older version of crown-lua, in its own format, is beside the record, and no record is written while it stands.
-- The write of the first record puts another one there, which an older version takes for somebody's for ever. It is also what is
-- left of a record that was deleted: its `mark` is a version then.
local HEAD = [[
local memory, own, nonce = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)'), ARGV[1], ARGV[2]
local function ask(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  if type(answer) == 'table' and answer.err then
    local is_other = string.find(answer.err, '^WRONGTYPE')
    return nil, is_other and answer.err .. ' (the key ' .. key .. ': delete it, if nobody needs it)' or answer.err
  end
  return answer
end
if own ~= '' then
  local kept, problem = ask('GET', own)
  if problem then return redis.error_reply(problem) end
  if not kept and nonce ~= '' then redis.call('SET', own, nonce) end
  memory = memory .. '-' .. (kept or nonce)
end
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local function old(key, what) return (string.gsub(key, 'record$', what)) end
local function told(list)
  list[#KEYS + 2] = string.format('%.0f', now)
  return list
end
]]

local SCRIPTS = {
  look = HEAD .. [[
local found = { memory }
for i, key in ipairs(KEYS) do
  local one, problem = ask('HMGET', key, 'version', 'record', 'written')
  local lease, epoch
  if one and not one[1] then
    lease, problem = ask('HMGET', old(key, 'lease'), 'token', 'node', 'epoch', 'mark')
    if lease then epoch, problem = ask('GET', old(key, 'epoch')) end
  end
  if problem then
    found[i + 1] = { ']] .. question.NONE .. [[', problem, 0 } -- which spoils no other one's answer
  elseif one[1] then
    found[i + 1] = { one[1], one[2], now - (tonumber(one[3]) or now) }
  else
    local stands = lease[1] and lease[1] ~= '#'
    local left = stands and redis.call('PTTL', old(key, 'lease')) or 0
    if lease[4] and not stands then
      found[i + 1] = { lease[4], false, 0 }
    else
      found[i + 1] = (stands or epoch) and { lease[2] or '', stands and lease[3] or epoch, left < 0 and 1000 or left, 'older' }
    end
  end
end
return told(found)]],
  same = HEAD .. [[
local done = { memory }
for i, key in ipairs(KEYS) do
  done[i + 1] = memory == ARGV[3] and ask('HGET', key, 'version') == ARGV[i + 3] and 1 or 0
end
return told(done)]],
  swap = HEAD .. [[
local done = { memory }
for i, key in ipairs(KEYS) do
  local was, wanted, version, record, news = unpack(ARGV, 5 * i, 5 * i + 4)
  local has, problem = ask('HGET', key, 'version')
  local lease, older = old(key, 'lease'), {}
  local is_new = not has and news ~= ''
  if is_new and not problem then older, problem = ask('HMGET', lease, 'token', 'mark') end
  local stands = not problem and memory == wanted and (has or older[2] or '') == was
  if stands and is_new then
    stands = not older[1] or older[1] == '#'
    if stands then
      redis.call('HSET', lease, 'token', '#', 'node', ARGV[4], 'epoch', '0', 'claim', '0', 'ttl', '9e14',
        'mark', 'deleted-' .. version)
    end
  end
  if stands and record == '' then
    stands = redis.pcall('DEL', key) == 1
  elseif stands then
    redis.call('HSET', key, 'version', version, 'record', record, 'written', string.format('%.0f', now))
    if #news > 1 then redis.call('PUBLISH', ARGV[3], news) end
  end
  done[i + 1] = problem or stands and 1 or 0
end
return told(done)]],
}

--- Looks at a server that was connected to, and gives it the scripts. In a cluster a replica leads on to its primary;
-- elsewhere it is no store.
-- @tparam table self a store
-- @tparam Connection connection
-- @number timeout seconds
-- @treturn boolean true; or nil, message, code
function question.set_up(self, connection, timeout)
  local info, problem = connection:call(timeout, "INFO")
  if not info then return nil, problem end
  if type(info) ~= "string" then return nil, question.STRANGE end
  if not info:find "master_replid:%x+" then return nil, "this server does not tell its replication id" end
  self.in_cluster = self.in_cluster or info:find "redis_mode:cluster" ~= nil
  if self.parsed.cluster and not self.in_cluster then return nil, question.NO_CLUSTER, "usage" end
  if self.in_cluster then
    self.marks = false
  else
    local role
    role, problem = connection:call(timeout, "ROLE")
    if not role then return nil, problem end
    if type(role) ~= "table" then return nil, question.STRANGE end
    if role[1] ~= "master" then return nil, "this server is a replica: name the primary, or its Sentinels" end
  end
  self.forgets, self.id = server.forgets(info), not self.in_cluster and server.id(info) or nil
  for word, text in pairs(SCRIPTS) do
    self.shas[word], problem = connection:call(timeout, "SCRIPT", "LOAD", text)
    if not self.shas[word] then return nil, problem end
  end
  return true
end

-- SCRIPT FLUSH is no reason to lose anything.
local function evaluate(self, client, word, keys, arguments)
  local words = { "EVALSHA", self.shas[word], #keys }
  for _, key in ipairs(keys) do words[#words + 1] = key end
  for _, argument in ipairs(arguments) do words[#words + 1] = argument end
  local answer, problem, code = client:call(unpack(words))
  if code == "NOSCRIPT" then
    answer, problem, code = client:call("SCRIPT", "LOAD", SCRIPTS[word])
    if answer then answer, problem, code = client:call(unpack(words)) end
  end
  return answer, problem, code
end

local function replicated(self, client)
  local milliseconds = ("%d"):format(math.max(1, self.place.timeout * SHARE * 1000))
  local count, problem, code = client:call("WAIT", ("%d"):format(self.min_replicas), milliseconds)
  if not count then return nil, problem, code end
  if type(count) == "number" and count >= self.min_replicas then return true end
  return nil, client:answered(("only %s of %d replicas have it"):format(tostring(count), self.min_replicas), FEW), "store"
end

-- A primary that was cut off, or frozen, takes writes until it has been made a replica, beside the new one. What it says counts
-- where most Sentinels, asked after that, name it still: two majorities have a Sentinel in common, so nobody had a majority for
-- another primary before this one was asked.
local function confirmed(self, connection)
  local fine, problem, is_another = self.sentinels:confirm(connection.place, self.place.timeout * SHARE)
  if fine then return true end
  if is_another then connection:close(problem) end
  return nil, problem, "store"
end

-- What replicas do not have, or Sentinels do not confirm, is not known. So is what a look finds: it may be our own write.
local function counts(self, client, connection)
  if self.min_replicas > 0 then
    local fine, problem, code = replicated(self, client)
    if not fine then return nil, problem, code end
  end
  if connection.closed then return nil, connection.closed, "closed" end -- another one may have brought the answer
  if self.sentinels then return confirmed(self, connection) end
  return true
end

--- Asks a server.
-- @tparam table self a store
-- @tparam Client client
-- @string word "look", "same" or "swap"
-- @tparam table keys of the records
-- @tparam table arguments of the script
-- @treturn table the memory, and one answer for each key; or nil, message, code
function question.ask(self, client, word, keys, arguments)
  client.timeout = self.place.timeout
  local connection, problem, code = client:ready(client.timeout)
  if not connection then return nil, problem, code end
  local answer
  answer, problem, code = evaluate(self, client, word, keys, arguments)
  if not answer then return nil, client:answered(problem, code), code end
  if type(answer) ~= "table" or type(answer[1]) ~= "string" or answer.n ~= #keys + 2 then
    return nil, question.STRANGE, "protocol"
  end
  local fine
  fine, problem, code = counts(self, client, connection)
  if not fine then return nil, problem, code end
  return answer
end

return question
