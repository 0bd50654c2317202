--- A session of Consul for one election. It has no checks of the agent's node, which could end it before its time.
-- @internal crown.consul.session

local json = require "crown.text.json"
local url = require "crown.text.url"

local session = {}

local LOCK_DELAY_MOST = 60 -- seconds: Consul's

local function seconds(value) return ("%.17gs"):format(value) end

--- For how long Consul keeps a lock back whose session has ended in disorder: as long as its leader may still lead.
-- @number ttl seconds
-- @treturn number
function session.delay(ttl) return math.min(ttl, LOCK_DELAY_MOST) end

--- Makes one.
-- @tparam Client client
-- @tparam table options `node`, `ttl` and `lock_delay` in seconds
-- @number timeout seconds
-- @treturn string its id; or nil, message, code
function session.create(client, options, timeout)
  local body = json.encode({ Name = "crown-lua " .. options.node, TTL = seconds(options.ttl), Behavior = "release",
    LockDelay = seconds(options.lock_delay), NodeChecks = {}, Checks = {} }, "NodeChecks", "Checks")
  local question = { path = "/v1/session/create", method = "PUT", body = body, is_urgent = true }
  local answer, problem, code = client:ask(question, timeout)
  if not answer then return nil, problem, code end
  local found = json.object(answer.body)
  if answer.status ~= 200 or not found or type(found.ID) ~= "string" then return client:strange() end
  return found.ID
end

local function put(client, what, id, timeout)
  return client:ask({ path = ("/v1/session/%s/%s"):format(what, url.encode(id)), method = "PUT", is_urgent = true }, timeout)
end

--- Renews one.
-- @tparam Client client
-- @string id
-- @number timeout seconds
-- @treturn boolean whether it is there; or nil, message, code
function session.renew(client, id, timeout)
  local answer, problem, code = put(client, "renew", id, timeout)
  if not answer then return nil, problem, code end
  if answer.status == 404 then return false end
  if answer.status ~= 200 or not json.list(answer.body) then return client:strange() end
  return true
end

--- Ends one.
-- @tparam Client client
-- @string id
-- @number timeout seconds
-- @treturn boolean true; or nil, message, code
function session.destroy(client, id, timeout)
  local answer, problem, code = put(client, "destroy", id, timeout)
  if not answer then return nil, problem, code end
  return true
end

--- The name of one, as its program gave it.
-- @tparam Client client
-- @string id
-- @number timeout seconds
-- @treturn string or nil
function session.name(client, id, timeout)
  local answer = client:ask({ path = "/v1/session/info/" .. url.encode(id) }, timeout)
  local list = answer and json.list(answer.body)
  local name = list and type(list[1]) == "table" and list[1].Name
  if type(name) ~= "string" or name == "" then return nil end
  return name:match "^crown%-lua (.*)$" or name
end

return session
