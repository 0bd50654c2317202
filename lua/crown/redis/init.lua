--- A Redis client for oracles and handlers: `crown.redis`.
-- @module crown.redis

local Client = require "crown.redis.client"
local Subscriber = require "crown.redis.subscriber"
local subscription = require "crown.core.subscription"

local redis = {}

local Public = {}
Public.__index = Public

--- Connects.
-- @string url `redis://user:password@host:port/db`, `rediss://`, `redis+unix:///path`,
-- `redis+sentinel://host:port/MASTER`
-- @tparam[opt] table options `timeout` in seconds for each command (5)
-- @treturn Client with `call`, `subscribe`, `close`; or nil, message, code
function redis.connect(url, options)
  local timeout = options and options.timeout or 5
  local client, problem = Client.new(url, { timeout = timeout })
  if not client then return nil, problem, "usage" end
  local ready, code
  ready, problem, code = client:ready()
  if not ready then
    client:close()
    return nil, problem, code
  end
  return setmetatable({ client = client, url = url, timeout = timeout }, Public)
end

--- Runs a command: `client:call("SET", key, value)`.
-- @param ... its words: strings and numbers
-- @return the answer: a string, a number, a table (with its length in `n`), nil for a null; or nil, message, code
function Public:call(...)
  return self.client:call(...)
end

--- Subscribes to a channel, on a connection of its own; inside a term until its end.
-- @string channel
-- @tparam function fn called in a task with each message, and with nil whenever some may have been missed
-- @return true, or nil and a message
function Public:subscribe(channel, fn)
  if not self.subscriber then
    local problem
    self.subscriber, problem = Subscriber.new(self.url, self.timeout)
    if not self.subscriber then return nil, problem end
  end
  local member, problem
  local function tell(payload) member:tell(payload) end
  member, problem = subscription(fn, function() self.subscriber:unsubscribe(channel, tell) end)
  if not member then return nil, problem end
  self.subscriber:subscribe(channel, tell)
  return true
end

--- Closes its connections.
function Public:close()
  self.client:close()
  if self.subscriber then self.subscriber:close() end
end

return redis
