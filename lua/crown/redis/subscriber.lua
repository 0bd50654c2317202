--- Channels, on a connection of their own, which is made anew when it breaks.
-- @internal crown.redis.subscriber

local Client = require "crown.redis.client"
local core = require "crown.core"

local Subscriber = {}
Subscriber.__index = Subscriber

-- Messages go to their functions in tasks; the server's word that it has subscribed means: some may have been missed.
local function hear(self, message)
  local kind, channel, payload = message[1], message[2], message[3]
  local fns = self.channels[channel]
  if not fns then return end
  for _, fn in ipairs(fns) do
    if kind == "message" then
      core.detach(fn, payload)
    elseif kind == "subscribe" then
      core.detach(fn, nil)
    end
  end
end

--- @string url
-- @number timeout seconds
-- @tparam[opt] function choose as for a client
-- @treturn Subscriber or nil and a message
function Subscriber.new(url, timeout, choose)
  local self = setmetatable({ channels = {} }, Subscriber)
  local problem
  local function set_up(connection)
    connection.on_message = function(message) hear(self, message) end
    for channel in pairs(self.channels) do connection:send("SUBSCRIBE", channel) end
    return true
  end
  self.client, problem = Client.new(url, { timeout = timeout, store = "redis channels", choose = choose, setup = set_up })
  if not self.client then return nil, problem end
  return self
end

--- Subscribes.
-- @string channel
-- @tparam function fn called with each message, and with nil whenever some may have been missed
function Subscriber:subscribe(channel, fn)
  local fns = self.channels[channel]
  if not fns then
    fns = {}
    self.channels[channel] = fns
    if self.client.link.connection then self.client.link.connection:send("SUBSCRIBE", channel) end
  end
  fns[#fns + 1] = fn
end

--- Ends a subscription; the server is told when it was the channel's last.
-- @string channel
-- @tparam function fn as it was subscribed
function Subscriber:unsubscribe(channel, fn)
  local fns = self.channels[channel] or {}
  for i = #fns, 1, -1 do
    if fns[i] == fn then table.remove(fns, i) end
  end
  if #fns > 0 or not self.channels[channel] then return end
  self.channels[channel] = nil
  if self.client.link.connection then self.client.link.connection:send("UNSUBSCRIBE", channel) end
end

--- Ends it.
function Subscriber:close()
  self.client:close()
end

return Subscriber
