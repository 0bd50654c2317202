-- One leader among candidates of crown-lua and of another client of Consul, on the stand-in.
local Candidate = require "support.candidate"
local Cluster = require "support.cluster"
local eventually = require("crown.testing").eventually
local files = require "crown.core.files"
local Server = require "support.consul_server"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"
local Way = require "torture.way"

local CLIENT = "/usr/lib/python3/dist-packages/consul/__init__.py"
local TTL = 1.5

describe("beside candidates of python3-consul2", function()
  local server, cluster, started, way
  local serial = 0

  setup(function() server = Server.start() end)
  teardown(function() server:destroy() end)
  before_each(function()
    serial, started = serial + 1, {}
    cluster = Cluster.new { url = "", ttl = TTL }
    way = Way.open(function() return server.port end)
  end)
  after_each(function()
    for _, one in ipairs(started) do one:destroy() end
    for _, member in ipairs(cluster.members) do member:destroy() end
    way:close()
  end)

  local function both(what, fn)
    it(what, function()
      if not files.kind(CLIENT) then return pending "python3-consul2 is not installed" end
      fn()
      assert.equal(0, ticks.overlap(cluster.ticks), "two children ticked at once")
    end)
  end

  local function ours(node, at)
    local url = server:url("recipe=lock&trust_empty=true", at or server.port):gsub("/spec%?", "/spec/" .. serial .. "?")
    return cluster:join(node, url)
  end

  local function peer(node)
    local one = Candidate.start { program = "/usr/bin/python3", node = node, log = tempdir() .. "/log",
      args = { "spec/support/consul/elector.py", server.port, ("spec/%d/spec/.lock"):format(serial), node, cluster.ticks } }
    started[#started + 1] = one
    eventually(function() return one:output():find "ready" end, 20)
    return one
  end

  local function leads(node)
    return eventually(function()
      local lives = ticks.lives(cluster.ticks)
      local last = lives[#lives]
      return last and last.node == node and last.count > 20 and last
    end, 20)
  end

  both("they hand over in order", function()
    local one = ours "one"
    leads "one"
    local other = peer "peer"
    one:signal "TERM"
    leads "peer"
    ours("two"):follows()
    other:hurt_self "TERM"
    leads "two"
  end)

  both("the tree is dead before the peer leads: all but the child is killed", function()
    local one = ours "one"
    leads "one"
    peer "peer"
    one:hurt("KILL", "supervise", "runtime")
    leads "peer"
  end)

  both("the tree is dead before the peer leads: the leader is cut off", function()
    ours("one", way.port)
    leads "one"
    peer "peer"
    way.held = { there = true, back = true }
    leads "peer"
    way:free() -- what was held comes late
    ticks.settle(cluster.ticks, 20)
  end)
end)
