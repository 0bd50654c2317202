--- Channels, on a connection of their own, which is made anew when it breaks.
-- @internal crown.redis.subscriber

local Client = require "crown.redis.client"
local core = require "crown.core"

local Subscriber = {}
Subscriber.__index = Subscriber

local AGAIN = 10 -- seconds until a server is asked again for what it has refused
local NO_RIGHT = "NOPERM"

-- Messages go to their functions in tasks; the server's word that it has subscribed means: some may have been missed.
local function hear(self, connection, message)
  local kind, channel, payload = message[1], message[2], message[3]
  local fns = self.channels[channel]
  if kind == "subscribe" and connection.lacks then
    connection.lacks = nil
    self.client.link:lacking(nil)
  end
  if not fns then return end
  for _, fn in ipairs(fns) do
    if kind == "message" then
      core.detach(fn, payload)
    elseif kind == "subscribe" then
      core.detach(fn, nil)
    end
  end
end

local function ask_for_all(self, connection)
  for channel in pairs(self.channels) do connection:send("SUBSCRIBE", channel) end
end

-- A right that is missing is told once, and the server asked again on the same connection: another one would not have it either.
-- A ping that a user may not send is answered all the same.
local function refused(self, connection, problem)
  local of_channel = problem:find(" channel", 1, true)
  if connection.asks_again or not (of_channel or problem:find("subscribe", 1, true)) then return end
  if of_channel then problem = ("%s: the right &%s is missing"):format(problem, (next(self.channels))) end
  connection.lacks, connection.asks_again = self.client:answered(problem, NO_RIGHT), true
  self.client.link:lacking(connection.lacks)
  core.detach(function()
    core.sleep(AGAIN)
    connection.asks_again = nil
    if not connection.closed then ask_for_all(self, connection) end
  end)
end

--- @string url
-- @number timeout seconds
-- @tparam[opt] function choose as for a client
-- @string[opt] label for events of what the server refuses, nil for none
-- @treturn Subscriber or nil and a message
function Subscriber.new(url, timeout, choose, label)
  local self = setmetatable({ channels = {} }, Subscriber)
  local problem
  local function set_up(connection)
    connection.on_message = function(message) hear(self, connection, message) end
    connection.on_refusal = function(words) refused(self, connection, words) end
    ask_for_all(self, connection)
    return true
  end
  self.client, problem = Client.new(url, { timeout = timeout, store = "redis channels", quiet_label = label, choose = choose,
    setup = set_up })
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
