--- One connection to a ZooKeeper server, which is in a session there. The server answers in the order in which it was asked. A
-- question that times out ends the connection.
-- @internal crown.zookeeper.connection

local Base = require "crown.link.connection"
local core = require "crown.core"
local promise = require "crown.core.promise"
local Queue = require "crown.link.queue"
local wire = require "crown.zookeeper.wire"

local Connection = Base.extend()
Connection.forgets = true

local STRANGE = "unexpected reply from ZooKeeper"
local SILENT = "it ended the connection without a word: it is not in a quorum, or takes no more connections from this address"
local LONGEST = 2 ^ 24 -- bytes of an answer

-- @return a packet; or nil: the connection is closed
local function take_packet(self)
  local head = self:take(4)
  if not head or #head < 4 then return self:close "closed" end
  local size = wire.read_int(head, 1)
  if size < 0 or size > LONGEST then return self:close(STRANGE) end
  local bytes = self:take(size)
  if bytes and #bytes == size then return bytes end
  self:close "closed"
end

-- @return whether it was what it should be
local function answer(self, head, bytes)
  local one = self.asked:pop()
  if not one or one.xid ~= head.xid then return false end
  self.zxid = head.zxid
  if head.code ~= 0 then
    one.answer:resolve(nil, wire.words(head.code), head.code)
    return true
  end
  local found = wire.answer[one.kind](bytes, head.at)
  if not found then return false end
  one.answer:resolve(found)
  return true
end

function Connection:read_all()
  for bytes in function() return take_packet(self) end do
    local head = wire.read_head(bytes)
    if not head then return self:close(STRANGE) end
    if head.xid == wire.EVENT then
      local what, path = wire.read_event(bytes, head.at)
      if not what then return self:close(STRANGE) end
      if self.on_event then self.on_event(what, path) end
    elseif head.xid == wire.AUTH then
      if head.code ~= 0 then return self:close(wire.words(head.code)) end
    elseif not core.atomic(answer, self, head, bytes) then
      return self:close(STRANGE)
    end
  end
end

function Connection:give_up(reason)
  for one in function() return self.asked:pop() end do one.answer:resolve(nil, reason, "closed") end
end

-- Nothing comes between a question's place in the queue and its place in what is written.
local function send(self, one, body)
  if self.closed then return one.answer:resolve(nil, self.closed, "closed") end
  self.serial = self.serial % 2 ^ 30 + 1
  one.xid = self.serial
  self.asked:push(one)
  self:write(wire.packet(wire.int(one.xid) .. wire.int(wire.TYPES[one.kind]) .. body))
end

--- Asks, and waits for the answer.
-- @number timeout seconds
-- @string kind of crown.zookeeper.wire.TYPES
-- @param ... what its body is made of
-- @treturn table the answer; or nil, message, code: ZooKeeper's number, "timeout" or "closed"
function Connection:ask(timeout, kind, ...)
  local one = { kind = kind, answer = promise() }
  core.atomic(send, self, one, wire.body[kind](...))
  local found, problem, code = one.answer:wait(timeout)
  if found then return found end
  if code == "timeout" then self:close "no answer in the time allowed" end
  if code == wire.MOVED or code == wire.EXPIRED or code == wire.LOST then self:close(problem) end
  return nil, self:explained(problem), code
end

local function tls_of(parsed, host)
  if not parsed.tls then return nil end
  return { ca = parsed.ca, cert = parsed.cert, key = parsed.key, server_name = parsed.server_name or host,
    insecure = parsed.insecure == "true" }
end

local function greet(self, session, timeout)
  self:write(wire.packet(wire.hello(session)))
  local head, problem, code = self.stream:read(4, timeout)
  if not head or #head < 4 then return nil, code == "timeout" and problem or SILENT, code or "closed" end
  local size = wire.read_int(head, 1)
  if size < 0 or size > 1024 then return nil, STRANGE, "protocol" end
  local bytes
  bytes, problem, code = self.stream:read(size, timeout)
  self.welcome = bytes and wire.read_welcome(bytes)
  if not self.welcome then return nil, problem or STRANGE, code or "protocol" end
  return true
end

--- Connects, and enters a session.
-- @tparam table parsed of crown.zookeeper.url
-- @tparam table place one of its hosts
-- @tparam table session `ttl` in seconds; `id`, `password` of one that there is
-- @number timeout seconds for each step
-- @param[opt] link told how far it is: see crown.link.reconnecting
-- @treturn Connection its `welcome` is what the server said of the session; or nil, message, code
function Connection.open(parsed, place, session, timeout, link)
  local self, problem, code = Base.dial(Connection, place.host, place.port, { store = "zookeeper", timeout = timeout,
    tls = tls_of(parsed, place.host), link = link })
  if not self then return nil, problem, code end
  self.asked, self.serial, self.zxid = Queue.new(), 0, wire.ZERO
  self.dialled = core.now()
  local fine
  fine, problem, code = greet(self, session, timeout)
  if not fine then
    self:close(problem)
    return nil, self.closed, code
  end
  self:start()
  if parsed.user then
    self:write(wire.packet(wire.int(wire.AUTH) .. wire.int(wire.TYPES.auth)
      .. wire.body.auth("digest", parsed.user .. ":" .. parsed.password)))
  end
  return self
end

return Connection
