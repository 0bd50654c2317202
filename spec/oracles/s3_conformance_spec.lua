-- The contract suite on the stand-in for S3.
local Server = require "support.s3_server"
local testing = require "crown.testing"

local server = Server.start()

testing.conformance("s3", function()
  return { module = require "crown.oracles.s3", expires = true,
    options = server:options { ttl = 4, timeout = 1.5, trust_empty = true },
    outage = function() server:freeze() return function() server:thaw() end end }
end)

teardown(function() server:destroy() end)
