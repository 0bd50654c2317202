--- Redis URLs: `redis://user:password@host:port/db`, `rediss://` for TLS, `redis+unix:///path?db=1`,
-- `redis+sentinel://host:port,host:port/MASTER`, `redis+cluster://host:port,host:port` and `rediss+cluster://`.
-- @internal crown.redis.url

local explain = require "crown.link.explain"
local url = require "crown.text.url"

local redis_url = {}

local NO_NUMBER = "the database in the Redis URL is no number"
local PORT, SENTINEL_PORT = 6379, 26379
local SCHEMES = { redis = true, rediss = true, ["redis+unix"] = true, ["redis+sentinel"] = true, ["redis+cluster"] = true,
  ["rediss+cluster"] = true }

--- Takes a URL apart.
-- @string text
-- @treturn table `{ hosts = { { host, port }… }, db, user, password, tls, cluster, path, master, ca, cert, key, … }`, or nil
-- and a message without any of its parts
function redis_url.parse(text)
  local parts, problem = url.split(text)
  local scheme = parts and parts.scheme
  if not (scheme and SCHEMES[scheme]) then return nil, problem or "a Redis URL is written redis://host:port/db" end
  local parsed = { tls = scheme:find "^rediss" ~= nil, cluster = scheme:find "+cluster" ~= nil }
  url.read_query(parts.query, parsed)
  if parsed.db and not parsed.db:find "^%d+$" then return nil, NO_NUMBER end
  parsed.db = tonumber(parsed.db)
  parsed.user, parsed.password = parts.user, parts.password
  if not parts.password then parsed.user, parsed.password = nil, parts.user end -- redis://password@host
  if parsed.user == "" then parsed.user = nil end
  if scheme == "redis+unix" then
    parsed.path = url.decode(parts.hosts .. "/" .. parts.path)
    return parsed
  end
  local tail = parts.path
  parsed.hosts = url.hosts(parts.hosts, scheme == "redis+sentinel" and SENTINEL_PORT or PORT)
  if not parsed.hosts then return nil, "the Redis URL names no valid host or port" end
  if scheme == "redis+sentinel" then
    parsed.master, tail = tail:match "^([^/]+)/?(.*)$"
    if not parsed.master then return nil, "name the master: redis+sentinel://host:port,host:port/MASTER" end
  elseif #parsed.hosts > 1 and not parsed.cluster then
    return nil, "one host in a redis:// URL; several are for redis+sentinel://, redis+cluster:// or redis+majority://"
  end
  if tail and tail ~= "" then
    if parsed.db and parsed.db ~= tonumber(tail) then return nil, "the Redis URL names two databases" end
    parsed.db = tonumber(tail)
  end
  if parsed.db and (parsed.db < 0 or parsed.db % 1 ~= 0) or (tail or "") ~= "" and not parsed.db then
    return nil, NO_NUMBER
  end
  return parsed
end

--- How messages name the server: without user and password.
-- @tparam table parsed
-- @treturn string
function redis_url.label(parsed)
  if parsed.path then return "unix:" .. parsed.path end
  if parsed.master then return parsed.master end
  return explain.place(parsed.hosts[1].host, parsed.hosts[1].port)
end

return redis_url
