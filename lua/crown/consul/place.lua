--- Where Consul's agents are, and what the keys are called there.
-- @internal crown.consul.place

local url = require "crown.text.url"

local place = {}

local SCHEMES = { consul = "http", consuls = "https" }
local PORTS = { consul = 8500, consuls = 8501 }
local WRITTEN = "a Consul URL is written consul://host:port,host:port/PREFIX"

-- What stands behind the prefix for a key that no name has.
place.BELL, place.TRIED = "bell,", "tried,"

-- Consul refuses keys that end as a file's name may, and those with other characters than letters, digits and ",-_./".
local function prefix_of(path)
  local prefix = url.decode(path):gsub("/$", "")
  if prefix == "" then return nil, "the Consul URL names no prefix: consul://host:port/PREFIX" end
  for part in (prefix .. "/"):gmatch "([^/]*)/" do
    if part == "" or part:find("..", 1, true) or part == "." or part:find "[^%w,._-]" then
      return nil, "the prefix in the Consul URL has a part that is no key of Consul's: letters, digits and ,._- are"
    end
  end
  return prefix .. "/"
end

--- Takes a URL apart.
-- @string text `consul://host:port,host:port/PREFIX`, `consuls://` with TLS
-- @treturn table `{ agents = URLs, prefix = with its "/", tls = }`; or nil and a message
function place.find(text)
  local parts, problem = url.split(text)
  local scheme = parts and SCHEMES[parts.scheme]
  if not scheme then return nil, problem or WRITTEN end
  if parts.user then
    return nil, "a token is no part of the URL: give token_file=PATH, or set CONSUL_HTTP_TOKEN or CONSUL_HTTP_TOKEN_FILE"
  end
  local hosts = url.hosts(parts.hosts, PORTS[parts.scheme])
  if not hosts then return nil, "the Consul URL names no valid host or port" end
  local found = { agents = {}, tls = scheme == "https" }
  for i, one in ipairs(hosts) do
    local host = one.host:find(":", 1, true) and "[" .. one.host .. "]" or one.host
    found.agents[i] = ("%s://%s:%d"):format(scheme, host, one.port)
  end
  found.prefix, problem = prefix_of(parts.path)
  if not found.prefix then return nil, problem end
  return found
end

--- What names an agent in messages.
-- @string agent its URL
-- @treturn string `host:port`
function place.label(agent) return (agent:gsub("^%w+://", "")) end

--- A name as a part of a key: all but letters, digits, "_" and "-" is ",XX".
-- @string name
-- @treturn string
function place.key(name)
  return (name:gsub("[^%w_-]", function(character) return (",%02X"):format(character:byte()) end))
end

--- The name that a part of a key belongs to.
-- @string key without the prefix
-- @treturn string or nil: it is another one's
function place.name(key)
  local name = key:gsub(",(%x%x)", function(code) return string.char(tonumber(code, 16)) end)
  return place.key(name) == key and name or nil
end

--- The path of a key in Consul's API.
-- @string key with the prefix
-- @treturn string
function place.path(key) return "/v1/kv/" .. url.encode(key, "/,") end

return place
