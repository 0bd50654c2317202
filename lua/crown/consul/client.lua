--- Asks Consul's agents over HTTP, one after the other, with a token that is read again.
-- @internal crown.consul.client

local Asked = require "crown.link.asked"
local core = require "crown.core"
local explain = require "crown.link.explain"
local http = require "crown.http"
local json = require "crown.text.json"
local Lanes = require "crown.link.lanes"
local place = require "crown.consul.place"
local printable = require "crown.text.printable"
local token = require "crown.consul.token"
local url = require "crown.text.url"

local Client = {}
Client.__index = Client

local MANY, FEW = 16, 2 -- connections at a time: for what many ask, and for what goes first
local KEPT = 60 -- seconds until the token is read again
local MOST = 8 * 1024 * 1024 -- bytes of an answer
local LEAST_TIMEOUT = 0.25 -- seconds for one agent
local SHOWN = 300 -- bytes of Consul's own words
local DENIED, CONFLICT, BUSY, BROKEN = 403, 409, 429, 500
local ANSWERS = { [200] = true, [404] = true, [CONFLICT] = true } -- what is no refusal
local STRANGE = "unexpected reply: is this Consul's HTTP port?"

--- Makes a client, and asks nobody yet.
-- @string text the URL
-- @tparam table options `dc`, `token_file`, `ca`, `cert`, `key`, where the user gives them
-- @bool shown whether its condition is to be shown
-- @treturn Client `prefix` of the keys; or nil and a message
function Client.new(text, options, shown)
  local found, problem = place.find(text)
  if not found then return nil, problem end
  local self = setmetatable({ agents = found.agents, prefix = found.prefix, tls = found.tls, options = options, at = 1,
    lanes = Lanes.new(MANY), first = Lanes.new(FEW), conditions = {} }, Client)
  for i, agent in ipairs(shown and found.agents or {}) do
    self.conditions[i] = Asked.new("consul", place.label(agent), { limit = MANY + FEW,
      count = function() return self.lanes.most_running + self.first.most_running end })
  end
  return self
end

-- One that cannot be read anew is used on.
local function refreshed(self, now)
  if self.token ~= nil and not now and core.now() < self.read_at + KEPT then return self.token end
  local found, from = token.find(self.options.token_file)
  if found == nil then
    if self.token ~= nil then return self.token end
    return nil, from
  end
  self.token, self.from, self.read_at = found, from, core.now()
  return found
end

--- Where the token is from.
-- @treturn string words; or nil and a message
function Client:logged_in()
  local found, problem = refreshed(self, false)
  if found == nil then return nil, problem end
  return self.from
end

local function request(self, at, question, secret, timeout)
  local options, path = self.options, question.path
  if options.dc then path = url.with(path, "dc", options.dc) end
  return http.request { url = self.agents[at] .. path, method = question.method or "GET", body = question.body,
    timeout = timeout, most = MOST, ca = options.ca, cert = options.cert, key = options.key,
    headers = { ["X-Consul-Token"] = secret or nil, ["User-Agent"] = "crown-lua/" .. core.version } }
end

local function send(self, at, question, secret, timeout)
  if question.held then return request(self, at, question, secret, timeout) end -- it must not keep others waiting
  local lanes = question.is_urgent and self.first or self.lanes
  return lanes:ask(function() return request(self, at, question, secret, timeout) end, timeout)
end

-- A transaction is denied as one that conflicts.
local function is_denied(answer)
  return answer.status == DENIED or answer.status == CONFLICT and answer.body:find("Permission denied", 1, true) ~= nil
end

-- What is denied was not done: it may be asked again with a newer token.
local function asked(self, at, question, timeout)
  local secret, problem = refreshed(self, false)
  if secret == nil then return nil, problem, "usage" end
  local answer, code
  answer, problem, code = send(self, at, question, secret, timeout)
  if answer and is_denied(answer) then
    local newer = refreshed(self, true)
    if newer ~= secret then answer, problem, code = send(self, at, question, newer, timeout) end
  end
  return answer, problem, code
end

local function label(self, at) return place.label(self.agents[at]) end

--- What Consul says where it does not do what was asked, in words.
-- @tparam table answer
-- @treturn string
local function refusal(answer)
  local said = printable((answer.body:match "^[^\n]*"):sub(1, SHOWN))
  local step = ""
  if answer.status == DENIED and said:find("ACL not found", 1, true) then
    step = "; it does not know this token: is it of this datacenter, and not deleted?"
  elseif answer.status == DENIED then
    step = "; the token needs a policy with key_prefix \"…\" { policy = \"write\" }: 'crown-lua check --store' says for what"
  end
  return ("it answered %d%s%s"):format(answer.status, said ~= "" and ": " .. said or "", step)
end

local function settle(self, at, answer, problem, code)
  local condition = self.conditions[at]
  local fine = answer ~= nil and answer.status < BROKEN and answer.status ~= BUSY
  if condition then condition:note(fine, problem or not fine and "it answered " .. answer.status) end
  if not answer and code == "usage" then return nil, "consul: " .. problem, code, false end
  if not answer then
    return nil, explain.problem(problem, "consul", label(self, at), self.tls, condition and condition.heard ~= nil), code, true
  end
  if ANSWERS[answer.status] then return answer end
  return nil, explain.named(refusal(answer), "consul", label(self, at)), "store", not fine, answer
end

-- @return whether there is another agent
local function leave(self, at)
  local following = at % #self.agents + 1
  if self.at == at then self.at = following end
  return following ~= at
end

--- Asks one agent; where it does not answer, the next one is asked: for a look at once, and for a write with the next question,
-- since nobody knows whether that was done. So it is for one that is held open, too.
-- @tparam table question `path` with its query, `method` ("GET"), `body`; `is_urgent`: it does not wait for what many others
-- ask; `held`: the agent may hold it open for long
-- @number timeout seconds, of a look for all agents together
-- @treturn table `{ status =, headers =, body = }` with the status 200, 404 or 409; or nil, message, code and, where Consul has
-- refused, its answer
function Client:ask(question, timeout)
  local is_look = not question.method or question.method == "GET"
  local each = math.max(LEAST_TIMEOUT, is_look and not question.held and timeout / #self.agents or timeout)
  local answer, problem, code, is_broken, said
  for _ = 1, #self.agents do
    local at = self.at
    answer, problem, code, is_broken, said = settle(self, at, asked(self, at, question, each))
    if answer or not is_broken then break end
    if not leave(self, at) or not is_look or question.held then break end
  end
  return answer, problem, code, said
end

--- Puts a problem with an answer into words.
-- @string[opt] problem
-- @treturn nil
-- @treturn string
-- @treturn string a code
function Client:strange(problem)
  return nil, explain.named(problem or STRANGE, "consul", label(self, self.at)), problem and "store" or "protocol"
end

--- The index that an answer has.
-- @tparam table answer
-- @treturn number or nil
function Client.index(answer) return tonumber(answer.headers["x-consul-index"]) end

-- What a transaction's refusal says: of which operations the index is another one, or something else.
local function refused(self, answer, found)
  local stale = {}
  for _, one in ipairs(type(found.Errors) == "table" and found.Errors or {}) do
    local said = type(one) == "table" and type(one.What) == "string" and one.What
    if not said then return self:strange() end
    if not said:find("index is stale", 1, true) then
      local status = said:find("denied", 1, true) and DENIED or answer.status
      return nil, select(2, self:strange(refusal { status = status, body = said })), "store", said
    end
    stale[(tonumber(one.OpIndex) or 0) + 1] = true
  end
  if next(stale) then return false, stale end
  return self:strange()
end

--- Writes in one transaction: all of it or nothing.
-- @tparam table operations as Consul's API has them under "KV"
-- @number timeout seconds
-- @bool[opt] is_urgent
-- @treturn table results, of each operation that left a key; false and of which operations, as keys, the index is another one; or
-- nil, message, code and the text of Consul's refusal
function Client:write(operations, timeout, is_urgent)
  local list = {}
  for i, one in ipairs(operations) do list[i] = { KV = one } end
  local body = json.encode(list):gsub('"Flags":"(%d+)"', '"Flags":%1') -- more digits than a number of Lua has
  local answer, problem, code = self:ask({ path = "/v1/txn", method = "PUT", body = body, is_urgent = is_urgent }, timeout)
  if not answer then return nil, problem, code end
  local found = json.object(answer.body)
  if not found then return self:strange() end
  if answer.status ~= 200 then return refused(self, answer, found) end
  if type(found.Results) ~= "table" then return self:strange() end
  local results = {}
  for i, one in ipairs(found.Results) do results[i] = type(one) == "table" and one.KV or nil end
  return results
end

return Client
