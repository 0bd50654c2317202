local Server = require "support.zookeeper"
local testing = require "crown.testing"
local zookeeper = require "crown.oracles.zookeeper"

local server = Server.start()

for _, recipe in ipairs { "curator", "kazoo" } do
  testing.conformance("zookeeper, " .. recipe, function()
    return { module = zookeeper, expires = true,
      options = { url = server.url .. "/" .. recipe, recipe = recipe, ttl = 3, timeout = 20, trust_empty = true } }
  end)
end

teardown(function() server:destroy() end)
