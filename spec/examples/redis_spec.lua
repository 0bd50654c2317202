-- The example on Redis, run as a user runs it.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local Redis = require "support.redis"
local tempdir = require "support.tempdir"

describe("the example redis.lua", function()
  it("leads once, and hands over", function()
    local server, started = Redis.start(), {}
    local function start(node)
      started[#started + 1] = Candidate.start { args = { "lua/examples/redis.lua" }, node = node, env = { REDIS_URL = server.url },
        log = tempdir() .. "/log" }
      return started[#started]
    end
    local one = start "one"
    eventually(function() return one:output():find "working as one in epoch %d" end, 15) -- a server that is new is sat out
    local two = start "two"
    eventually(function() return two:output():find "connected" end, 10)
    one:signal "TERM"
    eventually(function() return two:output():find "working as two in epoch %d" end, 10)
    assert.equal(0, one:wait(10))
    for _, candidate in ipairs(started) do candidate:destroy() end
    server:destroy()
  end)
end)
