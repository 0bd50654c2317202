--- A stand-in for Consul of the spec's own (consul/stand_in.lua), on a free loopback port. No package has Consul itself.
local StandIn = require "support.stand_in"

local Server = setmetatable({}, StandIn)
Server.__index = Server

--- What a token may do to whom nothing is denied.
Server.RIGHTS = { "key:read", "key:list", "key:write", "session:write", "session:read", "agent:read" }

--- Starts one.
-- @string[opt] authority the directory of support.authority: then it speaks TLS
-- @treturn Server `port`, `base` (its URL)
function Server.start(authority)
  local self = StandIn.make("spec/support/consul/stand_in.lua", Server, authority)
  self:up()
  return self
end

--- The URL of an oracle there.
-- @string[opt] more options
-- @number[opt] at another port that leads there
-- @treturn string
function Server:url(more, at)
  local recipe = more and more:find("recipe=", 1, true) and "" or "recipe=register&"
  return (("%s://127.0.0.1:%d/spec?%s%s"):format(self.authority and "consuls" or "consul", at or self.port, recipe, more or "")
    :gsub("&$", ""))
end

--- The same as options beside a URL.
-- @tparam[opt] table more options
-- @treturn table
function Server:options(more)
  local options = { url = self:url():match "^[^?]*", recipe = "register", ca = self.authority and self.authority .. "/ca.crt" }
  for name, value in pairs(more or {}) do options[name] = value end
  return options
end

--- Does something with a key, as another client.
-- @string method
-- @string key without the prefix
-- @string[opt] body
-- @treturn table the answer
function Server:key(method, key, body) return self:ask(method, "/v1/kv/spec/" .. key, body) end

return Server
