-- A follower whose connection is frozen (its host paused, a proxy or a firewall that keeps the connection open) may be given
-- the lock when the leader's session ends: it would hold it for ever without leading.
local Cluster = require "support.cluster"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local Proxy = require "support.proxy"

describe("the advisory lock in Postgres", function()
  it("has the next one lead when leader and a waiting follower are cut off together without a reset", function()
    local server = Postgres.start()
    local url = server.url:gsub("^postgres", "postgres+advisory")
    local proxy = Proxy.start(server.port)
    local cut_off = url:gsub(":" .. server.port, ":" .. proxy.port)
    local cluster = Cluster.new { url = url, ttl = 2 }
    cluster:pair(cut_off)
    local three = cluster:join("three", cut_off) -- waits on, and gets the lock, when the other follower ends the leader's session
    eventually(function() return three:output():find "leadership%.rejected" end, 10)
    proxy:freeze()
    local fine, problem = pcall(cluster.succeed, cluster, 1, 30)
    cluster:destroy()
    proxy:destroy()
    server:destroy()
    assert(fine, problem)
  end)
end)
