-- Promise 1 over the example's HTTP lease server, which forgets everything when it crashes.
local Candidate = require "support.candidate"
local Cluster = require "support.cluster"
local eventually = require("crown.testing").eventually
local port = require "support.port"
local takeover = require "support.takeover"
local tempdir = require "support.tempdir"

local number, server = port.free(), nil

local function up(sit_out)
  server = Candidate.start { args = { "lua/examples/http_lease/lease_server.lua", number, sit_out or 0 }, node = "server",
    log = tempdir() .. "/log" }
  eventually(function() return server:output():find "port %d" end, 10)
end

up()

takeover("a leader by a lease over HTTP", {
  url = ("http://127.0.0.1:%d/locks"):format(number), port = number,
  down = function()
    server:hurt("KILL", "supervise", "runtime")
    server:wait(5)
  end,
  up = function() up(2) end,
})

describe("a follower over HTTP that asks again only after ten minutes", function()
  local cluster

  after_each(function() cluster:finish() end)

  it("hears of a release from a server that tells, and leads long before the lease would have ended", function()
    cluster = Cluster.new { url = ("http://127.0.0.1:%d/locks?retry=600"):format(number), ttl = 900 }
    local leader, follower, term = cluster:pair()
    local third = cluster:join "three"
    third:follows()
    leader:signal "TERM"
    local second = cluster:succeed(term.epoch, 15)
    assert.equal(0, leader:wait(10))
    local others = { two = follower, three = third }
    others[second.node]:signal "TERM" -- the one that came too late waits for the next
    assert.not_equal(second.node, cluster:succeed(second.epoch, 15).node)
  end)
end)

teardown(function() server:destroy() end)
