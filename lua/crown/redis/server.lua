--- What a Redis server says of itself, and what a candidate may do there.
-- @internal crown.redis.server

local server = {}

local SCAN_COUNT = "500"

--- What it says under a name.
-- @string info the answer to INFO
-- @string name
-- @treturn string or nil
function server.field(info, name)
  return info:match("\n" .. name .. ":([^\r\n]*)")
end

local field = server.field

--- How many replicas it has.
-- @string info the answer to INFO
-- @treturn number
function server.count_replicas(info)
  return tonumber(field(info, "connected_slaves")) or 0
end

--- Its version, in words.
-- @string info the answer to INFO
-- @treturn string
function server.version(info)
  return ("Redis %s"):format(field(info, "redis_version"))
end

--- How many replicas it has, in words.
-- @string info the answer to INFO
-- @treturn string
function server.replicas(info)
  local count = server.count_replicas(info)
  return ("%d replica%s"):format(count, count == 1 and "" or "s")
end

--- The id that it gives itself when it starts.
-- @string info the answer to INFO
-- @treturn string or nil
function server.id(info)
  return field(info, "run_id")
end

--- What it is, in words.
-- @string info the answer to INFO
-- @treturn string
function server.words(info)
  return ("%s, %s, %s, append-only file %s"):format(server.version(info), field(info, "role"), server.replicas(info),
    field(info, "aof_enabled") == "1" and "on" or "off")
end

--- Whether a full server throws away what no time-out ends.
-- @string info the answer to INFO, or its section on memory
-- @treturn string a sentence that says so, or nil
function server.forgets(info)
  local policy = field(info, "maxmemory_policy")
  if field(info, "maxmemory") == "0" or not policy or not policy:find "^allkeys" then return nil end
  return ("maxmemory-policy is %s: a full server throws records away, so nobody claims there; set noeviction"):format(policy)
end

--- What is to be said of it to an operator.
-- @string info the answer to INFO
-- @treturn table an array of texts
function server.warnings(info)
  return { server.forgets(info) }
end

--- Runs a function with each key of a pattern.
-- @tparam Client client
-- @string pattern
-- @tparam function fn
-- @treturn boolean true; or nil, message, code
function server.each_key(client, pattern, fn)
  local cursor = "0"
  repeat
    local page, problem, code = client:call("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT)
    if not page then return nil, problem, code end
    cursor = page[1]
    for _, key in ipairs(page[2]) do fn(key) end
  until cursor == "0"
  return true
end

-- What the server's own state does not allow.
local function hindrance(info, wanted)
  if field(info, "role") == "slave" then return "the server is a replica: name the primary, or its Sentinels" end
  if info ~= "" and server.count_replicas(info) < wanted.min_replicas then
    return ("min_replicas is %d, and the server has %s: no claim counts"):format(wanted.min_replicas, server.replicas(info))
  end
  return server.forgets(info)
end

-- A server that is full, or has too few replicas, tells so at a write alone. This one is gone as soon as it is there.
local WRITE = "redis.call('SET', KEYS[1], '1', 'PX', 1000) return redis.call('DEL', KEYS[1])"

local function refused(client, key)
  local written, problem, code = client:call("EVAL", WRITE, "1", key)
  return not written and "the server refuses a write: " .. client:answered(problem, code) or nil
end

--- Redis' code for a right that is missing.
server.NO_RIGHT = "NOPERM"

-- The server names the command, but neither the keys nor the channels.
local function named(problem, prefix)
  local sign = problem:find(" key", 1, true) and "~" or problem:find(" channel", 1, true) and "&"
  return sign and ("%s: the right %s%s:* is missing"):format(problem, sign, prefix) or problem
end

local SILENT = { timeout = true, closed = true }

--- Runs a command, and adds what the server has against it where that is a right.
-- @tparam table lacks an array of texts
-- @tparam Client client
-- @tparam table words of the command
-- @string[opt] user who has it not
-- @string prefix of the keys and channels
-- @treturn boolean whether it has answered; else nil, message, code
function server.add_refusal(lacks, client, words, user, prefix)
  local _, problem, code = client:call(unpack(words))
  if SILENT[code] then return nil, problem, code end
  if code ~= server.NO_RIGHT then return true end
  local text = ("%s: %s"):format(user or "default", named((problem:gsub("^NOPERM ", "")), prefix))
  for _, told in ipairs(lacks) do
    if told == text then return true end
  end
  lacks[#lacks + 1] = text
  return true
end

-- What a server that has not answered one command says to the next: while it is paused (CLIENT PAUSE) it answers what reads.
local function paused(client, problem, code)
  local info, _, why = client:call "INFO"
  if SILENT[why] or not info then return nil, problem, code end
  return { "the server refuses a write: no answer in time, though it answers what only reads" }
end

--- What a candidate lacks there.
-- @tparam Client client
-- @tparam table wanted `commands`, each an array of words, with `leaves` where something would be left but for the ones before;
-- `min_replicas`; `key`, which a write is tried with; `more`: a text that is added; `user` and `prefix`
-- @treturn table an array of texts; or nil, message, code
function server.lacks(client, wanted)
  local info, problem, code = client:call "INFO"
  if SILENT[code] then return nil, problem, code end
  local lacks = { hindrance(info or "", wanted) } -- who may not ask for that hears it among the rest
  if #lacks > 0 then return lacks end
  for _, words in ipairs(wanted.commands) do
    if #lacks == 0 or not words.leaves then
      local answered
      answered, problem, code = server.add_refusal(lacks, client, words, wanted.user, wanted.prefix)
      if not answered then return paused(client, problem, code) end
    end
  end
  if #lacks == 0 then lacks[1] = refused(client, wanted.key) end
  lacks[#lacks + 1] = wanted.more
  return lacks
end

return server
