-- The contract suite on a real server.
local Nats = require "support.nats"
local testing = require "crown.testing"

local server = Nats.start()

testing.conformance("nats_kv", function()
  return { module = require "crown.oracles.nats_kv", expires = true,
    options = { url = server.url .. "/SPEC", ttl = 3, timeout = 20, amnesia_wait = 0 } }
end)

teardown(function() server:destroy() end)
