-- Promise 1 for what a term does without a child: tasks of its handlers, and the commands that they run. No task and no
-- command of an old term acts when another one leads, whatever happens to the runtime that they run in.
local Cluster = require "support.cluster"
local Proxy = require "support.proxy"
local read_file = require "crown.text.read_file"
local Redis = require "support.redis"
local ticks = require "support.ticks"

-- Ways to work. `hangs`: a search that keeps the first leader's runtime in C for ever.
local APP = [[
package.path = "./spec/?.lua;" .. package.path
local crown = require "crown"
local lua_ticker = require "support.lua_ticker"
local url, ticker, path, mode = unpack(arg)
local ways = {}
function ways.sleeps(tick)
  crown.spawn(function() while true do tick() crown.sleep(0.001) end end)
  while true do tick() crown.sleep(0.001) end
end
function ways.spins(tick)
  local last = 0
  while true do
    local now = lua_ticker.boottime_ns()
    if now - last > 1e6 then tick() last = now end
  end
end
function ways.hangs(tick)
  for _ = 1, 100 do tick() crown.sleep(0.001) end
  if crown.node == "one" then (("a"):rep(40)):find(("a?"):rep(40) .. ("a"):rep(40)) end
  while true do tick() crown.sleep(0.001) end
end
function ways.runs(_, epoch)
  crown.exec({ ticker, path, "daemon" }, { timeout = 60, env = { CROWN_ROLE = "leader", CROWN_EPOCH = tostring(epoch) } })
end
crown.elect { name = "spec", oracle = { url, ttl = tonumber(os.getenv "TTL") }, handlers = {
  won = function(term) ways[mode](lua_ticker.open(path, term.epoch), term.epoch) end } }
]]

local function is_dead(pid)
  return (read_file(("/proc/%d/cmdline"):format(pid)) or "") == ""
end

describe("a leader that works in Lua", function()
  local cluster, proxy, server

  setup(function() server = Redis.start() end)
  teardown(function() server:destroy() end)
  after_each(function()
    if cluster then cluster:finish() end
    if proxy then proxy:destroy() end
    cluster, proxy = nil, nil
  end)

  -- The supervisor would kill a silent runtime after two seconds; here the deadline alone has to.
  local function start(mode)
    cluster = Cluster.new { url = server.quick, ttl = 2, mode = mode, app = APP, words = { "--heartbeat", "60" } }
    return cluster
  end

  local function through_proxy()
    proxy = Proxy.start(server.port)
    return (server.quick:gsub(":" .. server.port, ":" .. proxy.port))
  end

  for _, kinds in ipairs { { "runtime" }, { "supervise", "runtime" } } do
    it(("is killed by the kernel at its deadline while its %s stopped, and does nothing when it is continued")
      :format(#kinds == 1 and "runtime is" or "supervisor and runtime are"), function()
      local leader, _, term = start("sleeps"):pair()
      local old = leader:pids("runtime")[1]
      leader:hurt("STOP", unpack(kinds))
      ticks.await(cluster.ticks, term.epoch, 10) -- a new runtime's beside the stopped one's supervisor, or the follower's
      assert.is_true(is_dead(old))
      leader:hurt("CONT", "supervise")
      cluster:succeed(term.epoch, 10)
    end)
  end

  it("is killed by the kernel at its deadline while its runtime hangs in C", function()
    local leader, _, term = start("hangs"):pair()
    local old = leader:pids("runtime")[1]
    cluster:succeed(term.epoch, 10)
    assert.is_true(is_dead(old))
  end)

  for _, mode in ipairs { "sleeps", "spins", "runs" } do
    it("is over in time when it is cut off: " .. mode, function()
      local _, _, term = start(mode):pair(through_proxy())
      proxy:freeze()
      cluster:succeed(term.epoch, 10, "two")
    end)

    it("hands over in order on SIGTERM: " .. mode, function()
      local leader, _, term = start(mode):pair()
      leader:signal "TERM"
      cluster:succeed(term.epoch, 10, "two")
      assert.equal(0, leader:wait(10))
    end)
  end

  for _, case in ipairs { { "STOP", "runtime" }, { "STOP", "supervise", "runtime" }, { "KILL", "runtime" },
    { "STOP", "supervise", "runtime", "keeper" }, { "KILL", "supervise", "runtime", "keeper" } } do
    it(("leaves no command running beside the next leader: %s of %s"):format(case[1], table.concat(case, ", ", 2)), function()
      local leader, _, term = start("runs"):pair()
      leader:hurt(unpack(case))
      cluster:succeed(term.epoch, 10)
    end)
  end

  it("leaves no command running beside the next leader: SIGTERM while the command's keeper is stopped", function()
    local leader, _, term = start("runs"):pair()
    leader:hurt("STOP", "keeper")
    leader:signal "TERM"
    cluster:succeed(term.epoch, 10)
  end)
end)

describe("a fenced command in signal mode", function()
  local cluster, server

  setup(function() server = Redis.start() end)
  teardown(function() server:destroy() end)
  after_each(function() cluster:finish() end)

  for _, kinds in ipairs { { "runtime" }, { "supervise", "runtime" }, { "supervise", "runtime", "keeper" } } do
    it(("is dead at the deadline while these are stopped: %s"):format(table.concat(kinds, ", ")), function()
      cluster = Cluster.new { args = function(one)
        return { "--heartbeat", "60", "run", "--oracle", server.quick .. "&ttl=2", "--signal", "--fence", "spec", one.ticker,
          one.ticks, "daemon" }
      end }
      local leader, _, term = cluster:pair()
      leader:hurt("STOP", unpack(kinds))
      cluster:succeed(term.epoch, 10, "two")
    end)
  end
end)
