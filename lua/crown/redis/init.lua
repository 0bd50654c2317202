--- A Redis client for oracles and handlers: `crown.redis`.
-- @module crown.redis

local Client = require "crown.redis.client"
local Subscriber = require "crown.redis.subscriber"

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

--- Subscribes to a channel, on a connection of its own.
-- @string channel
-- @tparam function fn called in a task with each message, and with nil whenever some may have been missed
function Public:subscribe(channel, fn)
  if not self.subscriber then self.subscriber = Subscriber.new(self.url, self.timeout) end
  self.subscriber:subscribe(channel, fn)
end

--- Closes its connections.
function Public:close()
  self.client:close()
  if self.subscriber then self.subscriber:close() end
end

return redis
