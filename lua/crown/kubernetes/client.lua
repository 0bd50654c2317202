--- Asks the Kubernetes API server: one client for all elections of this runtime that log in there the same way.
-- @internal crown.kubernetes.client

local Asked = require "crown.link.asked"
local core = require "crown.core"
local explain = require "crown.link.explain"
local http = require "crown.http"
local json = require "crown.text.json"
local Lanes = require "crown.link.lanes"
local place = require "crown.kubernetes.place"

local Client = {}
Client.__index = Client

local KEPT = 60 -- seconds until token and kubeconfig are read again
local CONNECTIONS = 8 -- at a time, besides watches
local MOST = 4 * 1024 * 1024 -- bytes of an answer
local BROKEN, BUSY = 500, 429
local SILENCE = 10 -- seconds

-- Of what an API server says by a status alone.
local WORDS = {
  [401] = "it does not know this login (401 Unauthorized): is the token of this cluster, and not too old?",
  [BUSY] = "it has too much to do (429)",
}

local clients = setmetatable({}, { __mode = "v" })

--- The client for a login.
-- @tparam table options as crown.kubernetes.place has them
-- @treturn Client
function Client.of(options)
  local words = {}
  for _, name in ipairs { "server", "kubeconfig", "context", "token_file", "ca", "cert", "key" } do
    words[#words + 1] = ("%s=%s"):format(name, tostring(options[name]))
  end
  local key = table.concat(words, "\n")
  local self = clients[key]
  if not self then
    self = setmetatable({ key = key, options = options, lanes = Lanes.new(CONNECTIONS),
      watches = setmetatable({}, { __mode = "v" }) }, Client)
    clients[key] = self
  end
  return self
end

local function server_of(base) return (base:gsub("^%w+://", ""):gsub("/.*$", "")) end

-- Reads what leads to the server again where that is due.
local function refreshed(self, now)
  if self.place and core.now() < self.read_at + KEPT and not now then return self.place end
  local found, problem = place.find(self.options)
  if not found then return nil, problem end
  self.place, self.read_at, self.server = found, core.now(), server_of(found.base)
  self.asked = self.asked or Asked.new("kubernetes", self.server, { limit = CONNECTIONS,
    count = function() return self.lanes.most_running end })
  return found
end

--- Reads where the server is and how to log in, where that is not known yet.
-- @treturn table as crown.kubernetes.place.find
function Client:find()
  return refreshed(self, false)
end

-- @string[opt] body
local function question(found, method, path, body, timeout)
  return { url = found.base .. path, method = method, body = body, timeout = timeout, bearer = found.token, most = MOST,
    headers = { Accept = "application/json", ["User-Agent"] = "crown-lua/" .. core.version }, insecure = found.insecure,
    ca = found.ca, cert = found.cert, key = found.key, ca_data = found.ca_data, cert_data = found.cert_data,
    key_data = found.key_data }
end

--- Puts what is wrong with an answer, or with none, into words.
-- @string problem
-- @treturn string
function Client:explained(problem)
  local found = self.place
  return explain.problem(problem, "kubernetes", self.server or "?", found and found.base:find "^https:" ~= nil,
    self.asked and self.asked.heard ~= nil)
end

local function request(self, method, path, body, timeout)
  local found, problem = refreshed(self, false)
  if not found then return nil, problem, "usage" end
  local had, text = found.token, body and json.encode(body)
  local function send() return http.request(question(self.place, method, path, text, timeout)) end
  local answer, code
  answer, problem, code = self.lanes:ask(send, timeout)
  if answer and answer.status == 401 and refreshed(self, true) and self.place.token ~= had then
    answer, problem, code = self.lanes:ask(send, timeout)
  end
  local fine = answer and answer.status < BROKEN
  self.asked:note(fine, problem or not fine and "it answered " .. answer.status)
  return answer, problem and self:explained(problem), code
end

local CODES = { NotFound = "not_found", Conflict = "conflict", AlreadyExists = "conflict" }

-- Seconds after which the server wants to be asked again.
local function pause(answer)
  local seconds = tonumber(answer.headers["retry-after"])
  return seconds and seconds > 0 and seconds or nil
end

-- What an answer says that is no success: a Status object, or what stands before the server said something.
local function refused(self, answer)
  local found = json.object(answer.body)
  local is_status = found and found.kind == "Status"
  local code = is_status and CODES[found.reason] or "store"
  local words = WORDS[answer.status] or is_status and type(found.message) == "string" and found.message ~= "" and found.message
    or ("it answered %d"):format(answer.status)
  return nil, explain.named(words, "kubernetes", self.server), code, pause(answer)
end

--- Asks.
-- @string method
-- @string path with its query
-- @tparam[opt] table body
-- @number timeout seconds
-- @treturn table the object of the answer; or nil, message, code and, where the server says so, after how many seconds it wants
-- to be asked again. Codes: "not_found", "conflict" (another one has written, or it exists); "store": it has answered with
-- something else; "usage": the user is to mend something first; others as crown.http has them
function Client:ask(method, path, body, timeout)
  local answer, problem, code = request(self, method, path, body, timeout)
  if not answer then return nil, problem, code end
  if answer.status ~= 200 and answer.status ~= 201 then return refused(self, answer) end
  local found = json.object(answer.body)
  if found then return found end
  return nil, explain.named("unexpected reply, not a JSON object: is this an API server?", "kubernetes", self.server), "protocol"
end

--- Opens a watch.
-- @string path with its query
-- @treturn stream of crown.http: an event in each line; or nil and a message
function Client:open_watch(path)
  local found, problem = refreshed(self, false)
  if not found then return nil, problem end
  local asked = question(found, "GET", path)
  asked.silence = SILENCE
  return http.stream(asked)
end

--- Reads token and kubeconfig again before the next question: the server did not take them.
function Client:doubt_login()
  self.read_at = -math.huge
end

return Client
