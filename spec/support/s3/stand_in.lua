--- A program: a stand-in for S3 that knows one bucket, "spec". stand_in.lua PORT FILE [FOLDER], where FILE keeps the objects, and FOLDER
-- has the certificate of a server that speaks TLS (support.authority).
--
-- It is strict about signatures (signed.lua) and conditions (objects.lua), and answers with AWS's codes. POST /trick sets what
-- happens to the requests that follow: `{ status =, code = or page =, count =, method =, slow = seconds, late = seconds (done at once,
-- answered so much later), unsaid = true (done, and the connection is closed), login = { id, … }, ignores = true, versioning = }`.
-- GET /counts tells how many requests of each kind came. It is also the service of an instance and of a container.
local json = require "crown.text.json"
local Objects = require "support.s3.objects"
local signed = require "support.s3.signed"
local web = require "support.web"

local REGION = "eu-central-1"
local store = Objects.open(arg[2])
local trick, versioning = {}, nil

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

local respond, date = web.respond, web.date

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
  return web.carry_out(trick, request, function()
    if trick.page then return respond(connection, trick.status, trick.page, { ETag = '"page"' }) end
    return refuse(connection, trick.status, trick.code, trick.message or "Please try again.")
  end, function() return carry_out(connection, request, key) end)
end

local function play_trick(found)
  trick = found
  store.ignores = trick.ignores
  versioning = trick.versioning or versioning
  issued = trick.issued or issued
  for id, one in pairs(trick.logins or {}) do
    for name, value in pairs(one) do logins[id][name] = value end
  end
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

web.serve(tonumber(arg[1]) or 0, arg[3], play_trick, function(connection, request)
  local is_service = request.path:find "^/latest/" or request.path == "/container"
  return (is_service and serve or answer)(connection, request)
end)
