--- A program: a small API server that knows Leases and nothing else. facade.lua PORT FILE [FOLDER], where FILE keeps what it has, and
-- FOLDER has the certificate of a server that speaks TLS (support.authority).
--
-- Logins: bearer tokens `all`, `none` (no rights), `plain` (get, create, update) and `named` (what names a Lease is for `only`).
-- POST /trick sets what happens to the requests that follow: `{ status =, retry_after =, count =, slow = seconds, token = }`; `token`
-- is what `all` is called from now on; `compact = true` forgets the events; `close = true` ends all watches.
local crown = require "crown"
local json = require "crown.text.json"
local Leases = require "support.kubernetes.leases"

local store = Leases.open(arg[2])
local trick, streams, all = {}, {}, "all"

local NAMESPACES = { spec = true, default = true }
local USERS = {
  none = { name = "nobody", may = function() return false end },
  plain = { name = "plain", may = function(verb) return verb == "get" or verb == "create" or verb == "update" end },
  named = { name = "named", may = function(verb, name) return verb == "create" or name == "only" end },
}
local ADMIN = { name = "admin", may = function() return true end }
local REASONS = { [200] = "OK", [201] = "Created", [400] = "Bad Request", [401] = "Unauthorized", [403] = "Forbidden",
  [404] = "Not Found", [409] = "Conflict", [410] = "Gone", [422] = "Unprocessable Entity", [429] = "Too Many Requests",
  [503] = "Service Unavailable" }

local function read_request(connection)
  local line = connection:read("*l", 3600)
  local method, target = (line or ""):match "^(%u+) (%S+) HTTP/1%.[01]\r$"
  if not method then return nil end
  local request, length = { method = method }, 0
  request.path, request.query = target:match "^([^?]*)%??(.*)$"
  for header in function() return connection:read "*l" end do
    if header == "\r" then break end
    local name, value = header:match "^([^:]+):%s*(.-)\r$"
    if name and name:lower() == "content-length" then length = tonumber(value) end
    if name and name:lower() == "authorization" then request.token = value:match "^Bearer (.*)$" end
  end
  request.body = length > 0 and json.object(connection:read(length) or "") or nil
  request.options = {}
  for key, value in request.query:gmatch "([^&=]+)=([^&]*)" do
    request.options[key] = value:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
  end
  return request
end

local function respond(connection, code, object, headers)
  local text = json.encode(object, "items")
  return connection:write(("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s"):format(code,
    REASONS[code] or "?", #text, headers or "", text))
end

local function chunk(connection, event)
  local text = json.encode(event) .. "\n"
  return connection:write(("%x\r\n%s\r\n"):format(#text, text))
end

local function event_of(kind, object) return { type = kind, object = object } end

-- Holds the connection until the time is over.
local function watch(connection, request, namespace)
  local options, queue = request.options, {}
  local name = (options.fieldSelector or ""):match "^metadata%.name=(.*)$"
  connection:write "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
  local first = store:since(namespace, name, options.resourceVersion)
  if not first then
    local _, gone = Leases.status(410, "Expired", "too old resource version")
    chunk(connection, event_of("ERROR", gone))
    return connection:write "0\r\n\r\n"
  end
  for _, event in ipairs(first) do queue[#queue + 1] = event end
  store:watch(connection, namespace, name, function(event) queue[#queue + 1] = event end)
  streams[connection] = true
  local over, marked = crown.now() + (tonumber(options.timeoutSeconds) or 60), store.revision
  while streams[connection] and crown.now() < over do
    local event = table.remove(queue, 1)
    if not event and options.allowWatchBookmarks == "true" and store.revision > marked + 5 then
      event = { type = "BOOKMARK", object = { kind = "Lease", apiVersion = "coordination.k8s.io/v1",
        metadata = { resourceVersion = ("%d"):format(store.revision) } } }
    end
    marked = event and store.revision or marked
    if event and not chunk(connection, event_of(event.type, event.object)) then break end
    if not event then crown.sleep(0.005) end
  end
  streams[connection] = nil
  store:watch(connection)
  return connection:write "0\r\n\r\n"
end

local function forbidden(user, verb, namespace, name)
  return Leases.status(403, "Forbidden", ('leases.coordination.k8s.io %sis forbidden: User "%s" cannot %s resource "leases" in API '
    .. 'group "coordination.k8s.io" in the namespace "%s"'):format(name and ('"%s" '):format(name) or "", user.name, verb, namespace))
end

local function review(user, body)
  local asked = body and body.spec and body.spec.resourceAttributes or {}
  body.status = { allowed = asked.group == "coordination.k8s.io" and asked.resource == "leases" and user.may(asked.verb, asked.name) }
  return 201, body
end

local verbs = {}
function verbs.get(_, namespace, name) return store:get(namespace, name) end
function verbs.create(body, namespace)
  if not NAMESPACES[namespace] then return Leases.status(404, "NotFound", ('namespaces "%s" not found'):format(namespace)) end
  return store:create(namespace, body)
end
function verbs.update(body, namespace, name) return store:update(namespace, name, body) end
function verbs.delete(_, namespace, name) return store:delete(namespace, name) end
function verbs.list(_, namespace, _, options)
  return store:list(namespace, tonumber(options.limit) or 500, options.continue)
end

local VERBS = { GET = "get", POST = "create", PUT = "update", DELETE = "delete" }

local function answer(connection, request)
  local user = request.token == all and ADMIN or request.token ~= "all" and USERS[request.token]
  if not user then return respond(connection, Leases.status(401, "Unauthorized", "Unauthorized")) end
  if request.path == "/version" then return respond(connection, 200, { gitVersion = "v1.20.2-facade" }) end
  if request.path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" then
    return respond(connection, review(user, request.body))
  end
  local namespace, name = request.path:match "^/apis/coordination%.k8s%.io/v1/namespaces/([^/]+)/leases/?([^/]*)$"
  if not namespace then return respond(connection, Leases.status(404, "NotFound", "the server could not find the requested resource")) end
  name = name ~= "" and name or nil
  local watches = request.options.watch == "1"
  local verb = watches and "watch" or request.method == "GET" and not name and "list" or VERBS[request.method]
  local about = name or (request.options.fieldSelector or ""):match "^metadata%.name=(.*)$"
  if not user.may(verb, about) then return respond(connection, forbidden(user, verb, namespace, name)) end
  if watches then return watch(connection, request, namespace) end
  return respond(connection, verbs[verb](request.body, namespace, name, request.options))
end

local function play_trick(connection, request)
  trick = request.body or {}
  all = trick.token or all
  if trick.compact then store:compact() end
  if trick.close then streams = {} end
  return respond(connection, 200, {})
end

local function is_tricked(connection)
  if (trick.count or 0) <= 0 then return false end
  trick.count = trick.count - 1
  if trick.slow then crown.sleep(trick.slow) end
  if not trick.status then return false end
  local headers = trick.retry_after and ("Retry-After: %d\r\n"):format(trick.retry_after)
  local code, object = Leases.status(trick.status, "TooManyRequests", "too many requests, please try again later")
  respond(connection, code, object, headers)
  return true
end

local tls = arg[3] and { tls = { cert = arg[3] .. "/s.crt", key = arg[3] .. "/s.key" } } or nil
local listener = assert(crown.tcp.listen("127.0.0.1", tonumber(arg[1]) or 0, function(connection)
  for request in read_request, connection do
    local written
    if request.path == "/trick" then
      written = play_trick(connection, request)
    else
      written = is_tricked(connection) or answer(connection, request)
    end
    if not written then break end
  end
  streams[connection] = nil
  store:watch(connection)
  connection:close()
end, tls))
print("facade on port " .. listener:port())
