--- One connection to a MySQL or MariaDB server. Questions wait for each other: the next one is sent when the last one is
-- answered. One that times out ends the connection, so that no answer is ever taken for another's.
-- @internal crown.mysql.connection

local Base = require "crown.link.connection"
local blotted = require "crown.text.blotted"
local core = require "crown.core"
local login = require "crown.mysql.login"
local promise = require "crown.core.promise"
local Queue = require "crown.link.queue"
local wire = require "crown.mysql.wire"

local Connection = Base.extend()
Connection.forgets = true

local UNASKED = "an answer that nobody asked for"
local STRANGE = "unexpected reply from MySQL"
local TOO_LONG = "an answer that is too long"
local NO_TLS = "the server does not offer TLS"
local QUERY, PING = "\3", "\14" -- commands
local MORE = 0x8 -- in a status: another result follows
local MOST = 2 ^ 26 -- bytes of an answer

-- --- answers

-- The next packet of an answer. @return its body; nil: the connection is closed
local function next_packet(self)
  while not self.closed do
    local body, serial = self.packets:next()
    if body == false then return self:close(TOO_LONG) end
    if body then
      if not self.asked then return self:close(body:byte(1) == 0xff and self:said(body) or UNASKED) end
      if serial ~= self.serial % 256 then return self:close(STRANGE) end
      self.serial, self.came = self.serial + 1, self.came + #body
      return self.came <= MOST and body or self:close(TOO_LONG)
    end
    local bytes = self:take "*s"
    if bytes then self.packets:feed(bytes) end
  end
end

--- What the server says in an error.
-- @string body of a packet
-- @treturn string without secrets
-- @treturn number the error's number
function Connection:said(body)
  local text, number = wire.read_error(body)
  return blotted(text, self.secrets), number
end

local function is_end(body)
  return body:byte(1) == 0xfe and #body < 9
end

-- What stands in the packet that ends some. @return its status; or nil where it is none
local function status_of_end(body)
  return is_end(body) and wire.read_number(body, 4, 2)
end

local function read_done(body)
  local changed, at = wire.read_length(body, 2)
  local id, behind = wire.read_length(body, at or #body + 1)
  local status = id and wire.read_number(body, behind, 2)
  if not changed or not status then return nil end
  return { changed = changed }, status
end

-- @return a result with `rows`, and its status; or nil where the connection was closed, or what came was none; or false and the
-- packet of an error
local function read_rows(self, count)
  for _ = 1, count do
    if not next_packet(self) then return nil end
  end
  local body = next_packet(self)
  if not body or not status_of_end(body) then return nil end
  local rows = {}
  for one in function() return next_packet(self) end do
    if one:byte(1) == 0xff then return false, one end
    local status = status_of_end(one)
    if is_end(one) then return status and { rows = rows }, status end
    local row = wire.read_row(one, count)
    if not row then return nil end
    rows[#rows + 1] = row
  end
end

-- @return as read_rows
local function read_result(self, body)
  local first = body:byte(1)
  if first == 0xff then return false, body end
  if first == 0x00 then return read_done(body) end
  local count, behind = wire.read_length(body, 1)
  if not count or behind ~= #body + 1 then return nil end
  return read_rows(self, count)
end

-- @return an array of results; or false and the packet of an error; or nil
local function read_answer(self, body)
  local results, status = {}, MORE
  while body and bit.band(status, MORE) ~= 0 do
    local one
    one, status = read_result(self, body)
    if not one then return one, status end
    results[#results + 1] = one
    body = bit.band(status, MORE) == 0 and body or next_packet(self)
  end
  return body and results
end

-- --- questions

local function send_next(self)
  local one = not self.asked and not self.closed and self.waiting:pop()
  while one and one.gone do one = self.waiting:pop() end
  if not one then return end
  -- Answers have no numbers: what is there before the question would be taken for its answer.
  if self.packets:is_within() or self.stream:has_come() then
    one.answer:resolve(nil, UNASKED, "closed")
    return self:close(UNASKED)
  end
  self.asked, self.serial, self.came = one, 1, 0
  self:write(wire.packet(0, one.command))
end

-- Where a question was a transaction, an error leaves it open: nothing is asked in it.
local function undo(self, one)
  if not one.undo then return end
  self.asked, self.serial, self.came = { command = one.undo, answer = promise() }, 1, 0
  self:write(wire.packet(0, QUERY .. one.undo))
end

local function deliver(self, results, failure)
  local one = self.asked
  self.asked = nil
  if results then
    one.answer:resolve(results)
  else
    local text, number = self:said(failure)
    undo(self, one)
    one.answer:resolve(nil, text, number)
  end
  send_next(self)
end

function Connection:read_all()
  for body in function() return next_packet(self) end do
    local results, failure = read_answer(self, body)
    if self.closed then return end
    if results == nil then return self:close(STRANGE) end
    core.atomic(deliver, self, results, failure)
  end
end

function Connection:give_up(reason)
  local one = self.asked
  self.asked = nil
  while one do
    one.answer:resolve(nil, reason, "closed")
    one = self.waiting:pop()
  end
end

local function push(self, one)
  if self.closed then return one.answer:resolve(nil, self.closed, "closed") end
  self.waiting:push(one)
  send_next(self)
end

local function ask(self, timeout, command, after_error)
  local one = { command = command, undo = after_error, answer = promise() }
  core.atomic(push, self, one)
  local results, problem, code = one.answer:wait(timeout)
  if results then return results end
  one.gone = true
  if code ~= "timeout" and code ~= "cancelled" then return nil, problem, code end
  if self.asked == one and code == "timeout" then self:close "no answer in the time allowed" end
  return nil, self:explained(problem), code
end

--- Runs statements, `;` between them.
-- @number timeout seconds
-- @string sql
-- @string[opt] after_error a statement that is run when one of them fails, before anything else
-- @treturn table a result for each: `{ rows = an array of arrays of texts, false for NULL }` or `{ changed = number of rows }`;
-- or nil, message, code: the server's number, "timeout" or "closed"
function Connection:query(timeout, sql, after_error)
  return ask(self, timeout, QUERY .. sql, after_error)
end

--- Asks whether the server is there, where nothing else is asked.
function Connection:ping()
  if self.asked then return end
  core.atomic(push, self, { command = PING, answer = promise() })
end

-- --- opening

-- @return so many bytes; or nil, message, code
local function read_exactly(self, size, timeout)
  local bytes, problem, code = self.stream:read(size, timeout)
  if bytes and #bytes < size then return nil, "closed", "closed" end
  return bytes, problem, code
end

-- A packet of the login. @return its body; or nil, message, code
local function read_packet(self, timeout)
  local head, problem, code = read_exactly(self, 4, timeout)
  if not head then return nil, problem, code end
  self.serial = head:byte(4) + 1
  local length = wire.read_number(head, 1, 3)
  if length == 0 or length > 2 ^ 16 then return nil, STRANGE, "protocol" end
  return read_exactly(self, length, timeout)
end

local function start_tls(self, parsed, place)
  local written, problem, code = self.stream:write(wire.packet(self.serial, login.tls_request()))
  if not written then return nil, problem, code end
  self.serial = self.serial + 1
  return self.stream:starttls { ca = parsed.ca, cert = parsed.cert, key = parsed.key,
    server_name = parsed.server_name or place.host, insecure = parsed.insecure == "true" }
end

local function log_in(self, parsed, place, timeout)
  local body, problem, code = read_packet(self, timeout)
  if not body then return nil, problem, code end
  self.greeting, problem = login.read_greeting(body)
  if not self.greeting then return nil, blotted(problem, self.secrets) end
  if self.greeting.old then return nil, "this server is older than MySQL 5.7", "usage" end
  if parsed.tls and not self.greeting.tls then return nil, NO_TLS, "tls" end
  if parsed.tls then
    local fine
    fine, problem, code = start_tls(self, parsed, place)
    if not fine then return nil, problem, code end
  end
  local answer = login.words(parsed, self.greeting, parsed.tls)
  while answer ~= true do
    if answer then self:write(wire.packet(self.serial, answer)) end
    body, problem, code = read_packet(self, timeout)
    if not body then return nil, problem, code end
    answer, problem, code = login.answer(body, parsed, parsed.tls or place.port == 0)
    if answer == nil then return nil, blotted(problem, self.secrets), code end
  end
  return true
end

--- Connects, and says who we are.
-- @tparam table parsed of crown.mysql.url
-- @tparam table place `{ host, port }`
-- @number timeout seconds for each step
-- @param[opt] link told how far it is: see crown.link.reconnecting
-- @treturn Connection with `greeting`, what the server said first; or nil, message, code
function Connection.open(parsed, place, timeout, link)
  local self, problem, code = Base.dial(Connection, place.host, place.port, { store = "mysql", secure = parsed.tls,
    timeout = timeout, link = link })
  if not self then return nil, problem, code end
  self.packets, self.waiting, self.secrets = wire.packets(), Queue.new(), { parsed.password }
  local fine
  fine, problem, code = log_in(self, parsed, place, timeout)
  if not fine then
    self:close(problem)
    return nil, problem, code
  end
  self:start()
  self:keep_alive()
  return self
end

return Connection
