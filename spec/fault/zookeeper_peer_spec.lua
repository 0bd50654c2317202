-- One leader among candidates of crown-lua and of kazoo or Curator, on a real server.
local Cluster = require "support.cluster"
local eventually = require("crown.testing").eventually
local peers = require "support.zookeeper_peers"
local Server = require "support.zookeeper"
local ticks = require "support.ticks"
local Way = require "torture.way"

local SESSION = 4 -- seconds

local server = Server.start()

for _, kind in ipairs { "kazoo", "curator" } do
  describe("beside candidates of " .. kind, function()
    local cluster, started, way

    local serial = 0

    before_each(function()
      serial, started = serial + 1, {}
      cluster = Cluster.new { url = "", ttl = SESSION }
      way = Way.open(function() return server.port end)
    end)
    after_each(function()
      for _, one in ipairs(started) do one:destroy() end
      for _, member in ipairs(cluster.members) do member:destroy() end
      way:close()
    end)

    local function both(what, fn)
      it(what, function()
        if not peers.is_there(kind) then return pending(peers.MISSING) end
        fn()
        assert.equal(0, ticks.overlap(cluster.ticks), "two children ticked at once")
      end)
    end

    local function path() return ("/%s%d"):format(kind, serial) end

    local function ours(node, at)
      return cluster:join(node, ("zookeeper://127.0.0.1:%d%s?recipe=%s&trust_empty=true"):format(at or server.port, path(), kind))
    end

    local function peer(node)
      local one = peers.start(kind, server, path() .. "/spec", node, cluster.ticks, SESSION)
      started[#started + 1] = one
      return one
    end

    local function leads(node)
      return eventually(function()
        local lives = ticks.lives(cluster.ticks)
        local last = lives[#lives]
        return last and last.node == node and last.count > 20 and last
      end, 30)
    end

    local function queued(count)
      eventually(function()
        return #(server:ask("children", path() .. "/spec") or {}) == count
      end, 20)
    end

    both("they hand over in order", function()
      local one = ours "one"
      leads "one"
      local other = peer "peer"
      queued(2)
      one:signal "TERM"
      leads "peer"
      ours "two"
      queued(2)
      other:hurt_self "TERM"
      leads "two"
    end)

    both("the tree is dead before the peer leads: all but the child is killed", function()
      local one = ours "one"
      leads "one"
      peer "peer"
      queued(2)
      one:hurt("KILL", "supervise", "runtime")
      leads "peer"
    end)

    both("the tree is dead before the peer leads: the leader is cut off", function()
      ours("one", way.port)
      leads "one"
      peer "peer"
      queued(2)
      way.held = { there = true, back = true }
      leads "peer"
      way:free() -- what was held comes late
      ticks.settle(cluster.ticks, 20)
    end)

    both("a peer that was killed is followed when its session is over", function()
      local other = peer "peer"
      leads "peer"
      ours "one"
      queued(2)
      other:hurt_self "KILL"
      leads "one"
    end)
  end)
end

teardown(function() server:destroy() end)
