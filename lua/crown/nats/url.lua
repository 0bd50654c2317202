--- NATS URLs: `nats://user:password@host:port,host:port/BUCKET`, `tls://` for TLS; `nats://token@host` with a token.
-- @module crown.nats.url

local url = require "crown.text.url"

local nats_url = {}

local PORT = 4222

--- Takes a URL apart.
-- @string text
-- @treturn table `{ hosts = { { host, port }… }, bucket, user, password, token, tls, ca, cert, key, nkey, credentials }`, or
-- nil and a message without any of its parts
function nats_url.parse(text)
  local scheme, rest = text:match "^(%l+)://(.*)$"
  if scheme ~= "nats" and scheme ~= "tls" then return nil, "a NATS URL reads nats://user:password@host:port/BUCKET" end
  local parsed = { tls = scheme == "tls" }
  local front, query = rest:match "^([^?]*)%??(.*)$"
  url.read_query(query, parsed)
  local login, after = front:match "^(.*)@(.*)$"
  if login then
    local user, password = login:match "^([^:]*):(.*)$"
    if user then parsed.user, parsed.password = url.decode(user), url.decode(password) else parsed.token = url.decode(login) end
  end
  local hosts, bucket = (after or front):match "^([^/]*)/?(.*)$"
  parsed.bucket = bucket ~= "" and url.decode(bucket) or nil
  parsed.hosts = url.hosts(hosts, PORT)
  if not parsed.hosts then return nil, "the NATS URL names a host that is none" end
  return parsed
end

return nats_url
