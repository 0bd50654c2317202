--- A client that keeps one connection, and makes it anew when it breaks: with backoff, told once.
-- @module crown.redis.client

local Connection = require "crown.redis.connection"
local core = require "crown.core"
local elections = require "crown.core.election"
local promise = require "crown.core.promise"
local redis_url = require "crown.redis.url"
local sentinel = require "crown.redis.sentinel"

local Client = {}
Client.__index = Client

local FIRST_PAUSE, MOST_PAUSE = 0.05, 2

local function tell(self, event, problem)
  if self.label then
    elections.emit(event, { store = self.label, server = self.server, error = problem })
  end
end

local function open(self)
  local place, problem = self.place or self.parsed.hosts and self.parsed.hosts[1]
  if self.parsed.master then
    place, problem = sentinel.primary(self.parsed, self.timeout)
    if not place then return nil, problem end
  end
  self.server = place and ("%s:%d"):format(place.host, place.port) or redis_url.label(self.parsed)
  local connection, why = Connection.open(self.parsed, place, self.timeout)
  if not connection then return nil, why end
  local fine = true
  if self.setup then fine, why = self.setup(connection) end
  if fine then return connection end
  connection:close(why)
  return nil, why
end

local function wake(self, ...)
  local waiting = self.waiting
  self.waiting = {}
  for _, one in ipairs(waiting) do one:resolve(...) end
end

local connect

local function lost(self, reason)
  if self.connection then
    self.connection = nil
    tell(self, "oracle.disconnected", reason)
    self.told = reason
  end
  connect(self)
end

connect = function(self)
  if self.connecting or self.closed then return end
  self.connecting = true
  core.detach(function()
    while not self.closed do
      local connection, problem = open(self)
      if self.closed then
        if connection then connection:close() end
        return
      end
      if connection and not connection.closed then
        self.connecting, self.connection, self.pause, self.problem, self.told = false, connection, FIRST_PAUSE, nil, nil
        connection.on_close = function(reason) lost(self, reason) end
        tell(self, "oracle.connected")
        return wake(self, connection)
      end
      self.problem = problem or "the connection closed at once"
      if self.told ~= self.problem then tell(self, "oracle.disconnected", self.problem) end
      self.told = self.problem
      wake(self, nil, self.problem, "closed")
      core.sleep(self.pause * (0.5 + math.random() / 2))
      self.pause = math.min(self.pause * 2, MOST_PAUSE)
    end
  end)
end

--- Makes a client; it connects by itself.
-- @string url
-- @tparam table options `timeout`; `label` for its events, nil for none; `setup(connection)`, run before anything else;
-- `place`, `{ host, port }`: another server of the same cluster
-- @treturn Client or nil and a message
function Client.new(url, options)
  local parsed, problem = redis_url.parse(url)
  if not parsed then return nil, problem end
  local self = setmetatable({ parsed = parsed, timeout = options.timeout or 5, label = options.label,
    setup = options.setup, place = options.place, waiting = {}, pause = FIRST_PAUSE,
    server = redis_url.label(parsed) }, Client)
  connect(self)
  return self
end

--- Waits until there is a connection.
-- @number[opt] timeout seconds
-- @treturn Connection or nil, message, code
function Client:ready(timeout)
  if self.closed then return nil, "closed", "closed" end
  if self.connection then return self.connection end
  local one = promise()
  self.waiting[#self.waiting + 1] = one
  local connection, problem, code = one:wait(timeout or self.timeout)
  if code == "timeout" then problem = self.problem or problem end
  return connection, problem, code
end

-- The server is not, or not yet, one that takes writes: the next connection may lead to another.
local ELSEWHERE = { READONLY = true, LOADING = true, MASTERDOWN = true, NOAUTH = true }

--- Runs a command.
-- @param ... its words
-- @return the answer; or nil, message, code; a null is nil alone
function Client:call(...)
  local connection, problem, code = self:ready()
  if not connection then return nil, problem, code end
  local value
  value, problem, code = connection:call(self.timeout, ...)
  if ELSEWHERE[code] then connection:close(problem) end
  return value, problem, code
end

--- Ends it.
function Client:close()
  self.closed = true
  wake(self, nil, "closed", "closed")
  if self.connection then self.connection:close() end
  self.connection = nil
end

return Client
