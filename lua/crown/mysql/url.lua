--- MySQL URLs: `mysql://user:password@host:port,host:port/database`, `mysqls://` for TLS, `?socket=/path` for a UNIX socket.
-- @internal crown.mysql.url

local explain = require "crown.link.explain"
local url = require "crown.text.url"

local mysql_url = {}

local PORT = 3306

--- Takes a URL apart.
-- @string text
-- @treturn table `{ hosts = { { host, port }… }, database, user, password, tls, socket, ca, cert, key, server_name, insecure }`;
-- or nil and a message without any of its parts
function mysql_url.parse(text)
  local parts, problem = url.split(text)
  local tls = parts and parts.scheme == "mysqls"
  if not tls and not (parts and parts.scheme == "mysql") then
    return nil, problem or "a MySQL URL is written mysql://user@host:port/database"
  end
  local parsed = { tls = tls }
  url.read_query(parts.query, parsed)
  parsed.user, parsed.password = parts.user or "", parts.password or ""
  parsed.database = url.decode(parts.path)
  if parsed.database == "" then return nil, "name the database in the URL: mysql://user@host:port/database" end
  if not parsed.database:find "^[%w_$-]+$" then
    return nil, "the database in the MySQL URL may have letters, digits, '_', '-' and '$' in its name"
  end
  if parsed.socket then
    if parsed.socket == "" then return nil, "the socket in the MySQL URL is empty: socket=/path" end
    if parts.hosts ~= "" then return nil, "the MySQL URL names a host and a socket: leave one out" end
    parsed.hosts = { { host = "unix:" .. parsed.socket, port = 0 } }
    return parsed
  end
  parsed.hosts = url.hosts(parts.hosts, PORT)
  if not parsed.hosts then return nil, "the MySQL URL names no valid host or port" end
  return parsed
end

--- How messages name a server: without user and password.
-- @tparam table place `{ host, port }`
-- @treturn string
function mysql_url.label(place)
  return explain.place(place.host, place.port)
end

return mysql_url
