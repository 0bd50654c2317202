--- One connection to a Redis server: commands are pipelined, and what is asked in one turn goes out in one write. A
-- command that times out ends the connection, so that no answer is ever taken for another's.
-- @internal crown.redis.connection

local Base = require "crown.link.connection"
local blotted = require "crown.text.blotted"
local core = require "crown.core"
local promise = require "crown.core.promise"
local resp = require "crown.core.resp"

local Connection = Base.extend()
Connection.forgets = true

local UNASKED = "an answer that nobody asked for"

function Connection:give_up(reason)
  local waiting, first, last = self.waiting, self.first, self.last
  self.waiting, self.first, self.last = {}, 1, 0
  for i = first, last do waiting[i]:resolve(nil, reason, "closed") end
  if self.greeted then self.greeted:resolve(nil, reason, "closed") end
end

local function deliver(self, kind, value)
  if self.on_message then
    if value == "PONG" and kind ~= "error" then return end -- the answer to a ping while no channel is subscribed to
    if kind == "error" and value:find "^NOPERM" and self.on_refusal then return self.on_refusal(value) end
    if kind == "error" then return self:close(blotted(value, self.secrets)) end
    if type(value) ~= "table" then return self:close "unexpected message on a channel of Redis" end
    return self.on_message(value)
  end
  local asked = self.waiting[self.first]
  if not asked then return self:close(kind == "error" and blotted(value, self.secrets) or UNASKED) end -- it may be full
  self.waiting[self.first] = nil
  self.first = self.first + 1
  if kind == "error" then
    asked:resolve(nil, blotted(value, self.secrets), value:match "^(%u+)" or "ERR")
  else
    asked:resolve(value)
  end
end

function Connection:read_all()
  for bytes in function() return not self.closed and self:take "*s" or nil end do
    self.reader:feed(bytes)
    while not self.closed do
      local kind, value = self.reader:next()
      if kind then
        deliver(self, kind, value)
      elseif value then
        return self:close(value)
      else
        break
      end
    end
  end
end

--- Sends a command without waiting for its answer.
-- @param ... its words
function Connection:send(...)
  self:write(resp.format { ... })
end

-- In the order of the line are the answers: nobody may come between the place in the queue and the command.
local function ask(self, asked, ...)
  -- Answers have no numbers: what is there before the question would be taken for its answer.
  local idle = self.first > self.last and not self.on_message
  local is_unasked = not self.closed and idle and (self.reader:is_within() or self.stream:has_come())
  if is_unasked and not self.heard then
    self.greeted = asked -- a server that is full says so at once: what it says is read, and closes the connection
    return
  end
  if is_unasked then self:close(UNASKED) end
  if self.closed then return asked:resolve(nil, self.closed, "closed") end
  self.last = self.last + 1
  self.waiting[self.last] = asked
  self:send(...)
end

local function ask_after_asking(self, asked, ...)
  ask(self, promise(), "ASKING")
  ask(self, asked, ...)
end

local function call(self, way, timeout, ...)
  local asked = promise()
  core.atomic(way, self, asked, ...)
  local value, problem, code = asked:wait(timeout)
  if code ~= "timeout" then return value, problem, code end
  self:close "no answer in the time allowed"
  return nil, self:explained(problem), code
end

--- Sends a command and waits for its answer.
-- @number timeout seconds
-- @param ... its words
-- @return the answer; or nil, message, code ("timeout", "closed", or the server's word such as "NOAUTH"); a null is
-- nil alone
function Connection:call(timeout, ...)
  return call(self, ask, timeout, ...)
end

--- The same, with ASKING before it: for a slot that is on its way to this server.
function Connection:call_asking(timeout, ...)
  return call(self, ask_after_asking, timeout, ...)
end

function Connection:ping()
  if self.on_message then return self:send "PING" end
  core.atomic(ask, self, promise(), "PING")
end

-- What Redis says to a password where it has none: since 6.0, and before.
local NO_PASSWORD = { "without any password configured", "but no password is set" }

local function without_password(problem, code)
  for _, words in ipairs(NO_PASSWORD) do
    if problem and problem:find(words, 1, true) then return "the server has no password: leave it out of the URL", "usage" end
  end
  return problem, code
end

local function greet(self, parsed, timeout)
  local fine, problem, code
  if parsed.password then
    if parsed.user then
      fine, problem, code = self:call(timeout, "AUTH", parsed.user, parsed.password)
    else
      fine, problem, code = self:call(timeout, "AUTH", parsed.password)
    end
    if not fine then return nil, without_password(problem, code) end
  end
  if parsed.db and parsed.db ~= 0 then
    fine, problem, code = self:call(timeout, "SELECT", ("%d"):format(parsed.db))
    if not fine then return nil, problem, code == "ERR" and "usage" or code end -- there is no such database
  end
  return true
end

local function tls_of(parsed, host)
  if not parsed.tls then return nil end
  return { ca = parsed.ca, cert = parsed.cert, key = parsed.key, server_name = parsed.server_name or host,
    insecure = parsed.insecure == "true" }
end

--- Connects, and says who we are.
-- @tparam table parsed as crown.redis.url gives it
-- @tparam table place `{ host, port }`, or nil for a UNIX socket
-- @number timeout seconds for each step
-- @param[opt] link told how far it is: see crown.link.reconnecting
-- @treturn Connection or nil, message, code
function Connection.open(parsed, place, timeout, link)
  local host, port = "unix:" .. (parsed.path or ""), 0
  if place then host, port = place.host, place.port end
  local self, problem, code = Base.dial(Connection, host, port, { store = parsed.sentinel and "sentinel" or "redis",
    timeout = timeout, tls = tls_of(parsed, host), link = link })
  if not self then return nil, problem, code end
  self.reader, self.waiting, self.first, self.last, self.secrets = resp.reader(), {}, 1, 0, { parsed.password }
  self:start()
  local fine
  fine, problem, code = greet(self, parsed, timeout)
  if not fine then
    self:close(problem)
    return nil, problem, code
  end
  self:keep_alive()
  return self
end

return Connection
