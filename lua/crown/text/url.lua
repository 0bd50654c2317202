--- Oracle URLs: `scheme:path` or `scheme://user:password@host:port/path?option=value`.
-- @internal crown.text.url

local usage = require "crown.check.usage"

local url = {}

-- Which oracle a scheme means.
local SCHEMES = {
  file = "file",
  memory = "memory",
  postgres = "postgres_lease",
  postgresql = "postgres_lease",
  ["postgres+advisory"] = "postgres_advisory",
  ["postgresql+advisory"] = "postgres_advisory",
  http = "http_lease",
  https = "http_lease",
  k8s = "kubernetes",
  etcd = "etcd",
  etcds = "etcd",
  mysql = "mysql",
  mysqls = "mysql",
  s3 = "s3",
  consul = "consul",
  consuls = "consul",
  nats = "nats_kv",
  tls = "nats_kv",
  redis = "redis",
  rediss = "redis",
  ["redis+unix"] = "redis",
  ["redis+sentinel"] = "redis",
  ["redis+majority"] = "redis",
  ["rediss+majority"] = "redis",
  ["redis+cluster"] = "redis",
  ["rediss+cluster"] = "redis",
  ["registry+postgres"] = "registry",
  ["registry+postgresql"] = "registry",
  ["oban+postgres"] = "oban_peer",
  ["oban+postgresql"] = "oban_peer",
  zookeeper = "zookeeper",
  zookeepers = "zookeeper",
}

local SCHEME = "%a[%w_+.-]*" -- also the name of somebody's own module

--- Decodes %XX.
-- @string text
-- @treturn string
function url.decode(text)
  return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

local EXACT = 2 ^ 53

local function coerce(text)
  if text == "true" then return true end
  if text == "false" then return false end
  local number = tonumber(text)
  if number and math.abs(number) >= EXACT and text:match "^%-?%d+$" then return text end -- a number would lose digits
  return number or text
end

--- What to say of a URL whose login may end at an `@` further on than it was meant to: none of its parts.
url.UNENCODED = "the user or the password in the URL has an @, /, ? or % as it is: percent-encode it (%40, %2F, %3F, %25)"

-- Where libpq stops with a part of the URL in its complaint, and others take the % for itself.
local PERCENT = "a % in the URL begins no two hex digits: percent-encode it (%25)"

--- What is wrong with the % of a URL. The one before the zone of an IPv6 address stands for itself.
-- @string text
-- @treturn string without any part of the URL, or nil
function url.encoding_problem(text)
  local rest = text:gsub("%[[%x:.]+%%[%w._-]+%]", ""):gsub("%%%x%x", "")
  return rest:find("%", 1, true) and PERCENT or nil
end

--- What is wrong with the place that a store's URL names: a `#` would be a part of a name, or be cut off with what follows.
-- @string text
-- @treturn string without any part of the URL, or nil
function url.place_problem(text)
  local place = text:match "^[^?]*":gsub("^.*@", "")
  return place:find("#", 1, true) and "a # in the URL names no place of its own: percent-encode it (%23), or leave it out" or nil
end

--- Raises what url.encoding_problem finds.
-- @string text
-- @raise a usage error
function url.expect_encoded(text)
  local problem = url.encoding_problem(text)
  if problem then usage.error("oracle URL: %s", problem) end
end

--- Refuses an option of a URL's query that nobody knows, without naming it where it may be a part of a password.
-- @string text the URL
-- @raise a usage error where the query has an `@`
function url.refuse_login(text)
  local query = text:match "^[^?]*%?(.*)$"
  if query and query:find("@", 1, true) then usage.error("oracle URL: %s", url.UNENCODED) end
end

local function query_options(query, options)
  for pair in query:gmatch "[^&]+" do
    local key, value = pair:match "^([^=]+)=(.*)$"
    if not (key and key:match "^[%w_.%%-]+$") then url.refuse_login("?" .. query) end
    if not key then usage.error("oracle URL: '%s' in the query is not option=value", pair) end
    local name, found = url.decode(key), coerce(url.decode(value))
    if options[name] ~= nil and options[name] ~= found then
      usage.error("oracle URL: %s is there twice, as %s and as %s: give it once", name, tostring(options[name]), tostring(found))
    end
    options[name] = found
  end
end

--- Whether a text is an oracle URL.
-- @string text
-- @treturn boolean
function url.is(text)
  return text:match("^" .. SCHEME .. ":") ~= nil
end

--- The schemes that oracles have.
-- @treturn table an array, in order
function url.schemes()
  return usage.names(SCHEMES)
end

--- The oracles that a URL can mean.
-- @treturn table an array, in order
function url.oracles()
  local names = {}
  for _, name in pairs(SCHEMES) do names[name] = true end
  return usage.names(names)
end

--- Whether a module has this name; nothing of it is run.
-- @string name
-- @treturn boolean
function url.is_module(name)
  return package.loaded[name] ~= nil or package.preload[name] ~= nil or package.searchpath(name, package.path) ~= nil
end

--- The oracle that a URL's scheme means.
-- @string text the URL; a scheme that is none of ours names a module
-- @treturn string the oracle's module name
-- @treturn string what stands behind the scheme
-- @raise a usage error for a scheme that no oracle has
function url.oracle(text)
  local scheme, rest = text:match("^(" .. SCHEME .. "):(.*)$")
  local name = scheme and (SCHEMES[scheme:lower()] or url.is_module(scheme) and scheme)
  if not name then
    local known = url.schemes()
    usage.error("oracle URL: no oracle has the scheme '%s'%s, and require finds no module of that name; there are %s",
      tostring(scheme), usage.suggest(tostring(scheme), known), table.concat(known, ", "))
  end
  return name, rest
end

--- Takes a URL apart.
-- @string text the URL; a scheme that is none of ours names a module
-- @treturn string the oracle's module name
-- @treturn table its options: `url`, `path`, and what the query says
-- @raise a usage error for a scheme that no oracle has
function url.parse(text)
  url.expect_encoded(text)
  local name, rest = url.oracle(text)
  local options = { url = text }
  local path, query = rest:match "^([^?]*)%?(.*)$"
  options.path = url.decode(path or rest):gsub("^//", "")
  if options.path:find "%z" then usage.error "oracle URL: there is a NUL byte (%%00) in it" end
  if query then query_options(query, options) end
  return name, options
end

--- What a URL's query says, as numbers and switches where it is that.
-- @string text the URL
-- @treturn table options by name
-- @raise a usage error where the URL is not encoded
function url.query(text)
  url.expect_encoded(text)
  local options = {}
  local query = text:match("^" .. SCHEME .. ":[^?]*%?(.*)$")
  if query then query_options(query, options) end
  return options
end

--- Takes a store's URL apart: `scheme://login@hosts/path?query`. The last `@` before the query ends the login.
-- @string text the URL
-- @treturn table `{ scheme =, user =, password =, hosts =, path =, query = }`: user and password are decoded, and a login without
-- a colon is all user; the others are as they stand, hosts for `url.hosts`, path without its `/`; or nil where it is none,
-- with a message where a % in it is not encoded
function url.split(text)
  if type(text) ~= "string" then return nil end
  local problem = url.encoding_problem(text) or url.place_problem(text)
  if problem then return nil, problem end
  local scheme, rest = text:match "^(%l[%w+]*)://(.*)$"
  if not scheme then return nil end
  local front, query = rest:match "^([^?]*)%??(.*)$"
  local login, place = front:match "^(.*)@(.*)$"
  local hosts, path = (place or front):match "^([^/]*)/?(.*)$"
  local parts = { scheme = scheme, hosts = hosts, path = path, query = query }
  if login then
    local user, password = login:match "^([^:]*):(.*)$"
    parts.user, parts.password = url.decode(user or login), password and url.decode(password)
  end
  return parts
end

--- Takes options out of a URL's query, for the store's client, which would stumble over ours.
-- @string text the URL
-- @tparam table ours what to take out: names as keys
-- @treturn string the URL without them
-- @treturn table the names that are left in it, as keys
function url.without(text, ours)
  local front, query = text:match "^([^?]*)%?(.*)$"
  if not front then return text, {} end
  local kept, names = {}, {}
  for pair in query:gmatch "[^&]+" do
    local name = url.decode(pair:match "^[^=]*")
    if not ours[name] then
      kept[#kept + 1] = pair
      names[name] = true
    end
  end
  return #kept > 0 and front .. "?" .. table.concat(kept, "&") or front, names
end

--- Percent-encodes a text.
-- @string text
-- @string[opt] kept what stays as it is besides letters, digits and "._~-": as a part of a pattern's set
-- @treturn string
function url.encode(text, kept)
  return (text:gsub(("[^%%w._~%s-]"):format(kept or ""), function(character) return ("%%%02X"):format(character:byte()) end))
end

--- Puts an option into a URL's query.
-- @string text the URL
-- @string name
-- @param value a string, number or boolean
-- @treturn string
function url.with(text, name, value)
  return ("%s%s%s=%s"):format(text, text:find("?", 1, true) and "&" or "?", name, url.encode(tostring(value), "/:@"))
end

--- The options in a query, as text.
-- @string query what stands behind the `?`
-- @tparam table into gets them
function url.read_query(query, into)
  for key, value in query:gmatch "([^&=]+)=([^&]*)" do into[url.decode(key)] = url.decode(value) end
end

--- Takes `host:port` apart, also where the host is an IPv6 address, with brackets or without.
-- @string text
-- @treturn string the host, or nil where it is no such thing
-- @treturn number the port
function url.address(text)
  local host, port = text:match "^%[?(.-)%]?:(%d+)$"
  return host, tonumber(port)
end

--- Whether something can be the name or the address of a host.
-- @param host
-- @treturn boolean
function url.is_host(host)
  return type(host) == "string" and host ~= "" and not host:find "[^%w._:\128-\255-]"
end

--- A host and a port, as somebody named them.
-- @param host
-- @param port a number, or its text
-- @treturn table `{ host =, port = }`, or nil when they are none
function url.place(host, port)
  local number = tonumber(port)
  if not url.is_host(host) or not number or number < 1 or number > 65535
    or number % 1 ~= 0 then return nil end
  return { host = host, port = number }
end

--- Reads `host:port,host:port`, with IPv6 addresses in brackets.
-- @string text
-- @number port of those that name none
-- @treturn table an array of `{ host =, port = }`, 127.0.0.1 where a single one has no name; or nil when one is none. In a list
-- no name is left out: behind a comma too many there would be another server, and in `a,http://b` the host `http`
function url.hosts(text, port)
  local hosts, several = {}, text:find(",", 1, true)
  for one in (text .. ","):gmatch "([^,]*)," do
    local name, given = one:match "^(.-):(%d+)$"
    name = name or one
    local host = name:match "^%[([%x:.]+)%]$" or name:match "^[^:]*$"
    if not host or several and host == "" then return nil end
    local place = url.place(host ~= "" and url.decode(host) or "127.0.0.1", tonumber(given) or port)
    if not place then return nil end
    hosts[#hosts + 1] = place
  end
  return hosts
end

return url
