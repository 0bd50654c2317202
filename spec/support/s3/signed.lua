--- Checks a request's signature as AWS documents it, apart from the module that makes ours: what is signed is taken from the request
-- as it came, and everything that has to be signed must be.
local calendar = require "crown.text.calendar"
local crypto = require "crown.core.crypto"
local hex = require "crown.text.hex"

local signed = {}

local SKEW = 900 -- seconds
local PATTERN = "^AWS4%-HMAC%-SHA256 Credential=([^/]+)/(%d+)/([^/]+)/(%l[%l%d]*)/aws4_request,%s*SignedHeaders=([^,]+),%s*Signature=(%x+)$"

local function stamp_seconds(stamp)
  local y, m, d, hour, minute, second = (stamp or ""):match "^(%d%d%d%d)(%d%d)(%d%d)T(%d%d)(%d%d)(%d%d)Z$"
  return y and calendar.seconds(("%s-%s-%sT%s:%s:%sZ"):format(y, m, d, hour, minute, second))
end

local function decoded(text)
  return (text:gsub("%%(%x%x)", function(code) return string.char(tonumber(code, 16)) end))
end

local function encoded(text)
  return (text:gsub("[^%w._~-]", function(character) return ("%%%02X"):format(character:byte()) end))
end

-- Decoded and encoded anew: a query that was sent in another form than it was signed in is a wrong one.
local function canonical_query(query)
  local parts = {}
  for pair in query:gmatch "[^&]+" do
    local name, value = pair:match "^([^=]*)=?(.*)$"
    parts[#parts + 1] = encoded(decoded(name)) .. "=" .. encoded(decoded(value))
  end
  table.sort(parts)
  return table.concat(parts, "&")
end

local function canonical_path(path)
  return (path:gsub("[^/]+", function(part) return encoded(decoded(part)) end))
end

-- @return lines; or nil: a header that has to be signed is not
local function canonical_headers(headers, names)
  local is_signed, lines = {}, {}
  for name in names:gmatch "[^;]+" do
    if not headers[name] then return nil end
    is_signed[name], lines[#lines + 1] = true, ("%s:%s\n"):format(name, headers[name]:gsub("%s+", " "))
  end
  for name in pairs(headers) do
    local is_needed = name == "host" or name:find "^x%-amz%-" or name:find "^if%-"
    if is_needed and not is_signed[name] then return nil end
  end
  return table.concat(lines)
end

--- Checks one.
-- @tparam table request `method`, `path`, `query` as they came, `headers` by lower-case name, `body`
-- @tparam table logins by their ids, each `{ secret =, token = }`
-- @string region of the bucket
-- @string[opt] service "s3" where none is named
-- @treturn string the login's id; or nil, the status, S3's code and its message
function signed.check(request, logins, region, service)
  service = service or "s3"
  local headers = request.headers
  local id, day, theirs, scope, names, mac = (headers.authorization or ""):match(PATTERN)
  if not id then return nil, 403, "AccessDenied", "Access Denied" end
  local one = logins[id]
  if not one then
    return nil, 403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."
  end
  if headers["x-amz-security-token"] ~= one.token then
    return nil, 403, "InvalidToken", "The provided token is malformed or otherwise invalid."
  end
  if one.over then return nil, 400, "ExpiredToken", "The provided token has expired." end
  if scope ~= service then
    return nil, 403, "SignatureDoesNotMatch", ("Credential should be scoped to correct service: '%s'."):format(service)
  end
  if theirs ~= region then
    return nil, 400, "AuthorizationHeaderMalformed",
      ("The authorization header is malformed; the region '%s' is wrong; expecting '%s'"):format(theirs, region)
  end
  local stamp = headers["x-amz-date"]
  local time = stamp_seconds(stamp)
  if not time or stamp:sub(1, 8) ~= day or math.abs(os.time() - time) > SKEW then
    return nil, 403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."
  end
  local hash = headers["x-amz-content-sha256"]
  if hash ~= hex(crypto.sha256(request.body or "")) then
    return nil, 400, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed."
  end
  local lines = canonical_headers(headers, names)
  local canonical = table.concat({ request.method, canonical_path(request.path), canonical_query(request.query), lines or "", names,
    hash }, "\n")
  local key = crypto.hmac_sha256("AWS4" .. one.secret, day)
  for _, word in ipairs { theirs, service, "aws4_request" } do key = crypto.hmac_sha256(key, word) end
  local text = table.concat({ "AWS4-HMAC-SHA256", stamp, ("%s/%s/%s/aws4_request"):format(day, theirs, service),
    hex(crypto.sha256(canonical)) }, "\n")
  if not lines or hex(crypto.hmac_sha256(key, text)) ~= mac then
    return nil, 403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided."
  end
  return id
end

return signed
