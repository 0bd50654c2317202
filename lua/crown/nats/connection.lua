--- One connection to a NATS server: publish, subscribe, request. Nothing is kept for after a reconnect.
-- @internal crown.nats.connection

local Base = require "crown.link.connection"
local blotted = require "crown.text.blotted"
local core = require "crown.core"
local json = require "crown.text.json"
local login = require "crown.nats.login"
local nats = require "crown.core.nats"
local promise = require "crown.core.promise"
local Requests = require "crown.nats.requests"
local store_options = require "crown.oracle.options"

local Connection = Base.extend()
Connection.forgets = true

local NOBODY = "503" -- the status of what the server says itself where nobody answers
local INBOX = "_INBOX."
local VERSION = "NATS/1.0\r\n"
local AGAIN = 10 -- seconds until a subscription that a right forbids is tried again: rights change while a server runs
local IN_VAIN = "%s has no effect without TLS, and the server does not ask for it: have the URL begin with tls://"
local NO_TLS = "the server does not offer TLS"

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

-- What the server says of itself. It does so again when servers of its cluster come or go. @return a table, or nil
local function hear_info(self, line)
  local about = json.object(line:match "^%S* (.*)" or "")
  if not about then return nil end
  if type(about.connect_urls) == "table" then self.others = about.connect_urls end
  return about
end

local function subscribe_again(self, sid, subject)
  core.sleep(AGAIN)
  self.denied[sid] = nil
  if self.closed or not self.subscriptions[sid] then return end
  self:write(("SUB %s %s\r\n"):format(subject, sid))
  if not self:prove(self.timeout) or self.denied[sid] then return end
  self.lacks = nil
  if self.link then self.link:lacking(nil) end
end

-- The server has dropped a subscription, or has never taken it.
local function lose_subscription(self, subject, reason)
  for sid, one in pairs(self.subjects) do
    if one == subject and self.subscriptions[sid] and not self.denied[sid] then
      self.denied[sid], self.lacks = true, self:explained("the server says: " .. reason)
      core.detach(subscribe_again, self, sid, subject)
      if self.link then self.link:lacking(self.lacks) end
    end
  end
end

-- A right that is missing for one subject. Without the inbox no answer comes at all: then the connection is given up, and the
-- next one subscribes to it anew.
-- @return whether the connection goes on
local function hear_denial(self, line, reason)
  local what, subject = line:match 'Permissions Violation for (%a+) to "([^"]*)"'
  if what == "Publish" then
    self.requests:deny(subject, reason)
  elseif what == "Subscription" then
    if subject:sub(1, #INBOX) == INBOX then return self:close("the server says: " .. reason) end
    lose_subscription(self, subject, reason)
  end
  return true
end

-- The server's words, without what differs each time: the random name of an inbox, the number of a subscription.
local function reason_of(self, line)
  local reason = blotted(line:match "'(.*)'" or line, self.secrets)
  return (reason:gsub('"_INBOX%.[^"]*"', '"_INBOX.>"'):gsub(' %(sid "[^"]*"%)', ""))
end

-- @return whether the connection goes on
local function hear_line(self, line)
  local verb = line:match "^%S*":upper()
  if verb == "PING" then
    self:write "PONG\r\n"
  elseif verb == "PONG" then
    core.atomic(hear_pong, self)
  elseif verb == "-ERR" then
    local reason = reason_of(self, line)
    self.refused = reason
    if not reason:find "Permissions Violation" then return self:close("the server says: " .. reason) end
    return hear_denial(self, line, reason)
  elseif verb == "INFO" then
    hear_info(self, line)
  elseif verb ~= "+OK" then
    return self:close "unexpected message from NATS"
  end
  return true
end

-- @return whether the connection goes on
local function hear(self, reader)
  local what, text = reader:next()
  while what do
    if what == "message" then
      local fn = self.subscriptions[text]
      if fn then fn(reader) end
    elseif not hear_line(self, text) then
      return false
    end
    if self.closed then return false end
    what, text = reader:next()
  end
  return not text or self:close(text)
end

function Connection:read_all()
  local reader = nats.reader()
  for bytes in function() return not self.closed and self:take "*s" or nil end do
    reader:feed(bytes)
    if not hear(self, reader) then return end
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

local function publication(subject, reply, headers, data)
  local to = reply and subject .. " " .. reply or subject
  if not headers then return ("PUB %s %d\r\n%s\r\n"):format(to, #data, data) end
  local size = #VERSION + #headers + 2
  return ("HPUB %s %d %d\r\n%s%s\r\n%s\r\n"):format(to, size, size + #data, VERSION, headers, data)
end

--- Publishes.
-- @string subject
-- @string[opt] reply subject
-- @string[opt] headers each a line with its end
-- @string data
function Connection:publish(subject, reply, headers, data)
  self:write(publication(subject, reply, headers, data))
end

-- One id for two subscriptions would hand one the other's messages.
local function next_id(self)
  self.serial = self.serial + 1
  return ("%d"):format(self.serial)
end

--- Subscribes.
-- @string subject
-- @tparam function fn called with a message (crown.core.nats), which is gone afterwards; it must not wait
-- @treturn string the subscription, for unsubscribe
function Connection:subscribe(subject, fn)
  local sid = core.atomic(next_id, self)
  self.subscriptions[sid], self.subjects[sid] = fn, subject
  self:write(("SUB %s %s\r\n"):format(subject, sid))
  return sid
end

--- Ends a subscription.
function Connection:unsubscribe(sid)
  self.subscriptions[sid], self.subjects[sid] = nil, nil
  if not self.closed then self:write(("UNSUB %s\r\n"):format(sid)) end
end

local function asked(self, answer, problem, code)
  if answer then return answer end
  if answer == false then return nil, self:explained "nobody answers there: is JetStream on?", "store" end
  if code == "timeout" then self:ping() end
  return nil, self:explained(problem), code
end

--- Publishes, and waits for the answer.
-- @string subject
-- @string[opt] headers each a line with its end
-- @string data
-- @number timeout seconds for the answer, and as many for its turn
-- @bool[opt] new where nothing is begun by it yet: then it goes out behind all that goes on with something
-- @return the answer's text, or of a plain acknowledgement of JetStream's the sequence; or nil, message, code: "store" where
-- nobody answers for that subject, or no right allows to ask there
function Connection:request(subject, headers, data, timeout, new)
  return asked(self, self.requests:ask { subject = subject, headers = headers, data = data, timeout = timeout, new = new })
end

--- Publishes many at once, and waits for all answers.
-- @tparam table words subject, headers and data of each, one after the other
-- @number count how many
-- @number timeout seconds for the answers, and as many for their turn
-- @treturn table the answers as `request` has them, false where nobody answers: those that have come, more may come later; or
-- nil where none was asked
-- @treturn[opt] string why there are not all
function Connection:request_all(words, count, timeout)
  local lot = { words = words, count = count, timeout = timeout, answers = {} }
  local fine, problem = asked(self, self.requests:ask(lot))
  return lot.sent and lot.answers, not fine and problem or nil
end

local function send(self, one)
  local words = one.words
  if not words then return self:publish(one.subject, self.inbox .. one.id, one.headers, one.data) end
  local all = {}
  for i = 1, one.count do
    all[i] = publication(words[3 * i - 2], self.inbox .. (one.id + i - 1), words[3 * i - 1], words[3 * i])
  end
  self:write(table.concat(all))
end

local function open_inbox(self)
  self.inbox = ("%s%s%d."):format(INBOX, core.token:sub(1, 16), math.random(1, 2 ^ 31))
  local size = #self.inbox
  self:subscribe(self.inbox .. "*", function(message)
    local id = message:place(size)
    if id then self.requests:answer(id, message:status() ~= NOBODY and (message:acknowledged() or message:data())) end
  end)
end

local function greet(self, parsed, place, timeout)
  local line, problem, code = self.stream:read("*l", timeout)
  self.others = {}
  local about = line and line:match "^INFO " and hear_info(self, line)
  if not about then return nil, problem or "unexpected message from NATS", code or "protocol" end
  self.server = about.server_id -- another one after each start of a server
  self.name = about.server_name
  if parsed.tls and not (about.tls_required or about.tls_available) then return nil, NO_TLS, "tls" end
  local secure = parsed.tls or about.tls_required
  local vain = not secure and store_options.of_tls(parsed)
  if vain then return nil, IN_VAIN:format(vain), "usage" end
  if secure then
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
  local self, problem, code = Base.dial(Connection, place.host, place.port, { store = "nats", secure = parsed.tls,
    timeout = timeout, link = link })
  if not self then return nil, problem, code end
  self.subscriptions, self.subjects, self.denied, self.link = {}, {}, {}, link
  self.serial, self.pongs, self.pinged, self.ponged = 0, {}, 0, 0
  self.secrets = {}
  self.requests = Requests.new(function(one) send(self, one) end)
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
