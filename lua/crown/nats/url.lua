--- NATS URLs: `nats://user:password@host:port,host:port/BUCKET`, `tls://` for TLS; `nats://token@host` with a token.
-- @module crown.nats.url

local nats_url = {}

local PORT = 4222

local function decode(text)
  return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

--- Takes a URL apart.
-- @string text
-- @treturn table `{ hosts = { { host, port }… }, bucket, user, password, token, tls, ca, cert, key, nkey, credentials }`, or
-- nil and a message without any of its parts
function nats_url.parse(text)
  local scheme, rest = text:match "^(%l+)://(.*)$"
  if scheme ~= "nats" and scheme ~= "tls" then return nil, "a NATS URL reads nats://user:password@host:port/BUCKET" end
  local parsed = { tls = scheme == "tls", hosts = {} }
  local front, query = rest:match "^([^?]*)%??(.*)$"
  for key, value in query:gmatch "([^&=]+)=([^&]*)" do parsed[decode(key)] = decode(value) end
  local login, after = front:match "^(.*)@(.*)$"
  if login then
    local user, password = login:match "^([^:]*):(.*)$"
    if user then parsed.user, parsed.password = decode(user), decode(password) else parsed.token = decode(login) end
  end
  local hosts, bucket = (after or front):match "^([^/]*)/?(.*)$"
  parsed.bucket = bucket ~= "" and decode(bucket) or nil
  for one in (hosts == "" and "127.0.0.1" or hosts):gmatch "[^,]+" do
    local host, port = one:match "^%[([%x:.]+)%]:?(%d*)$"
    if not host then host, port = one:match "^([^:]+):?(%d*)$" end
    if not host then return nil, "the NATS URL names a host that is none" end
    parsed.hosts[#parsed.hosts + 1] = { host = host, port = tonumber(port) or PORT }
  end
  return parsed
end

return nats_url
