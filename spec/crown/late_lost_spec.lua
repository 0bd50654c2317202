-- In a process of its own: a clock that a spec has moved on stays ahead of the keepers', which are other processes.
local crown = require "crown"
local testing = require "crown.testing"

describe("a term whose child takes all its time", function()
  local election

  after_each(function()
    election:stop()
    testing.eventually(function() return election.handle:finished() end)
  end)

  it("starts no command in a lost handler that comes too late for its tree to be killed in time", function()
    local result, problem
    local fake = testing.fake_oracle():grant(0.3, { ttl = 2, epoch = 1 })
    election = crown.elect { name = "late", oracle = fake, stop_timeout = 0.3,
      child = { "sh", "-c", "trap '' TERM; while :; do sleep 0.01; done" }, -- lives to the kill instant
      handlers = { lost = function() result, problem = crown.exec { "true" } end } }
    testing.eventually(function() return election:is_leader() end)
    fake:fail "no answer"
    testing.eventually(function() return result or problem end, 5)
    assert.is_nil(result)
    assert.matches("true: what started it is over", problem)
  end)
end)
