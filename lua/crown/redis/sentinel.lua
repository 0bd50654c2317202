--- Asks Sentinels who the primary is.
-- @internal crown.redis.sentinel

local Connection = require "crown.redis.connection"
local url = require "crown.text.url"

local sentinel = {}

-- Sentinels have a login of their own; the URL's is the server's.
local function login_of(parsed)
  return { tls = parsed.tls, ca = parsed.ca, cert = parsed.cert, key = parsed.key, user = parsed.sentinel_user,
    password = parsed.sentinel_password }
end

--- Finds the primary: asks one Sentinel after the other.
-- @tparam table parsed `hosts`, `master`
-- @number timeout seconds, shared among them
-- @treturn table `{ host, port }`, or nil and a message
function sentinel.primary(parsed, timeout)
  local problem = "no Sentinel is named"
  local share = timeout / #parsed.hosts -- one that is silent leaves the others theirs
  for _, place in ipairs(parsed.hosts) do
    local connection, why = Connection.open(login_of(parsed), place, share)
    if connection then
      local found
      found, why = connection:call(share, "SENTINEL", "get-master-addr-by-name", parsed.master)
      connection:close()
      local place_found = type(found) == "table" and url.place(found[1], found[2])
      if place_found then return place_found end
      why = why or found and "what it names is no host and port" or ("this Sentinel knows no master '%s'"):format(parsed.master)
    end
    problem = ("Sentinel %s:%d: %s"):format(place.host, place.port, why)
  end
  return nil, problem
end

return sentinel
