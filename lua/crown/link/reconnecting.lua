--- One connection to a store, made anew when it breaks: with backoff and jitter, told once and not at every try.
-- @module crown.link.reconnecting

local core = require "crown.core"
local elections = require "crown.core.election"
local promise = require "crown.core.promise"

local Reconnecting = {}
Reconnecting.__index = Reconnecting

local FIRST_PAUSE, MOST_PAUSE = 0.05, 2

local function tell(self, event, problem)
  if self.label then elections.emit(event, { store = self.label, server = self.server, error = problem }) end
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

local function take(self, connection)
  self.connecting, self.connection, self.pause, self.problem, self.told = false, connection, FIRST_PAUSE, nil, nil
  connection.on_close = function(reason) lost(self, reason) end
  tell(self, "oracle.connected")
  wake(self, connection)
end

connect = function(self)
  if self.connecting or self.closed then return end
  self.connecting = true
  core.detach(function()
    while not self.closed do
      local connection, problem = self.open(self)
      if self.closed then
        if connection then connection:close() end
        return
      end
      if connection and not connection.closed then return take(self, connection) end
      self.problem = problem or "the connection closed at once"
      if self.told ~= self.problem then tell(self, "oracle.disconnected", self.problem) end
      self.told = self.problem
      wake(self, nil, self.problem, "closed")
      core.sleep(self.pause * (0.5 + math.random() / 2))
      self.pause = math.min(self.pause * 2, MOST_PAUSE)
    end
  end)
end

--- Makes one; it connects by itself.
-- @tparam table options `open(self)` → a connection (with `closed`, `on_close`, `close`), or nil and a message; it may set
-- `self.server`; `label` for events, nil for none; `timeout` in seconds; `server`, how messages name it
-- @treturn Reconnecting
function Reconnecting.new(options)
  local self = setmetatable({ open = options.open, label = options.label, timeout = options.timeout,
    server = options.server, waiting = {}, pause = FIRST_PAUSE }, Reconnecting)
  connect(self)
  return self
end

--- Waits until there is a connection.
-- @number[opt] timeout seconds
-- @return the connection; or nil, message, code
function Reconnecting:ready(timeout)
  if self.closed then return nil, "closed", "closed" end
  if self.connection then return self.connection end
  local one = promise()
  self.waiting[#self.waiting + 1] = one
  local connection, problem, code = one:wait(timeout or self.timeout)
  if code == "timeout" then problem = self.problem or problem end
  return connection, problem, code
end

--- Ends it.
function Reconnecting:close()
  self.closed = true
  wake(self, nil, "closed", "closed")
  if self.connection then self.connection:close() end
  self.connection = nil
end

return Reconnecting
