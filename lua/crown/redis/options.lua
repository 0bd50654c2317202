--- The options of elections in Redis, and the servers that they name.
-- @internal crown.redis.options

local redis_url = require "crown.redis.url"
local store_options = require "crown.oracle.options"
local url = require "crown.text.url"
local usage = require "crown.check.usage"

local options = {}

local LEAST = 3 -- servers of a majority

options.SCHEMES = { "redis", "rediss", "redis+unix", "redis+sentinel", "redis+cluster", "rediss+cluster", "redis+majority",
  "rediss+majority" }

--- A driver's own options.
options.RULES = {
  url = { type = "string", default = "redis://127.0.0.1" },
  urls = { type = "table" },
  prefix = { type = "string", default = "crown", match = "^[%w_.-]+$", match_words = "letters, digits, '_', '.' and '-'" },
  min_replicas = { type = "number", integer = true, least = 0, most = 100, default = 0 },
}

--- What the client reads from the URL.
options.CLIENTS = { db = true, ca = true, cert = true, key = true, server_name = true, insecure = true, sentinel_user = true,
  sentinel_password = true }

-- redis+majority://login@one,two,three/db?query is each of the three by itself. The last @ before the query ends the login, as
-- in every URL.
local function take_apart(checked)
  local scheme, front, query = checked.url:match "^(rediss?)%+majority://([^?]*)(.*)$"
  if not scheme then return checked.urls end
  if checked.urls then usage.error "oracle 'redis': urls has no effect here: redis+majority:// names the servers" end
  local login, place = front:match "^(.*@)(.*)$"
  local hosts, path = (place or front):match "^([^/]*)(.*)$"
  local urls = {}
  for host in hosts:gmatch "[^,]+" do urls[#urls + 1] = ("%s://%s%s%s%s"):format(scheme, login or "", host, path, query) end
  return urls
end

--- How messages name a server.
-- @string text its URL
-- @treturn string
function options.label(text)
  local parsed = redis_url.parse(text)
  return parsed and redis_url.label(parsed) or "?"
end

-- Where a URL leads, with which login and to which database it ever may be; nil where it names no server, as one of Sentinels.
local function place_of(one)
  local parsed = redis_url.parse(one)
  return parsed and not parsed.master and redis_url.label(parsed):lower() or nil
end

-- A server that is named twice would have two voices. Where two names lead to one server only the server tells.
local function refuse_twice(urls)
  local named = {}
  for _, one in ipairs(urls) do
    local place = place_of(one)
    if place and named[place] then
      url.refuse_login(one)
      usage.error("oracle 'redis': two of these servers are one: %s", place)
    end
    if place then named[place] = true end
  end
end

--- Checks an oracle's options.
-- @tparam table opts as the oracle gets them
-- @tparam table rules for all of them
-- @treturn table
-- @raise a usage error
function options.check(opts, rules)
  local checked = store_options.check("redis", opts, rules, options.CLIENTS)
  checked.urls = take_apart(checked)
  if checked.urls and #checked.urls < LEAST then
    usage.error("oracle 'redis': a majority that survives the loss of a server needs %d servers at least", LEAST)
  end
  if checked.urls then refuse_twice(checked.urls) end
  -- Sentinels have logins of their own, and no other server has.
  for _, name in ipairs { "sentinel_user", "sentinel_password" } do
    if checked.url:find(name .. "=", 1, true) and not checked.url:find "^redis%+sentinel:" then
      usage.error("oracle 'redis': %s has no effect here: it is for redis+sentinel://", name)
    end
  end
  return checked
end

--- The servers of which most decide.
-- @tparam table checked options
-- @treturn table an array of URLs; or nil: there is one
function options.servers(checked)
  return checked.urls
end

return options
