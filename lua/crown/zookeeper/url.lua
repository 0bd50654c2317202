--- ZooKeeper URLs: `zookeeper://user:password@host:port,host:port/PATH`, `zookeepers://` for TLS.
-- @internal crown.zookeeper.url

local explain = require "crown.link.explain"
local url = require "crown.text.url"

local zookeeper_url = {}

local PORT, TLS_PORT = 2181, 2281

local function path_problem(path)
  if path == "" then return nil end
  if path:find "%c" or path:find "//" or path:sub(-1) == "/" then return "the path in the ZooKeeper URL is not valid" end
  for part in path:gmatch "[^/]+" do
    if part == "." or part == ".." or part:sub(1, 1) == "@" then
      return ("the path in the ZooKeeper URL has a part '%s', which is not possible"):format(part)
    end
  end
  if path == "zookeeper" or path:sub(1, 10) == "zookeeper/" then return "/zookeeper is the server's own: name another path" end
end

--- Takes a URL apart.
-- @string text
-- @treturn table `{ hosts = { { host, port }… }, path = "" or "/…", user, password, tls, ca, cert, key, server_name, insecure }`;
-- or nil and a message without any of its parts
function zookeeper_url.parse(text)
  local parts, problem = url.split(text)
  local tls = parts and parts.scheme == "zookeepers"
  if not tls and not (parts and parts.scheme == "zookeeper") then
    return nil, problem or "a ZooKeeper URL is written zookeeper://host:port,host:port/path"
  end
  local parsed = { tls = tls }
  url.read_query(parts.query, parsed)
  parsed.user, parsed.password = parts.user, parts.password
  if parsed.user and (parsed.user == "" or not parsed.password) then
    return nil, "the ZooKeeper URL needs both user and password for a login: zookeeper://user:password@host"
  end
  local path = url.decode(parts.path)
  problem = path_problem(path)
  if problem then return nil, problem end
  parsed.path = path ~= "" and "/" .. path or ""
  parsed.hosts = url.hosts(parts.hosts, tls and TLS_PORT or PORT)
  if not parsed.hosts then return nil, "the ZooKeeper URL names no valid host or port" end
  return parsed
end

--- How messages name all servers: without user and password.
-- @tparam table parsed
-- @treturn string
function zookeeper_url.label(parsed)
  local names = {}
  for i, place in ipairs(parsed.hosts) do names[i] = explain.place(place.host, place.port) end
  return table.concat(names, ",")
end

return zookeeper_url
