local testing = require "crown.testing"

testing.conformance("the memory oracle", function()
  return { module = require "crown.oracles.memory", options = { path = "spec", ttl = 0.3 }, expires = true }
end)
