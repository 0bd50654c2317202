--- What a candidate lacks on a NATS server. The server is really asked, with words that change nothing.
-- @internal crown.nats.rights

local explain = require "crown.link.explain"
local subjects = require "crown.nats.subjects"

local rights = {}

local NEVER = "9007199254740991" -- a revision that no key has, so that nothing is written
local FRAME = 38 -- bytes besides, which JetStream keeps with each write
local LEAST_WRITE = 256 -- bytes: headers, and a node's name of 64
-- "Authorization Violation", "User Authentication Expired", …; and that no answer may be subscribed to.
local NOT_LET_IN, DEAF = "the server says: .*Auth", "the server says: Permissions Violation for Subscription"
local NOBODY = "0" -- nor a term that anybody leads

-- What is sent, by what it is for. JetStream takes none of it: the empty configurations name another stream.
local function publications(bucket, key, missing)
  local api = "$JS.API."
  local list = { { ("$KV.%s.%s"):format(bucket.name, key), ("Nats-Expected-Last-Subject-Sequence: %s\r\n"):format(NEVER), "" },
    { api .. "STREAM.MSG.GET." .. bucket.stream, nil, "{}" }, { api .. "CONSUMER.CREATE." .. bucket.stream, nil, "{}" },
    { ("crown.evict.%s.%s"):format(bucket.name, key), nil, NOBODY } }
  if missing then list[#list + 1] = { api .. "STREAM.CREATE." .. bucket.stream, nil, "{}" } end
  return list
end

-- Why the bucket will not take what a candidate writes. The probe does not tell: its revision is refused before that.
local function obstacle(bucket, key, info)
  local subject = ("$KV.%s.%s"):format(bucket.name, key)
  local not_taken = subjects.problem(bucket.name, info.subjects, subject)
  if not_taken then return not_taken end
  if info.largest >= 0 and info.largest < LEAST_WRITE then
    return ("the bucket %s takes no more than %d bytes at once (max_msg_size), and a candidate writes up to %d")
      :format(bucket.name, info.largest, LEAST_WRITE)
  end
  local write = LEAST_WRITE + FRAME + #subject
  if info.capacity <= write then
    return ("the bucket %s keeps no more than %d bytes (max_bytes), and a candidate writes up to %d at once"):format(bucket.name,
      info.capacity, write)
  end
  local full = info.full or info.room <= write and ("max_bytes %d, with %d left"):format(info.capacity, info.room)
  local lacks_room = full and bucket:get(key) == false
  if not lacks_room then return nil end
  return ("the bucket %s is full (%s): it takes no key that it does not have"):format(bucket.name, full)
end

-- What the server refuses of what fn sends. @return its words; false; or nil, message, code
local function refusal(connection, fn, timeout)
  connection.refused = nil
  fn()
  if not connection:prove(timeout) then return nil, connection.closed or "no answer to a ping", "closed" end
  local refused = connection.refused
  connection.refused = nil
  return refused or false
end

-- Why it obeys no orders, and leads all the same. The bucket of orders need not be there.
-- @return words, false; or nil, message, code
local function lacks_orders(bucket, key, connection)
  local list = { { "$JS.API.STREAM.MSG.GET.KV_%s_orders", nil, "{}" }, { "$JS.API.STREAM.INFO.KV_%s_orders", nil, "" },
    { "$KV.%s_orders." .. key:gsub("%%", "%%%%"), ("Nats-Expected-Last-Subject-Sequence: %s\r\n"):format(NEVER), "" } }
  for _, one in ipairs(list) do
    local refused, problem, code = refusal(connection, function()
      connection:publish(one[1]:format(bucket.name), nil, one[2], one[3])
    end, bucket.timeout)
    if refused == nil then return nil, problem, code end
    if refused then return ("%s; operators' orders are not obeyed without that"):format(refused) end
  end
  return false
end

--- Asks the server.
-- @tparam Bucket bucket of crown.nats.bucket, for a command that asks once
-- @string key of the election
-- @tparam function check what a bucket must be: `check(name, info)` → true, or nil and a message
-- @treturn table an array of texts, with `warning`; or nil, message, code
function rights.lacks(bucket, key, check)
  local connection, problem, code = bucket.link:ready()
  if not connection and problem and (problem:find(NOT_LET_IN) or problem:find(DEAF)) then return { problem } end
  if not connection then return nil, problem, code end
  local lacks = {}
  local function try(fn)
    local refused, why, kind = refusal(connection, fn, bucket.timeout)
    if refused == nil then return nil, why, kind end
    if refused then lacks[#lacks + 1] = explain.named(refused, "nats", bucket.servers:label()) end
    return true
  end
  local fine, info
  fine, problem, code = try(function() info = { bucket:info() } end)
  if not fine then return nil, problem, code end
  if #lacks == 0 and not info[1] and info[3] ~= bucket.MISSING then
    if type(info[3]) ~= "number" and info[3] ~= "store" then return nil, info[2], info[3] end
    return { info[2] } -- an answer of JetStream: more is not to be had
  end
  if info[1] then
    local _, why = check(bucket.name, info[1])
    why = why or obstacle(bucket, key, info[1])
    if why then lacks[#lacks + 1] = explain.named(why, "nats", bucket.servers:label()) end
  end
  for _, one in ipairs(publications(bucket, key, info[3] == bucket.MISSING)) do
    fine, problem, code = try(function() connection:publish(one[1], nil, one[2], one[3]) end)
    if not fine then return nil, problem, code end
  end
  local sid
  fine, problem, code = try(function()
    sid = connection:subscribe(("crown.evict.%s.>"):format(bucket.name), function() end)
  end)
  if not fine then return nil, problem, code end
  connection:unsubscribe(sid)
  local warning
  warning, problem, code = lacks_orders(bucket, key, connection)
  if warning == nil then return nil, problem, code end
  lacks.warning = warning or nil
  return lacks
end

return rights
