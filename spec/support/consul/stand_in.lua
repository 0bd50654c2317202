--- A program: a stand-in for one agent of Consul, and the servers behind it. stand_in.lua PORT FILE [FOLDER], where FILE keeps its state
-- (state.lua), and FOLDER has the certificate of a server that speaks TLS (support.authority).
--
-- It is strict: it refuses keys that new versions refuse, options that it does not know, and tokens that lack a right, and a read that is
-- not `consistent` may be answered by what stood at the trick "stale". POST /trick sets what happens to the requests that follow:
-- what support.web has, and `leader = false` (no leader: 500), `stale = true`, `multiplier =` (of a session's TTL), `anew = true` (another
-- server leads), `tokens = { secret = { rights } }`, `anonymous = { rights }`, `index = 0` (the next indexes are told too low),
-- `connections` (how many it takes; 200 else, as limits.http_max_conns_per_client).
local crown = require "crown"
local base64 = require "crown.text.base64"
local core = require "crown.core"
local json = require "crown.text.json"
local State = require "support.consul.state"
local web = require "support.web"

local state = State.open(arg[2])
local trick, stale, has_leader, too_low = {}, nil, true, false

local ALL = { "key:read", "key:list", "key:write", "session:write", "session:read", "agent:read" }
local OPTIONS = { keys = true, recurse = true, consistent = true, stale = true, index = true, wait = true, cas = true, acquire = true,
  release = true, flags = true, dc = true }
local DATACENTER = "dc1"
local LARGEST = 512 * 1024
local OPS_MOST = 64
local WAIT_MOST, WAIT = 600, 300
local TTL_LEAST, TTL_MOST = 0.2, 86400 -- session_ttl_min is 10 s where nobody has set it

local function set_of(list)
  local found = {}
  for _, one in ipairs(list) do found[one] = true end
  return found
end

local tokens = { ["all-token"] = set_of(ALL), ["next-token"] = set_of(ALL),
  ["read-token"] = set_of { "key:read", "key:list", "session:read" }, ["write-token"] = set_of { "key:write" } }
local anonymous = set_of(ALL)

-- --- answers

local function respond(connection, status, body, index)
  local headers = { ["Content-Type"] = "application/json" }
  if index then
    headers["X-Consul-Index"], headers["X-Consul-KnownLeader"] = ("%.0f"):format(too_low and 0 or index), tostring(has_leader)
    headers["X-Consul-LastContact"] = stale and "90" or "0"
  end
  return web.respond(connection, status, body, headers)
end

-- Flags have more digits than a number of Lua has: here they are texts.
local function encode(found, ...) return (json.encode(found, ...):gsub('"Flags":"(%d+)"', '"Flags":%1')) end

local function value_of(found) return type(found) == "boolean" and tostring(found) or json.encode(found) end

local function plain(connection, status, text) return respond(connection, status, text) end

-- @return whether a token may; else a function that answers, and its arguments
local function rights_of(request)
  local secret = request.headers["x-consul-token"]
  if not secret then return anonymous end
  return tokens[secret]
end

local function denial(right, key)
  return ("Permission denied: token with AccessorID '00000000-0000-0000-0000-000000000002' lacks permission '%s' on \"%s\""):format(
    right, key or "")
end

-- --- keys

local FILES = { "js", "css", "html", "htm", "xml", "json", "txt", "log", "php", "asp", "jsp", "cgi", "pl", "py", "rb", "sh", "exe", "dll",
  "bat", "cmd", "com", "scr", "vbs", "pdf", "zip", "tar", "gz", "jpg", "png", "gif", "svg", "ico" }

-- As Consul 1.22 has it.
local function key_problem(key)
  local bad = key:match "[^%w,_./-]"
  if bad then return ("key contains invalid character '%s'. Only alphanumeric characters and ,-_./ are allowed"):format(bad) end
  if key:sub(1, 1) == "/" then return "key must not begin with a '/'" end
  if key:find("../", 1, true) then return "key contains path traversal sequence" end
  for _, one in ipairs(FILES) do
    if key:lower():sub(-#one - 1) == "." .. one then return "key contains suspicious file extension that may be cached by proxies" end
  end
end

local function seconds_of(text)
  local number, unit = (text or ""):match "^([%d.]+)(m?s)$"
  if not number then number, unit = (text or ""):match "^([%d.]+)(m)$" end
  return number and tonumber(number) * (unit == "ms" and 0.001 or unit == "m" and 60 or 1)
end

local function index_of(entry) return entry and entry.ModifyIndex or state.kept.keys_index end

-- Waits until the index is another one than the client has seen.
local function block(options, look)
  local seen, wait = tonumber(options.index or 0), math.min(seconds_of(options.wait) or WAIT, WAIT_MOST)
  local over = core.now() + wait + wait / 16 * math.random()
  local found, index = look()
  while seen > 0 and index <= seen and core.now() < over do
    state:wait(over - core.now())
    found, index = look()
  end
  return found, index
end

local function get(connection, request, key)
  local options = request.options
  local keys = not options.consistent and stale or nil
  if options.keys or options.recurse then
    local found = block(options, function() return state:list(key, keys), state.kept.keys_index end)
    if #found == 0 then return respond, connection, 404, "", state.kept.keys_index end
    if options.recurse then
      for i, one in ipairs(found) do found[i] = state:get(one, keys) end
    end
    return respond, connection, 200, encode(found), state.kept.keys_index
  end
  local entry, index = block(options, function()
    local one = state:get(key, keys)
    return one, index_of(one)
  end)
  if not entry then return respond, connection, 404, "", index end
  return respond, connection, 200, encode { entry }, index
end

local function put(connection, request, key)
  local options = request.options
  local kinds = (options.cas and 1 or 0) + (options.acquire and 1 or 0) + (options.release and 1 or 0)
  if kinds > 1 then return plain, connection, 400, "Conflicting flags: " .. request.query end
  local flags = options.flags or "0"
  local done
  if options.acquire then
    done = state:acquire(key, request.body, flags, options.acquire)
    if done == nil then return plain, connection, 500, ('invalid session "%s"'):format(options.acquire) end
  elseif options.release then
    done = state:release(key, request.body, flags, options.release)
  else
    done = state:put(key, request.body, flags, options.cas and tonumber(options.cas))
  end
  return respond, connection, 200, value_of(done)
end

local RIGHTS = { GET = "key:read", PUT = "key:write", DELETE = "key:write" }

local function of_key(connection, request, key, may)
  local right = request.options.keys and "key:list" or RIGHTS[request.method]
  local problem = key_problem(key)
  if not right then return plain, connection, 405, "method not allowed" end
  if problem then return plain, connection, 400, problem end
  if not may[right] then return plain, connection, 403, denial(right, key) end
  if #request.body > LARGEST then return plain, connection, 413, "Request body too large" end
  if request.method == "GET" then return get(connection, request, key) end
  if request.method == "PUT" then return put(connection, request, key) end
  return respond, connection, 200, value_of(state:delete(key, tonumber(request.options.cas)))
end

-- --- transactions

local function conflict(connection, number, what)
  return respond, connection, 409, json.encode { Errors = { { OpIndex = number, What = what } } }
end

local function of_transaction(connection, request, may)
  local list = json.list((request.body:gsub('"Flags":(%d+)', '"Flags":"%1"')))
  if not list then return plain, connection, 400, "Failed to parse body" end
  if #list > OPS_MOST then return plain, connection, 413, "Transaction contains too many operations" end
  local ops = {}
  for i, one in ipairs(list) do
    local op = one.KV
    local is_fine = op and type(op.Key) == "string" and (op.Index == nil or type(op.Index) == "number") and not key_problem(op.Key)
    op.value = type(op.Value) == "string" and base64.decode(op.Value) or ""
    if not is_fine then return plain, connection, 400, "Failed to parse body: an operation is wrong" end
    if not may["key:write"] then return conflict(connection, i - 1, denial("key:write", op.Key)) end
    ops[i] = op
  end
  local results, errors = state:transact(ops)
  if not results then return respond, connection, 409, json.encode { Errors = errors } end
  return respond, connection, 200, encode({ Results = results }, "Results")
end

-- --- sessions

local function shown(id, one)
  return { ID = id, Name = one.name, TTL = one.text, LockDelay = one.delay * 1e9, Behavior = one.behavior, CreateIndex = one.created,
    NodeChecks = one.checks }
end

local sessions = {}

function sessions.create(connection, request)
  local found = {}
  for name, value in pairs(json.object(request.body) or {}) do found[name:lower()] = value end -- Go tells no letters' size apart
  local ttl = seconds_of(found.ttl)
  if found.ttl and (not ttl or ttl < TTL_LEAST or ttl > TTL_MOST) then
    return plain, connection, 500, ("Invalid Session TTL '%s', must be between [10s=24h0m0s]"):format(tostring(found.ttl))
  end
  local checks = type(found.nodechecks) == "table" and found.nodechecks or type(found.checks) == "table" and found.checks
    or { "serfHealth" }
  return respond, connection, 200, json.encode { ID = state:begin { name = found.name, ttl = ttl or TTL_MOST, text = found.ttl or "",
    delay = seconds_of(found.lockdelay) or 15, behavior = found.behavior or "release", checks = checks } }
end

function sessions.renew(connection, _, id)
  local one = state:renew(id)
  if not one then return plain, connection, 404, ("Session id '%s' not found"):format(id) end
  return respond, connection, 200, json.encode { shown(id, one) }
end

function sessions.destroy(connection, _, id)
  state:destroy(id)
  return respond, connection, 200, "true"
end

function sessions.info(connection, _, id)
  local one = state.kept.sessions[id]
  return respond, connection, 200, one and json.encode { shown(id, one) } or "[]", state.kept.index
end

local function of_session(connection, request, what, id, may)
  local right = what == "info" and "session:read" or "session:write"
  if not may[right] then return plain, connection, 403, denial(right, id) end
  if (request.method == "GET") ~= (what == "info") then return plain, connection, 405, "method not allowed" end
  return sessions[what](connection, request, id)
end

-- --- all

local function carry_out(connection, request, may)
  state:expire()
  local path = request.path:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
  for name in pairs(request.options) do
    if not OPTIONS[name] then return plain, connection, 400, "the stand-in does not know the option " .. name end
  end
  if request.options.dc and request.options.dc ~= DATACENTER then return plain, connection, 500, "No path to datacenter" end
  if path == "/v1/status/leader" then return respond, connection, 200, has_leader and '"127.0.0.1:8300"' or '""' end
  if path == "/v1/agent/self" then
    if not may["agent:read"] then return plain, connection, 403, denial("agent:read", "spec") end
    return respond, connection, 200, '{"Config":{"Version":"1.22.0","NodeName":"spec"}}'
  end
  if not has_leader and not request.options.stale then return plain, connection, 500, "No cluster leader" end
  local key = path:match "^/v1/kv/(.*)$"
  if key then return of_key(connection, request, key, may) end
  if path == "/v1/txn" and request.method == "PUT" then return of_transaction(connection, request, may) end
  local what, id = path:match "^/v1/session/(%l+)/?(.*)$"
  if sessions[what] then return of_session(connection, request, what, id, may) end
  return plain, connection, 404, "404 page not found"
end

local function set(found)
  trick, too_low = found, found.index == 0
  has_leader = found.leader ~= false
  state.multiplier = found.multiplier or 2
  stale = found.stale and json.object(json.encode(state.kept.keys)) or nil
  if found.anew then state:lead_anew() end
  for secret, rights in pairs(found.tokens or {}) do tokens[secret] = rights and set_of(rights) or nil end
  if found.anonymous then anonymous = set_of(found.anonymous) end
end

core.detach(function()
  while true do
    crown.sleep(0.05)
    state:expire()
  end
end)

web.serve(tonumber(arg[1]) or 0, arg[3], set, function(connection, request)
  local may = rights_of(request)
  if not may then return plain(connection, 403, "ACL not found") end
  return web.carry_out(trick, request, function() return plain(connection, trick.status, trick.message or "rpc error") end,
    function() return carry_out(connection, request, may) end)
end, function() return trick.connections or 200 end)
