-- The contract suite on the stand-in for Consul.
local Server = require "support.consul_server"
local testing = require "crown.testing"

local server = Server.start()

testing.conformance("consul", function()
  return { module = require("crown.oracles.consul").chosen { recipe = "register" }, expires = true,
    options = server:options { ttl = 4, timeout = 1.5, trust_empty = true },
    outage = function() server:freeze() return function() server:thaw() end end }
end)

teardown(function() server:destroy() end)
