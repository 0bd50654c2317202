local testing = require "crown.testing"
local tempdir = require "support.tempdir"

testing.conformance("the file oracle", function()
  return { module = require "crown.oracles.file", options = { dir = tempdir() }, expires = false }
end)
