--- Asks one Sentinel after the other who the primary is: for what is shown, and for messages. A lease needs most of them, see
-- crown.redis.sentinels.
-- @internal crown.redis.sentinel

local Connection = require "crown.redis.connection"
local url = require "crown.text.url"

local sentinel = {}

--- Connects to a Sentinel. Sentinels have a login of their own; the URL's is the server's.
-- @tparam table parsed as crown.redis.url gives it
-- @tparam table place `{ host, port }`
-- @number timeout seconds for each step
-- @treturn Connection or nil and a message
function sentinel.open(parsed, place, timeout)
  return Connection.open({ sentinel = true, tls = parsed.tls, ca = parsed.ca, cert = parsed.cert, key = parsed.key,
    user = parsed.sentinel_user, password = parsed.sentinel_password }, place, timeout)
end

--- Asks a Sentinel.
-- @tparam Connection connection to it
-- @string master
-- @number timeout seconds
-- @treturn table `{ host, port }`, or nil and a message
function sentinel.ask(connection, master, timeout)
  local found, problem = connection:call(timeout, "SENTINEL", "get-master-addr-by-name", master)
  local place = type(found) == "table" and url.place(found[1], found[2])
  if place then return place end
  return nil, problem or found and "what it names is no host and port" or ("this Sentinel knows no master '%s'"):format(master)
end

--- Finds the primary.
-- @tparam table parsed `hosts`, `master`
-- @number timeout seconds, shared among them
-- @treturn table `{ host, port }`, or nil and a message
function sentinel.primary(parsed, timeout)
  local problem = "no Sentinel is named"
  local share = timeout / #parsed.hosts -- one that is silent leaves the others theirs
  for _, place in ipairs(parsed.hosts) do
    local connection, why = sentinel.open(parsed, place, share)
    if connection then
      local found
      found, why = sentinel.ask(connection, parsed.master, share)
      connection:close()
      if found then return found end
    end
    problem = connection and connection:explained(why) or why
  end
  return nil, problem
end

return sentinel
