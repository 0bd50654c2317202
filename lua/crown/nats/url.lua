--- NATS URLs: `nats://user:password@host:port,host:port/BUCKET`, `tls://` for TLS; `nats://token@host` with a token.
-- @internal crown.nats.url

local url = require "crown.text.url"

local nats_url = {}

local PORT = 4222

--- Reads servers with commas between them, as a URL or a server itself names them.
-- @string text
-- @treturn table `{ { host, port }… }`; nil where one of them is none
function nats_url.hosts(text)
  return url.hosts(text, PORT)
end

--- Takes a URL apart.
-- @string text
-- @treturn table `{ hosts = { { host, port }… }, bucket, user, password, token, tls, ca, cert, key, nkey, credentials }`, or
-- nil and a message without any of its parts
function nats_url.parse(text)
  local parts, problem = url.split(text)
  local tls = parts and parts.scheme == "tls"
  if not tls and not (parts and parts.scheme == "nats") then
    return nil, problem or "a NATS URL is written nats://host:port/BUCKET"
  end
  local parsed = { tls = tls }
  url.read_query(parts.query, parsed)
  if parts.password then parsed.user, parsed.password = parts.user, parts.password else parsed.token = parts.user end
  parsed.bucket = parts.path ~= "" and url.decode(parts.path) or nil
  parsed.hosts = nats_url.hosts(parts.hosts)
  if not parsed.hosts then return nil, "the NATS URL names no valid host or port" end
  return parsed
end

return nats_url
