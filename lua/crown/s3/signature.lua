--- Signs a request to S3, or to another service of AWS: Signature Version 4, as its references have it. Pure: it knows no clock.
-- libcurl's own signature is not used: it leaves out the hash of the body and the session's token, and fails where a header is
-- taken away, or where a path or a query has a `%`.
-- @internal crown.s3.signature

local crypto = require "crown.core.crypto"
local hex = require "crown.text.hex"
local url = require "crown.text.url"

local signature = {}

local ALGORITHM, S3 = "AWS4-HMAC-SHA256", "s3"

--- A query as it is sent and signed.
-- @tparam[opt] table options by name; an empty text for one without a value
-- @treturn string without the "?"
function signature.query(options)
  local pairs_of = {}
  for name, value in pairs(options or {}) do pairs_of[#pairs_of + 1] = url.encode(name) .. "=" .. url.encode(value) end
  table.sort(pairs_of)
  return table.concat(pairs_of, "&")
end

-- All headers are signed, so that nobody on the way can take a condition out.
local function canonical_headers(headers)
  local names, lines, values = {}, {}, {}
  for name, value in pairs(headers) do
    names[#names + 1] = name:lower()
    values[name:lower()] = value:match "^%s*(.-)%s*$":gsub("%s+", " ")
  end
  table.sort(names)
  for i, name in ipairs(names) do lines[i] = ("%s:%s\n"):format(name, values[name]) end
  return table.concat(lines), table.concat(names, ";")
end

local function key_of(secret, day, region, service)
  local key = crypto.hmac_sha256("AWS4" .. secret, day)
  for _, word in ipairs { region, service, "aws4_request" } do key = crypto.hmac_sha256(key, word) end
  return key
end

--- Signs.
-- @tparam table request `method`, `path` (encoded, with the first "/"), `query` (of signature.query), `headers` by name, with
-- Host, `body`
-- @tparam table login `id`, `secret`, perhaps `token`
-- @string region
-- @number time in seconds since 1970
-- @string[opt] service "s3" where none is named
-- @treturn table the headers to send: those of the request, and Authorization and what belongs to it
function signature.headers(request, login, region, time, service)
  service = service or S3
  local stamp = os.date("!%Y%m%dT%H%M%SZ", time)
  local day, hash = stamp:sub(1, 8), hex(crypto.sha256(request.body or ""))
  local headers = { ["x-amz-date"] = stamp, ["x-amz-content-sha256"] = hash, ["x-amz-security-token"] = login.token }
  for name, value in pairs(request.headers) do headers[name] = value end
  local lines, names = canonical_headers(headers)
  local canonical = table.concat({ request.method, request.path, request.query or "", lines, names, hash }, "\n")
  local scope = ("%s/%s/%s/aws4_request"):format(day, region, service)
  local to_sign = table.concat({ ALGORITHM, stamp, scope, hex(crypto.sha256(canonical)) }, "\n")
  headers.Authorization = ("%s Credential=%s/%s,SignedHeaders=%s,Signature=%s"):format(ALGORITHM, login.id, scope, names,
    hex(crypto.hmac_sha256(key_of(login.secret, day, region, service), to_sign)))
  return headers
end

return signature
