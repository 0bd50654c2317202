-- The contract suite on the stand-in for Consul, in the format of `consul lock`.
local Server = require "support.consul_server"
local testing = require "crown.testing"

local server = Server.start()

testing.conformance("consul", function()
  return { module = require "crown.oracles.consul", expires = true,
    options = server:options { recipe = "lock", ttl = 1.5, timeout = 0.5, trust_empty = true },
    outage = function() server:freeze() return function() server:thaw() end end }
end)

teardown(function() server:destroy() end)
