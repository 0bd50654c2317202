--- What the verbs `info` and `check` ask of Consul.
-- @internal crown.consul.tools

local json = require "crown.text.json"
local place = require "crown.consul.place"

local tools = {}

local NEVER = 1 -- an index that no key has: Consul has written of itself before anybody else can
local NO_LEADER = "the servers have no leader: nothing is written until most of them are there"

local function keys(client, timeout)
  return client:ask({ path = place.path(client.prefix) .. "?keys&consistent" }, timeout)
end

--- The names of all records.
-- @tparam Client client of crown.consul.client
-- @number timeout seconds
-- @treturn table an array; or nil, message, code
function tools.names(client, timeout)
  local answer, problem, code = keys(client, timeout)
  if not answer then return nil, problem, code end
  local names = {}
  if answer.status == 404 then return names end
  local found = json.list(answer.body)
  if not found then return client:strange() end
  for _, key in ipairs(found) do
    names[#names + 1] = type(key) == "string" and place.name(key:sub(#client.prefix + 1)) or nil
  end
  return names
end

-- What the agent says of itself needs a right of its own.
local function version(client, timeout)
  local answer = client:ask({ path = "/v1/agent/self" }, timeout)
  local found = answer and answer.status == 200 and json.object(answer.body)
  local config = found and found.Config
  return type(config) == "table" and type(config.Version) == "string" and config.Version or nil
end

--- What Consul says of itself.
-- @tparam Client client
-- @number timeout seconds for each question
-- @treturn table `{ facts =, warnings =, problems = }`; or nil, message, code
function tools.health(client, timeout)
  local from, problem = client:logged_in()
  if not from then return nil, "consul: " .. problem, "usage" end
  local answer, code
  answer, problem, code = client:ask({ path = "/v1/status/leader" }, timeout)
  if not answer then return nil, problem, code end
  local leader = answer.body:match '^%s*"([^"]*)"%s*$'
  if not leader then return client:strange() end
  local told = version(client, timeout)
  return { facts = { { "Server", told and "Consul " .. told or "Consul" }, { "Leader", leader ~= "" and leader or "none" },
    { "Prefix", client.prefix }, { "Token", from } }, warnings = {}, problems = leader == "" and { NO_LEADER } or {} }
end

local function lacks(client, what, policy)
  return ('no policy of the token allows %s: key_prefix "%s" { policy = "%s" }'):format(what, client.prefix, policy)
end

--- What a candidate may not do, in the words of Consul's policies. Nothing is written.
-- @tparam Client client
-- @number timeout seconds for each question
-- @treturn table an array of texts; or nil, message, code
function tools.rights(client, timeout)
  local missing = {}
  for _, one in ipairs { { "key:list", "list", keys }, { "key:read", "read", function()
    return client:ask({ path = place.path(client.prefix .. place.TRIED) .. "?consistent" }, timeout)
  end } } do
    local answer, problem, code, said = one[3](client, timeout)
    if not answer and not (said and said.status == 403) then return nil, problem, code end
    if not answer then missing[#missing + 1] = lacks(client, one[1], one[2]) end
  end
  local done, problem, code, said = client:write({ { Verb = "cas", Key = client.prefix .. place.TRIED, Value = "",
    Index = NEVER } }, timeout)
  if done == nil and not (said and said:find("denied", 1, true)) then return nil, problem, code end
  if done == nil then missing[#missing + 1] = lacks(client, "key:write", "write") end
  return missing
end

return tools
