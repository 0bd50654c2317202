-- The contract suite on a real server.
local Mysql = require "support.mysql"
local testing = require "crown.testing"

local server = Mysql.start()

testing.conformance("mysql", function()
  return { module = require "crown.oracles.mysql", expires = true,
    options = { url = server.url, ttl = 4, timeout = 1.5, trust_empty = true },
    outage = function() server:freeze() return function() server:thaw() end end }
end)

teardown(function() server:destroy() end)
