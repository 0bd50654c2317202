-- One leader among candidates of crown-lua and of kazoo, on a real server.
local Candidate = require "support.candidate"
local Cluster = require "support.cluster"
local eventually = require("crown.testing").eventually
local Server = require "support.zookeeper"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"
local Way = require "torture.way"

local SESSION = 4 -- seconds

describe("beside kazoo's Election", function()
  local server, cluster, peers, way
  setup(function() server = Server.start() end)
  teardown(function() server:destroy() end)

  local serial = 0

  before_each(function()
    serial, peers = serial + 1, {}
    cluster = Cluster.new { url = "", ttl = SESSION }
    way = Way.open(function() return server.port end)
  end)
  after_each(function()
    for _, one in ipairs(peers) do one:destroy() end
    for _, member in ipairs(cluster.members) do member:destroy() end
    way:close()
    assert.equal(0, ticks.overlap(cluster.ticks), "two children ticked at once")
  end)

  local function ours(node, at)
    return cluster:join(node, ("zookeeper://127.0.0.1:%d/peers%d?recipe=kazoo&trust_empty=true"):format(at or server.port, serial))
  end

  local function kazoo(node)
    local one = Candidate.start { program = "/usr/bin/python3", node = node, log = tempdir() .. "/log",
      args = { "spec/support/kazoo_elector.py", "127.0.0.1:" .. server.port, ("/peers%d/spec"):format(serial), node, cluster.ticks,
        SESSION } }
    peers[#peers + 1] = one
    eventually(function() return one:output():find "ready" end, 20)
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
      return #(server:ask("children", ("/peers%d/spec"):format(serial)) or {}) == count
    end, 20)
  end

  it("both hand over in order", function()
    local one = ours "one"
    leads "one"
    local other = kazoo "kazoo"
    queued(2)
    one:signal "TERM"
    leads "kazoo"
    ours "two"
    queued(2)
    other:hurt_self "TERM"
    leads "two"
  end)

  it("the tree is dead before kazoo leads: all but the child is killed", function()
    local one = ours "one"
    leads "one"
    kazoo "kazoo"
    queued(2)
    one:hurt("KILL", "supervise", "runtime")
    leads "kazoo"
  end)

  it("the tree is dead before kazoo leads: the leader is stopped", function()
    local one = ours "one"
    leads "one"
    kazoo "kazoo"
    queued(2)
    one:hurt("STOP", "supervise", "runtime")
    leads "kazoo"
    one:hurt("CONT", "supervise", "runtime")
    ticks.settle(cluster.ticks, 20)
  end)

  it("the tree is dead before kazoo leads: the leader is cut off", function()
    ours("one", way.port)
    leads "one"
    kazoo "kazoo"
    queued(2)
    way.held = { there = true, back = true }
    leads "kazoo"
    way:free() -- what was held comes late
    ticks.settle(cluster.ticks, 20)
  end)

  it("a leader of kazoo's that was killed is followed when its session is over", function()
    local other = kazoo "kazoo"
    leads "kazoo"
    ours "one"
    queued(2)
    other:hurt_self "KILL"
    leads "one"
  end)
end)
