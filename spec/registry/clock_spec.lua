-- A registry in a Postgres whose clock is stepped: leases end by that clock.
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local Registry = require "support.registry"
local ticks = require "support.ticks"
local WrongClock = require "support.wrong_clock"

local TTL = 5

describe("a registry whose server's clock is stepped forward", function()
  local clock, server, cluster, members, leader, others

  before_each(function()
    clock = WrongClock.new(0)
    server = Postgres.start { clock = clock }
    cluster = Registry.new { url = server.url, name = "stepped", ttl = TTL }
    members = { cluster:join_all({ "a", "b", "c" }, { child = true }) }
    local node = cluster:await(members)
    others = {}
    for _, one in ipairs(members) do
      if one.node == node then leader = one else others[#others + 1] = one end
    end
    eventually(function() return #ticks.lives(cluster.ticks) > 0 end)
  end)
  after_each(function()
    server:destroy()
    cluster:finish()
  end)

  it("has no second leader while the first one's child still runs", function()
    leader.candidate:hurt("STOP", "supervise", "runtime")
    clock:set(3600)
    server:sql "SELECT pg_notify('crown_registry_v1', 'changed stepped')" -- all look now, not just when a lease is due to end
    eventually(function() return #ticks.lives(cluster.ticks) > 1 end, 6 * TTL)
    ticks.settle(cluster.ticks) -- finish looks whether two led at once
  end)

  it("keeps its names, whether they are looked at before their owner's next heartbeat or after it", function()
    assert.is_true(others[1]:ask("register", { name = "kept", value = 1 }))
    clock:set(3600)
    server:sql "SELECT pg_notify('crown_registry_v1', 'changed stepped')"
    cluster:await(members, 6 * TTL)
    for _, one in ipairs(members) do
      eventually(function()
        local value, owner = one:ask("whereis", { name = "kept" })
        return value == 1 and owner == others[1].node
      end)
    end
    ticks.settle(cluster.ticks)
  end)
end)
