--- What connections to stores have in common: dialled, written by an outbox, read by a task behind a barrier, asked for a sign of
-- life when they are silent. A store's own class says how it logs in, how it frames what comes, and who waits for answers:
--
--    read_all(self)         reads until the connection closes
--    give_up(self, reason)  tells those who wait; closed by then
--    ping(self)             asks for a sign of life
--    forgets                true: where it is given up for a reason, it is reset
--
-- @internal crown.link.connection

local barrier = require "crown.link.barrier"
local core = require "crown.core"
local explain = require "crown.link.explain"
local Outbox = require "crown.link.outbox"
local promise = require "crown.core.promise"
local tcp = require "crown.core.tcp"

local Connection = {}
Connection.__index = Connection

local FOREVER = 1e9
local PING_LEAST, PING_MOST = 1, 10 -- seconds of silence after which a server is asked whether it is there

--- Makes a class.
-- @treturn table
function Connection.extend()
  local class = setmetatable({}, Connection)
  class.__index = class
  return class
end

--- Dials.
-- @tparam table class as extend made it
-- @string host
-- @number port
-- @tparam table options `store`, how messages name it; `timeout` seconds for each step; `silence` seconds after which the kernel
-- takes a peer that acknowledges nothing for gone (as many); `tls`, or `secure` where that begins later; `link`
-- (crown.link.reconnecting), which is told how far it is: by its timeout signs of life are judged, also where this try may take
-- longer
-- @treturn Connection or nil, message, code
function Connection.dial(class, host, port, options)
  local link, server, tls = options.link, explain.place(host, port), (options.tls or options.secure) and true or false
  local stream, problem, code = tcp.connect(host, port, { timeout = options.timeout,
    silence = options.silence or options.timeout, tls = options.tls,
    on_opening = link and function(opening) link:on_opening(opening) end })
  local knows = link ~= nil and link.heard ~= nil -- that host and port are right: an earlier connection has heard of it
  if not stream then return nil, explain.problem(problem, options.store, server, tls, knows), code end
  if link then link:logging_in() end
  stream:set_timeout(options.timeout)
  local self = setmetatable({ stream = stream, timeout = link and link.timeout or options.timeout, over = promise(),
    store = options.store, place_named = server, is_secure = tls, knows = knows }, class)
  self.outbox = Outbox.new(stream, function(...) self:failed(...) end)
  return self
end

--- A problem in words that name the store and the server, and what to look at next.
-- @string problem
-- @treturn string
function Connection:explained(problem)
  if not self.store then return problem end
  return explain.problem(problem, self.store, self.place_named, self.is_secure, self.knows or self.heard ~= nil)
end

--- What is done when a write fails.
-- @string why
function Connection:failed(why)
  self:close(why)
end

--- Ends the connection for good; whoever waits is told why.
-- @string[opt] reason
function Connection:close(reason)
  if self.closed then return end
  self.closed = self:explained(reason or "closed")
  -- A server that hangs would not notice its end, and see one more with each new one.
  if reason and self.forgets then self.stream:reset() else self.stream:close() end
  self.over:resolve(true)
  self:give_up(self.closed)
  if self.on_close then self.on_close(self.closed) end
end

--- Starts reading: in a task, whose errors end the connection.
function Connection:start()
  barrier.detach(function(why) self:close(why) end, self.read_all, self)
end

--- Reads for as long as it takes, and takes note of the sign of life.
-- @param format as for crown.tcp
-- @treturn string or nil: the connection is closed
function Connection:take(format)
  local bytes, problem = self.stream:read(format, FOREVER)
  if bytes then
    self.heard = core.now()
    return bytes
  end
  self:close(problem)
end

--- Writes soon; what is written in one turn goes out at once.
-- @string bytes
function Connection:write(bytes)
  self.outbox:write(bytes)
end

local function watch(self)
  local most = math.max(PING_LEAST, math.min(PING_MOST, 2 * self.timeout))
  local began = core.now()
  while not self.closed do
    self.over:wait(math.max(0.01, (self.heard or began) + most - core.now()))
    local asked = core.now()
    if not self.closed and asked - (self.heard or began) >= most then
      self:ping()
      self.over:wait(self.timeout)
      if (self.heard or began) < asked then self:close "no answer to a ping" end
    end
  end
end

--- Looks after the connection from now on: a server that is silent for long is gone. The sooner, the less time a question may
-- take.
function Connection:keep_alive()
  core.detach(watch, self)
end

return Connection
