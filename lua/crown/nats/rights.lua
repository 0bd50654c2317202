--- What a candidate lacks on a NATS server. The server is really asked, with words that change nothing.
-- @internal crown.nats.rights

local rights = {}

local NEVER = "9007199254740991" -- a revision that no key has, so that nothing is written
local NOT_LET_IN = "the server says: .*Auth" -- "Authorization Violation", "User Authentication Expired", …
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

-- What the server refuses of what fn sends. @return its words; false; or nil, message, code
local function refusal(connection, fn, timeout)
  connection.refused = nil
  fn()
  if not connection:prove(timeout) then return nil, connection.closed or "no answer to a ping", "closed" end
  local refused = connection.refused
  connection.refused = nil
  return refused or false
end

--- Asks the server.
-- @tparam Bucket bucket of crown.nats.bucket, for a command that asks once
-- @string key of the election
-- @tparam function check what a bucket must be: `check(name, info)` → true, or nil and a message
-- @treturn table an array of texts; or nil, message, code
function rights.lacks(bucket, key, check)
  local connection, problem, code = bucket.link:ready()
  if not connection and problem and problem:find(NOT_LET_IN) then return { problem } end -- the server's own words
  if not connection then return nil, problem, code end
  local lacks = { connection.refused } -- of the subscription that answers come by
  local function try(fn)
    local refused, why, kind = refusal(connection, fn, bucket.timeout)
    if refused == nil then return nil, why, kind end
    if refused then lacks[#lacks + 1] = refused end
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
    local fit, why = check(bucket.name, info[1])
    if not fit then lacks[#lacks + 1] = why end
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
  return lacks
end

return rights
