local kubernetes = require "crown.oracles.kubernetes"
local Server = require "support.kubernetes_server"
local testing = require "crown.testing"

local server = Server.start()

testing.conformance("kubernetes", function()
  return { module = kubernetes, options = server:options { ttl = 3, timeout = 20, trust_empty = true }, expires = true }
end)

teardown(function() server:destroy() end)
