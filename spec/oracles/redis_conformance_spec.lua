-- The contract suite on a real server, and on three with a majority. A lease outlasts an outage that is as long as the time-out.
local Redis = require "support.redis"
local testing = require "crown.testing"

local servers = { Redis.start(), Redis.start(), Redis.start() }

testing.conformance("redis", function()
  return { module = require "crown.oracles.redis", expires = true,
    options = { url = servers[1].url, ttl = 4, timeout = 1.5, trust_empty = true },
    outage = function() servers[1]:freeze() return function() servers[1]:thaw() end end }
end)

testing.conformance("redis, on a majority", function()
  return { module = require "crown.oracles.redis", expires = true,
    options = { urls = { servers[1].url, servers[2].url, servers[3].url }, ttl = 3, timeout = 20, trust_empty = true,
      prefix = "majority" } }
end)

teardown(function()
  for _, server in ipairs(servers) do server:destroy() end
end)
