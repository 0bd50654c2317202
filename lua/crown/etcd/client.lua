--- etcd v3 through its JSON gateway: several endpoints, tried in turn; keys and values as bytes, whole numbers as text, as the
-- gateway has them.
-- @internal crown.etcd.client

local Asked = require "crown.link.asked"
local base64 = require "crown.text.base64"
local blotted = require "crown.text.blotted"
local core = require "crown.core"
local explain = require "crown.link.explain"
local http = require "crown.http"
local json = require "crown.text.json"
local Lanes = require "crown.link.lanes"
local Login = require "crown.etcd.login"
local printable = require "crown.text.printable"
local url = require "crown.text.url"

local Client = {}
Client.__index = Client

local PORT = 2379
local WEB_SCHEMES = { etcd = "http", etcds = "https" }
local MOST = 8 * 1024 * 1024
local QUESTIONS = 6 -- at a time, of an endpoint
local CONNECTIONS = QUESTIONS + 3 -- besides: a watch, the one that it is opened anew by, and a login
local LEAST_TIMEOUT = 0.25 -- seconds for one endpoint
local DENIED = "permission denied"
local NO_USERS = "authentication is not enabled"
local STRANGE = "unexpected reply: it lacks the header that etcd sends"
local BROKEN = 500 -- from this status on it is the member that cannot answer: it has no quorum, no leader, no time left

--- Takes an etcd URL apart: `etcd://user:password@host:port,host:port/PREFIX`, `etcds://` for TLS.
-- @string text the URL
-- @treturn table `{ endpoints =, prefix =, user =, password = }`, or nil and a message
function Client.parse(text)
  local parts, problem = url.split(text)
  local scheme = parts and WEB_SCHEMES[parts.scheme]
  if not scheme then return nil, problem or "an etcd URL is written etcd://host:port,host:port/PREFIX" end
  local hosts = url.hosts(parts.hosts, PORT)
  if not hosts then return nil, "the etcd URL names no valid host or port" end
  local parsed = { endpoints = {}, user = parts.user, password = parts.user and (parts.password or "") }
  if ("/" .. parts.path):find "//" then
    return nil, "the prefix in the etcd URL has a part that is empty: write one / (%2F for one that is a part of the prefix)"
  end
  parsed.prefix = url.decode(parts.path):gsub("/$", "")
  for i, place in ipairs(hosts) do
    local host = place.host:find(":", 1, true) and "[" .. place.host .. "]" or place.host
    parsed.endpoints[i] = ("%s://%s:%d"):format(scheme, host, place.port)
  end
  return parsed
end

local function place_of(endpoint)
  return (endpoint:gsub("^%w+://", ""))
end

local function options_of(self, endpoint, path, body, pass)
  local parsed = self.parsed
  return { url = parsed.endpoints[endpoint] .. path, method = "POST", body = body and core.json.encode(body),
    timeout = self.timeout, headers = { Authorization = pass }, ca = parsed.ca, cert = parsed.cert, key = parsed.key,
    most = MOST }
end

-- @string[opt] secret that was in the question: the answer may repeat it
local function read(answer, secret)
  local found = json.object(answer.body:match "^[^\n]*")
  if not found then return nil, ("etcd answered %d, and no JSON object"):format(answer.status), "protocol" end
  if answer.status == 200 and not found.error then
    found = found.result or found
    if type(found) ~= "table" or type(found.header) ~= "table" then return nil, STRANGE, "protocol" end
    return found
  end
  local problem = type(found.error) == "table" and found.error.message or found.message or found.error
    or ("it answered %d"):format(answer.status)
  return nil, blotted(tostring(problem), { secret }), answer.status >= BROKEN and "unavailable" or "store"
end

-- A server that acknowledges nothing is not one that computes.
local function log_in(self, endpoint, timeout)
  local options = options_of(self, endpoint, "/v3/auth/authenticate",
    { name = self.parsed.user, password = self.parsed.password })
  options.timeout, options.silence = timeout, self.timeout
  local answer, problem, code = http.request(options)
  if not answer then return nil, problem, code end
  local found
  found, problem, code = read(answer, self.parsed.password)
  if not found and problem:find(NO_USERS, 1, true) then
    return nil, "this etcd has no users: leave user and password out of the URL, or 'etcdctl auth enable'", "usage"
  end
  return found, problem, code
end

--- Makes a client; nothing is asked yet.
-- @tparam table parsed as Client.parse gives it; `ca`, `cert`, `key` besides
-- @number timeout seconds for each question, all endpoints together, unless there are very many
-- @treturn Client
function Client.new(parsed, timeout)
  local members, lanes = {}, {}
  for i, endpoint in ipairs(parsed.endpoints) do
    lanes[i] = Lanes.new(QUESTIONS)
    members[i] = Asked.new("etcd", place_of(endpoint), { limit = CONNECTIONS, count = function()
      return lanes[i].most_running + (parsed.user and 1 or 0) + 1
    end })
  end
  local self = setmetatable({ parsed = parsed, at = 1, timeout = math.max(LEAST_TIMEOUT, timeout / #parsed.endpoints),
    members = members, lanes = lanes }, Client)
  self.login = Login.new(self.timeout, function(endpoint, patience) return log_in(self, endpoint, patience) end)
  return self
end

-- @return whether it may be asked; the pass for it, nil where there are no users; or nil, message, code
local function authenticate(self, endpoint)
  if not self.parsed.user then return true end
  local pass, problem, code = self.login:wait(endpoint)
  if not pass then return nil, problem, code end
  return true, pass
end

-- The first key, or range of keys, that a question is about.
local function asked_keys(body)
  local one = (body.compare or body.success or {})[1]
  if one and not one.key then one = select(2, next(one)) end -- { request_range = … }
  one = one or body
  local first, behind = one.key and base64.decode(one.key), one.range_end and base64.decode(one.range_end)
  return first and printable(behind and ("the keys from %s to %s"):format(first, behind) or first)
end

-- What etcd says of a right does not say which one. What else it answers says itself what is wrong.
local function explained(self, endpoint, problem, code, body)
  local text = self.parsed.endpoints[endpoint]
  local needed = code == "store" and body and problem:find(DENIED, 1, true) and asked_keys(body)
  if needed then
    return explain.named(("%s: %s needs a right to read and write %s"):format(problem, self.parsed.user or "this user", needed),
      "etcd", place_of(text))
  end
  if code == "store" then return explain.answer(problem, "etcd", place_of(text)) end
  return explain.problem(problem, "etcd", place_of(text), text:find "^https:" ~= nil, self.members[endpoint].heard ~= nil)
end

-- @return the answer; or nil, message, code, and whether the pass was not taken
local function ask_once(self, endpoint, path, body)
  local fine, pass, code = authenticate(self, endpoint)
  if not fine then return nil, pass, code end
  local answer, found, problem
  answer, problem, code = self.lanes[endpoint]:ask(function()
    return http.request(options_of(self, endpoint, path, body, pass))
  end, self.timeout)
  if code == "timeout" then self.login:unanswered(endpoint, pass) end
  if not answer then return nil, problem, code end
  found, problem, code = read(answer)
  return found, problem, code, not found and pass and self.login:refused(pass, problem, answer.status)
end

-- With a pass that has run out, once more with a new one.
local function ask_one(self, endpoint, path, body)
  local had = self.login.pass
  local found, problem, code, refused = ask_once(self, endpoint, path, body)
  if refused and had then found, problem, code = ask_once(self, endpoint, path, body) end
  return found, problem, code
end

-- What is watched on the endpoint that is left might never be told: whoever watches opens a watch anew, at the next one.
local function leave(self, endpoint)
  local following = endpoint % #self.parsed.endpoints + 1
  if self.at ~= endpoint or following == endpoint then return end
  self.at = following
  if self.watched and self.watched.endpoint == endpoint then self.watched.stream:close() end
end

--- Takes note that a watch was refused: where its pass is not taken any more, the next question logs in again.
-- @param stream as open_watch gave it
-- @string problem what etcd says
function Client:refused(stream, problem)
  if self.watched and self.watched.stream == stream then self.login:refused(self.watched.pass, problem) end
end

--- Asks one endpoint after the other, until one answers. What one of them refuses, the others would refuse too; one that has
-- no quorum refuses nothing.
-- @string path such as "/v3/kv/range"
-- @tparam table body
-- @treturn table the answer; or nil, message, code: "store" for what was refused, "usage" for a login where there is none
function Client:ask(path, body)
  local found, problem, code
  for _ = 1, #self.parsed.endpoints do
    local asked = self.at
    found, problem, code = ask_one(self, asked, path, body)
    local answered = found or code == "store" or code == "usage"
    self.members[asked]:note(answered, problem)
    if problem then problem = explained(self, asked, problem, code, body) end
    if answered then return found, problem, code end
    leave(self, asked)
  end
  return nil, problem, code
end

--- The endpoint that is asked next.
-- @treturn string `host:port`
function Client:place()
  return place_of(self.parsed.endpoints[self.at])
end

--- Takes note that a watch is not answered: the next endpoint is asked from now on.
-- @param stream as open_watch gave it
function Client:silent(stream)
  local watched = self.watched
  if not watched or watched.stream ~= stream then return end
  self.login:unanswered(watched.endpoint, watched.pass)
  leave(self, watched.endpoint)
end

--- Opens a watch over several ranges, on one connection. It ends with the endpoint, and when another one is opened.
-- @tparam table creates what etcd calls create requests
-- @treturn stream of crown.http, a line of JSON each; or nil and a message
function Client:open_watch(creates)
  local lines, endpoint = {}, self.at
  local fine, pass = authenticate(self, endpoint)
  if not fine then return nil, pass end
  for i, one in ipairs(creates) do lines[i] = core.json.encode { create_request = one } end
  local options = options_of(self, endpoint, "/v3/watch", nil, pass)
  options.body, options.timeout, options.silence = table.concat(lines, "\n"), nil, self.timeout
  options.headers.Connection = "close" -- or the gateway skips what it has not read when it answers the first of them
  local stream, problem = http.stream(options)
  if not stream then
    leave(self, endpoint)
    return nil, explained(self, endpoint, problem)
  end
  if self.at ~= endpoint then -- left meanwhile
    stream:close()
    return nil, "the endpoint was left"
  end
  self.watched = { endpoint = endpoint, stream = stream, pass = pass }
  return stream
end

return Client
