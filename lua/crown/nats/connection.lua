--- One connection to a NATS server: publish, subscribe, request. Nothing is kept for after a reconnect.
-- @internal crown.nats.connection

local Base = require "crown.link.connection"
local blotted = require "crown.text.blotted"
local core = require "crown.core"
local login = require "crown.nats.login"
local promise = require "crown.core.promise"
local Requests = require "crown.nats.requests"

local Connection = Base.extend()

local PAYLOAD_MAX = 1048576 -- bytes that one read takes

function Connection:give_up(reason)
  self.requests:give_up(reason)
  for _, pong in pairs(self.pongs) do pong:resolve(nil, reason, "closed") end
end

-- The answers to pings come in the order of the pings: one that was asked before proves nothing of what came after it.
local function hear_pong(self)
  if self.ponged == self.pinged then return end -- nobody asked
  self.ponged = self.ponged + 1
  local pong = self.pongs[self.ponged]
  self.pongs[self.ponged] = nil
  pong:resolve(true)
end

-- "NATS/1.0 100 Idle Heartbeat\r\nName: value\r\n…"
local function parse_headers(text)
  local headers = { status = text:match "^NATS/1%.0 (%d+)" }
  for name, value in text:gmatch "\r\n([^:\r\n]+):[ \t]*([^\r\n]*)" do headers[name:lower()] = value end
  return headers
end

local function dispatch(self, sid, message)
  local fn = self.subscriptions[sid]
  if fn then fn(message) end
end

-- A count of bytes, in plain digits: tonumber knows other words too, "nan" among them.
local function count(word)
  return word and word:match "^%d+$" and tonumber(word)
end

-- @return whether the connection goes on
local function read_message(self, line)
  local kind, rest = line:match "^(%S+)%s*(.*)$"
  local words = {}
  for word in rest:gmatch "%S+" do words[#words + 1] = word end
  local total = count(words[#words])
  local header_size = 0
  if kind == "HMSG" then header_size = count(words[#words - 1]) end
  local extra = kind == "HMSG" and 2 or 1
  if not total or not header_size or total > PAYLOAD_MAX - 2 or header_size > total or #words < 2 + extra then
    return self:close "not a message of NATS"
  end
  local bytes, problem = self.stream:read(total + 2)
  if not bytes then return self:close(problem) end
  dispatch(self, words[2], { subject = words[1], reply = #words == 3 + extra and words[3] or nil,
    headers = header_size > 0 and parse_headers(bytes:sub(1, header_size)) or {},
    data = bytes:sub(header_size + 1, total) })
  return true
end

-- What the server says of itself. It does so again when servers of its cluster come or go. @return a table, or nil
local function hear_info(self, line)
  local fine, about = pcall(core.json.decode, line:match "^%S* (.*)" or "")
  if not fine or type(about) ~= "table" then return nil end
  if type(about.connect_urls) == "table" then self.others = about.connect_urls end
  return about
end

function Connection:read_all()
  for line in function() return not self.closed and self:take "*l" or nil end do
    line = line:gsub("\r$", "")
    local verb = line:match "^%S*":upper()
    if verb == "MSG" or verb == "HMSG" then
      if not read_message(self, line) then return end
    elseif verb == "PING" then
      self:write "PONG\r\n"
    elseif verb == "PONG" then
      core.atomic(hear_pong, self)
    elseif verb == "-ERR" then
      local reason = blotted(line:match "'(.*)'" or line, self.secrets)
      self.refused = reason
      -- Rights are refused for one subject; everything else ends the connection.
      if not reason:find "Permissions Violation" then return self:close("the server says: " .. reason) end
    elseif verb == "INFO" then
      hear_info(self, line)
    elseif verb ~= "+OK" then
      return self:close "what came is nothing that NATS says"
    end
  end
end

local function send_ping(self, pong)
  self.pinged = self.pinged + 1
  self.pongs[self.pinged] = pong
  self:write "PING\r\n"
end

--- Pings, and waits for the answer: the server has let us in, and has taken or refused all that was sent before.
-- @number timeout seconds
-- @treturn boolean true; or nil
function Connection:prove(timeout)
  local pong = promise()
  core.atomic(send_ping, self, pong)
  return pong:wait(timeout)
end

local function prove_or_close(self)
  if not self:prove(self.timeout) then self:close "no answer to a ping" end
  self.proving = nil
end

--- Asks whether the server still hears us, and closes the connection where it does not: what it says by itself is no answer,
-- and neither is one that was due long ago.
function Connection:ping()
  if self.proving then return end
  self.proving = true
  core.detach(prove_or_close, self)
end

--- Publishes.
-- @string subject
-- @string[opt] reply subject
-- @tparam[opt] table headers
-- @string data
function Connection:publish(subject, reply, headers, data)
  local head = ""
  if headers and next(headers) then
    local lines = { "NATS/1.0" }
    for name, value in pairs(headers) do lines[#lines + 1] = name .. ": " .. value end
    head = table.concat(lines, "\r\n") .. "\r\n\r\n"
  end
  local to = subject .. (reply and " " .. reply or "")
  if head ~= "" then
    self:write(("HPUB %s %d %d\r\n%s%s\r\n"):format(to, #head, #head + #data, head, data))
  else
    self:write(("PUB %s %d\r\n%s\r\n"):format(to, #data, data))
  end
end

-- One id for two subscriptions would hand one the other's messages.
local function next_id(self)
  self.serial = self.serial + 1
  return ("%d"):format(self.serial)
end

--- Subscribes.
-- @string subject
-- @tparam function fn called with `{ subject, reply, headers, data }`; it must not wait
-- @treturn string the subscription, for unsubscribe
function Connection:subscribe(subject, fn)
  local sid = core.atomic(next_id, self)
  self.subscriptions[sid] = fn
  self:write(("SUB %s %s\r\n"):format(subject, sid))
  return sid
end

--- Ends a subscription.
function Connection:unsubscribe(sid)
  self.subscriptions[sid] = nil
  if not self.closed then self:write(("UNSUB %s\r\n"):format(sid)) end
end

--- Publishes, and waits for the answer.
-- @string subject
-- @tparam[opt] table headers
-- @string data
-- @number timeout seconds for the answer, and as many for its turn
-- @bool[opt] new where nothing is begun by it yet: then it goes out behind all that goes on with something
-- @treturn table the message; or nil, message, code: "store" where nobody answers for that subject
function Connection:request(subject, headers, data, timeout, new)
  local message, problem, code = self.requests:ask { subject = subject, headers = headers, data = data, timeout = timeout,
    new = new }
  if not message then
    if code == "timeout" then self:ping() end
    return nil, self.refused or problem, code
  end
  if message.headers.status == "503" then return nil, "nobody answers there: is JetStream on?", "store" end
  return message
end

local function open_inbox(self)
  self.inbox = ("_INBOX.%s%d."):format(core.token:sub(1, 16), math.random(1, 2 ^ 31))
  self:subscribe(self.inbox .. "*", function(message)
    self.requests:answer(message.subject:sub(#self.inbox + 1), message)
  end)
end

local function greet(self, parsed, place, timeout)
  local line, problem, code = self.stream:read("*l", timeout)
  self.others = {}
  local about = line and line:match "^INFO " and hear_info(self, line)
  if not about then return nil, problem or "what came is nothing that NATS says", code or "protocol" end
  self.server = about.server_id -- another one after each start of a server
  self.name = about.server_name
  if parsed.tls or about.tls_required then
    local fine
    fine, problem, code = self.stream:starttls { ca = parsed.ca, cert = parsed.cert, key = parsed.key,
      server_name = parsed.server_name or place.host, insecure = parsed.insecure == "true" }
    if not fine then return nil, problem, code end
  end
  local words
  words, problem = login.words(parsed, about)
  if not words then return nil, problem, "usage" end
  for _, key in ipairs { "pass", "auth_token", "jwt" } do self.secrets[#self.secrets + 1] = words[key] end
  self:write("CONNECT " .. core.json.encode(words) .. "\r\n")
  return true
end

--- Connects, and says who we are.
-- @tparam table parsed as crown.nats.url gives it
-- @tparam table place `{ host, port }`
-- @number timeout seconds for each step
-- @param[opt] link told how far it is: see crown.link.reconnecting
-- @treturn Connection or nil, message, code
function Connection.open(parsed, place, timeout, link)
  local self, problem, code = Base.dial(Connection, place.host, place.port, { timeout = timeout, link = link })
  if not self then return nil, problem, code end
  self.subscriptions, self.serial, self.pongs, self.pinged, self.ponged = {}, 0, {}, 0, 0
  self.secrets = {}
  self.requests = Requests.new(function(one) self:publish(one.subject, self.inbox .. one.id, one.headers, one.data) end)
  local fine
  fine, problem, code = greet(self, parsed, place, timeout)
  if not fine then
    self:close(problem)
    return nil, problem, code
  end
  self:start()
  open_inbox(self)
  if not self:prove(timeout) then
    self:close "no answer to a ping"
    return nil, self.closed, "closed"
  end
  self:keep_alive()
  return self
end

return Connection
