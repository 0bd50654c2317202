-- The contract suite on a real server. The TTL is short where leases run out in it, and long where they have to hold.
local Postgres = require "support.postgres"
local testing = require "crown.testing"

local server = Postgres.start()

testing.conformance("postgres_lease", function()
  return { module = require "crown.oracles.postgres_lease", expires = true,
    options = { url = server.url, ttl = 3, timeout = 1.5 }, outage = function() server:freeze() return function() server:thaw() end end }
end)

testing.conformance("postgres_advisory", function()
  return { module = require "crown.oracles.postgres_advisory", options = { url = server.url, ttl = 20 } }
end)

testing.conformance("registry", function()
  return { module = require "crown.oracles.registry", options = { url = server.url, listen = "127.0.0.1:0",
    secret = "a secret of the specs", ttl = 20 }, evicts = false }
end)

teardown(function()
  server:destroy()
  assert.is_not_nil(server.process.code)
end)
