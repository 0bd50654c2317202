--- A program: a stand-in for S3 that knows one bucket, "spec". stand_in.lua PORT FILE [FOLDER], where FILE keeps the objects, and FOLDER
-- has the certificate of a server that speaks TLS (support.authority).
--
-- It is strict about signatures (signed.lua) and conditions (objects.lua), and answers with AWS's codes. POST /trick sets what
-- happens to the requests that follow: `{ status =, code =, count =, method =, slow = seconds, late = seconds (done at once, answered
-- so much later), unsaid = true (done, and the connection is closed), login = { id, … }, ignores = true, versioning = }`.
-- GET /counts tells how many requests of each kind came. It is also the service of an instance and of a container.
local crown = require "crown"
local json = require "crown.text.json"
local Objects = require "support.s3.objects"
local signed = require "support.s3.signed"

local REGION = "eu-central-1"
local store = Objects.open(arg[2])
local trick, counts, versioning = {}, {}, nil

-- What each may do.
local ALL = { GetObject = true, PutObject = true, ListBucket = true, DeleteObject = true, GetBucketVersioning = true }
local logins = {
  AKIAALL = { secret = "all/+secret", may = ALL },
  AKIATOKEN = { secret = "token-secret", token = "session/token+", may = ALL },
  AKIANEXT = { secret = "next-secret", token = "next-token", may = ALL },
  AKIAREAD = { secret = "read", may = { GetObject = true, ListBucket = true } },
  AKIANOLIST = { secret = "nolist", may = { GetObject = true, PutObject = true } },
  AKIANOGET = { secret = "noget", may = { PutObject = true, ListBucket = true } },
}
local issued = "AKIATOKEN" -- what the services hand out

local REASONS = { [200] = "OK", [400] = "Bad Request", [403] = "Forbidden", [404] = "Not Found", [409] = "Conflict",
  [412] = "Precondition Failed", [500] = "Internal Server Error", [501] = "Not Implemented", [503] = "Slow Down" }

local function read_request(connection)
  local line = connection:read("*l", 3600)
  local method, target = (line or ""):match "^(%u+) (%S+) HTTP/1%.[01]\r$"
  if not method then return nil end
  local request = { method = method, headers = {}, body = "" }
  request.path, request.query = target:match "^([^?]*)%??(.*)$"
  for header in function() return connection:read "*l" end do
    if header == "\r" then break end
    local name, value = header:match "^([^:]+):%s*(.-)%s*\r$"
    if name then request.headers[name:lower()] = value end
  end
  local length = tonumber(request.headers["content-length"] or 0)
  if length > 0 then request.body = connection:read(length) or "" end
  request.options = {}
  for pair in request.query:gmatch "[^&]+" do
    local key, value = pair:match "^([^=]*)=?(.*)$"
    request.options[key] = value:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
  end
  return request
end

local function date(seconds) return os.date("!%a, %d %b %Y %H:%M:%S GMT", seconds) end

local function respond(connection, status, body, headers)
  local lines = { ("HTTP/1.1 %d %s"):format(status, REASONS[status] or "?"), "Server: stand-in", "Date: " .. date(os.time()),
    ("Content-Length: %d"):format(#body) }
  for name, value in pairs(headers or {}) do lines[#lines + 1] = ("%s: %s"):format(name, value) end
  return connection:write(table.concat(lines, "\r\n") .. "\r\n\r\n" .. body)
end

local function escaped(text) return (text:gsub("&", "&amp;"):gsub("<", "&lt;"):gsub('"', "&quot;")) end

local function refuse(connection, status, code, message)
  return respond(connection, status, ('<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>%s</Code><Message>%s</Message>%s</Error>')
    :format(code, escaped(message), code == "AuthorizationHeaderMalformed" and "<Region>" .. REGION .. "</Region>" or ""),
    { ["Content-Type"] = "application/xml" })
end

local function list(connection, options)
  local keys, is_more = store:list(options.prefix or "", options["continuation-token"] or "",
    math.min(tonumber(options["max-keys"]) or 1000, trick.page or 1000))
  local parts = { '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult><Name>spec</Name>',
    ("<IsTruncated>%s</IsTruncated>"):format(tostring(is_more)) }
  if is_more then parts[3] = ("<NextContinuationToken>%s</NextContinuationToken>"):format(escaped(keys[#keys])) end
  for _, key in ipairs(keys) do
    parts[#parts + 1] = ("<Contents><Key>%s</Key><ETag>%s</ETag></Contents>"):format(escaped(key), escaped(store.all[key].etag))
  end
  return respond(connection, 200, table.concat(parts) .. "</ListBucketResult>")
end

local ACTIONS = { GET = "GetObject", PUT = "PutObject", DELETE = "DeleteObject" }

local function action_of(request, key)
  if key ~= "" then return ACTIONS[request.method] end
  return request.options.versioning and "GetBucketVersioning" or "ListBucket"
end

-- Carries it out. @return a function that answers
local function carry_out(connection, request, key)
  if key == "" and request.options.versioning then
    local status = versioning and ("<Status>%s</Status>"):format(versioning) or ""
    return respond, connection, 200, ("<VersioningConfiguration>%s</VersioningConfiguration>"):format(status)
  end
  if key == "" then return list, connection, request.options end
  if request.method == "DELETE" then
    store:delete(key)
    return respond, connection, 200, ""
  end
  local found, refused
  if request.method == "PUT" then
    found, refused = store:put(key, request.body, request.headers)
  else
    found, refused = store:get(key)
  end
  if not found then return refuse, connection, unpack(refused) end
  return respond, connection, 200, request.method == "GET" and found.body or "", { ETag = found.etag,
    ["Last-Modified"] = date(found.written) }
end

local function answer(connection, request)
  local id, status, code, message = signed.check(request, logins, REGION)
  if not id then return refuse(connection, status, code, message) end
  local bucket, key = request.path:match "^/([^/]*)/?(.*)$"
  if bucket ~= "spec" then return refuse(connection, 404, "NoSuchBucket", "The specified bucket does not exist") end
  key = key:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
  local action, may = action_of(request, key), logins[id].may
  if not action then return refuse(connection, 501, "NotImplemented", "no such method here") end
  local is_hidden = action == "GetObject" and not store.all[key] and not may.ListBucket
  if not may[action] or is_hidden then
    return refuse(connection, 403, "AccessDenied", ("User: arn:aws:iam::1:user/spec is not authorized to perform: s3:%s on "
      .. "resource: \"arn:aws:s3:::spec/%s\" because no identity-based policy allows the action"):format(
      is_hidden and "ListBucket" or action, key))
  end
  if trick.count and trick.count > 0 and (not trick.method or trick.method == request.method) then
    trick.count = trick.count - 1
    if trick.slow then crown.sleep(trick.slow) end
    if trick.status then return refuse(connection, trick.status, trick.code, trick.message or "Please try again.") end
    local after = { carry_out(connection, request, key) }
    if trick.unsaid then return false end
    if trick.late then crown.sleep(trick.late) end
    return after[1](unpack(after, 2, table.maxn(after)))
  end
  local act = { carry_out(connection, request, key) }
  return act[1](unpack(act, 2, table.maxn(act)))
end

local function play_trick(connection, request)
  trick = json.object(request.body) or {}
  store.ignores = trick.ignores
  versioning = trick.versioning or versioning
  issued = trick.issued or issued
  for id, one in pairs(trick.logins or {}) do
    for name, value in pairs(one) do logins[id][name] = value end
  end
  return respond(connection, 200, "{}")
end

-- --- the services that hand out logins

local function keys_of(id)
  return json.encode { AccessKeyId = id, SecretAccessKey = logins[id].secret, Token = logins[id].token,
    Expiration = os.date("!%Y-%m-%dT%H:%M:%SZ", os.time() + 3600) }
end

local function serve(connection, request)
  local path, headers = request.path, request.headers
  if path == "/latest/api/token" and request.method == "PUT" and headers["x-aws-ec2-metadata-token-ttl-seconds"] then
    return respond(connection, 200, "pass")
  end
  if path == "/container" and headers.authorization == "pass" then return respond(connection, 200, keys_of(issued)) end
  if headers["x-aws-ec2-metadata-token"] ~= "pass" then return respond(connection, 403, "") end
  if path:find "/security%-credentials/$" then return respond(connection, 200, "role-of-spec") end
  return respond(connection, 200, keys_of(issued))
end

local tls = arg[3] and { tls = { cert = arg[3] .. "/s.crt", key = arg[3] .. "/s.key" } } or nil
local listener = assert(crown.tcp.listen("127.0.0.1", tonumber(arg[1]) or 0, function(connection)
  for request in read_request, connection do
    local written
    if request.path == "/trick" then
      written = play_trick(connection, request)
    elseif request.path == "/counts" then
      written = respond(connection, 200, json.encode(counts))
    elseif request.path:find "^/latest/" or request.path == "/container" then
      written = serve(connection, request)
    else
      counts[request.method] = (counts[request.method] or 0) + 1
      written = answer(connection, request)
    end
    if not written then break end
  end
  connection:close()
end, tls))
print("stand-in on port " .. listener:port())
