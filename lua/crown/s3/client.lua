--- Asks S3: requests that are signed, over connections that are kept.
-- @internal crown.s3.client

local Asked = require "crown.link.asked"
local core = require "crown.core"
local explain = require "crown.link.explain"
local http = require "crown.http"
local Lanes = require "crown.link.lanes"
local login = require "crown.s3.login"
local place = require "crown.s3.place"
local profile = require "crown.s3.profile"
local refusal = require "crown.s3.refusal"
local signature = require "crown.s3.signature"

local Client = {}
Client.__index = Client

local MANY, FEW = 16, 2 -- connections at a time: for what many ask, and for what goes first
local KEPT = 60 -- seconds until a login is read again
local EARLY = 300 -- seconds before its end from which it is replaced
local MOST = 4 * 1024 * 1024 -- bytes of an answer
local BROKEN = 500
local ANSWERS = { [200] = true, [304] = true, [412] = true } -- what is no refusal

--- Makes a client, and asks nobody yet.
-- @string url `s3://BUCKET/PREFIX`
-- @tparam table options `endpoint`, `region`, `profile`, `ca`, `cert`, `key`, where the user gives them
-- @bool shown whether its condition is to be shown
-- @treturn Client `place` of crown.s3.place; or nil and a message
function Client.new(url, options, shown)
  local file, problem = profile.read(options.profile)
  if not file then return nil, problem end
  local found
  found, problem = place.find(url, options, file)
  if not found then return nil, problem end
  local self = setmetatable({ place = found, options = options, lanes = Lanes.new(MANY), first = Lanes.new(FEW) }, Client)
  self.asked = shown and Asked.new("s3", found.host, { limit = MANY + FEW,
    count = function() return self.lanes.most_running + self.first.most_running end }) or nil
  return self
end

-- --- the login

local function is_fresh(self)
  local one = self.login
  if not one then return false end
  if one.over then return os.time() < one.over - EARLY or core.now() < self.read_at + KEPT and os.time() < one.over end
  return core.now() < self.read_at + KEPT
end

-- One that cannot be read anew is used for as long as it lasts.
local function refreshed(self, timeout, now)
  if not now and is_fresh(self) then return self.login end
  local found, problem = login.find(self.options.profile, timeout)
  if not found then
    local old = self.login
    if old and not now and not (old.over and os.time() >= old.over) then return old end
    return nil, problem
  end
  self.login, self.read_at = found, core.now()
  return found
end

--- The login that is used.
-- @number timeout seconds
-- @treturn table as crown.s3.login.find
function Client:logged_in(timeout) return refreshed(self, timeout, false) end

-- --- questions

local function send(self, question, one, timeout)
  local where, options = self.place, self.options
  local query = signature.query(question.query)
  local path = place.path(where, question.key)
  local headers = { Host = where.host }
  for name, value in pairs(question.headers or {}) do headers[name] = value end
  if question.body then headers["Content-Type"] = "application/json" end
  headers = signature.headers({ method = question.method, path = path, query = query, headers = headers, body = question.body },
    one, where.region, os.time())
  headers["User-Agent"] = "crown-lua/" .. core.version
  return http.request { url = ("%s://%s%s%s"):format(where.scheme, where.host, path, query ~= "" and "?" .. query or ""),
    method = question.method, headers = headers, body = question.body, timeout = timeout, most = MOST, ca = options.ca,
    cert = options.cert, key = options.key }
end

local function asked(self, question, timeout)
  local one, problem = refreshed(self, timeout, false)
  if not one then return nil, problem, "usage" end
  local answer, code
  local lanes = question.is_urgent and self.first or self.lanes
  answer, problem, code = lanes:ask(function() return send(self, question, one, timeout) end, timeout)
  if answer and refusal.OF_LOGIN[refusal.read(answer, self.place)] then
    local newer = refreshed(self, timeout, true)
    if newer and (newer.id ~= one.id or newer.secret ~= one.secret or newer.token ~= one.token) then
      answer, problem, code = lanes:ask(function() return send(self, question, newer, timeout) end, timeout)
    end
  end
  return answer, problem, code
end

--- Names the server in a message.
-- @string problem
-- @treturn string
function Client:named(problem)
  return explain.named(problem, "s3", self.place.host)
end

--- Asks.
-- @tparam table question `method`, `key` (without the prefix; none: the bucket), `query` and `headers` by name, `body`;
-- `element`, which the answer must have, where it is no object; `is_urgent`: it does not wait for what many others ask
-- @number timeout seconds
-- @treturn table `{ status =, headers =, body = }` with the status 200, 304, 412, or 404 of an object that is missing; or nil,
-- message, code and, where the server has refused, its answer
function Client:ask(question, timeout)
  local answer, problem, code = asked(self, question, timeout)
  local where = self.place
  if self.asked then
    self.asked:note(answer ~= nil and answer.status < BROKEN, problem or answer and "it answered " .. answer.status)
  end
  if not answer and code == "usage" then return nil, "s3: " .. problem, code end
  if not answer then
    return nil, explain.problem(problem, "s3", where.host, where.scheme == "https", self.asked and self.asked.heard ~= nil), code
  end
  local strange = refusal.of_another(answer, question)
  if strange then return nil, self:named(strange), "store", answer end
  if ANSWERS[answer.status] then return answer end
  local kind, said = refusal.read(answer, where)
  if kind == "NoSuchKey" then return answer end
  return nil, self:named(said), "store", answer
end

return Client
