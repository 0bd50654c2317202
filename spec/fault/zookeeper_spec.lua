-- Promise 1 on ZooKeeper: the faults of every store, and a server that is cut off from its ensemble.
local Cluster = require "support.cluster"
local eventually = require("crown.testing").eventually
local Server = require "support.zookeeper"
local takeover = require "support.takeover"
local ticks = require "support.ticks"

local server = Server.start()

takeover("a leader by a node in ZooKeeper", {
  url = server.url .. "/takeover?trust_empty=true", port = server.port, ttl = 3,
  down = function() server:down() end,
  up = function() server:up() end,
})

teardown(function() server:destroy() end)

-- It answers pings until it notices; the session that it serves is over before that (seen: 1.25 s after the cut by 4.98 s).
describe("a leader at a server that is cut off from its ensemble", function()
  it("is dead before the next one leads", function()
    local ways = {}
    local servers = Server.ensemble(3, { ways = ways, lines = { "syncLimit=100" } })
    local cluster = Cluster.new { url = "", ttl = 4 }
    finally(function()
      for _, one in ipairs(servers) do one:destroy() end
      for _, way in ipairs(ways) do way:close() end
    end)
    local function url(...)
      local hosts = {}
      for i, one in ipairs { ... } do hosts[i] = ("127.0.0.1:%d"):format(one.port) end
      return ("zookeeper://%s/cut?trust_empty=true"):format(table.concat(hosts, ","))
    end
    assert.is_false(servers[1]:leads())
    cluster:join("one", url(servers[1]))
    ticks.await(cluster.ticks, 0, 20)
    cluster:join("two", url(servers[2], servers[3])):follows()
    for _, way in ipairs(ways) do way.held = { there = true, back = true } end
    eventually(function()
      local lives = ticks.lives(cluster.ticks)
      return lives[#lives].node == "two" and lives[#lives].count > 20
    end, 30)
    assert.is_true(servers[1]:says "ruok" == "imok")
    assert.equal(0, ticks.overlap(cluster.ticks))
    cluster:finish()
  end)
end)
