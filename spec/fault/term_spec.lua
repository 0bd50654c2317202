-- What a term has started is gone before anybody else leads, also where its keepers are stopped and where it was started
-- while the term was already ending.
local crown = require "crown"
local Cluster = require "support.cluster"
local eventually = require "crown.testing.eventually"
local Redis = require "support.redis"
local run = require "support.run"
local ticks = require "support.ticks"

-- Beside a child that takes its time to end, `won` runs a command that ticks: at once, or only when the term is being left.
local APP = [[
local crown = require "crown"
local store, ticker, path, mode = unpack(arg)
local oracle = store:find "^redis" and { store, ttl = tonumber(os.getenv "TTL") } or "file:" .. store
local election
local function work(term)
  while mode == "late" and election:is_leader() do crown.sleep(0.005) end
  crown.exec({ ticker, path, "daemon" }, { timeout = 60, env = { CROWN_ROLE = "leader", CROWN_EPOCH = tostring(term.epoch) } })
end
election = crown.elect { name = "spec", oracle = oracle, handlers = { won = work },
  child = mode == "late" and { "sh", "-c", "trap : TERM; while true; do sleep 0.02; done" } or nil }
]]

describe("a command of a term", function()
  local cluster, server

  setup(function() server = Redis.start() end)
  teardown(function() server:destroy() end)
  after_each(function()
    cluster:finish()
  end)

  local function start(mode, ttl)
    cluster = Cluster.new { url = server.quick, ttl = ttl, mode = mode, app = APP, words = { "--heartbeat", "60" } }
    return cluster
  end

  for _, signal in ipairs { "TERM", "evict" } do
    it(("holds up the release while its keeper is stopped: %s"):format(signal), function()
      local leader, _, term = start("at once", 6):pair()
      leader:hurt("STOP", "keeper")
      if signal == "TERM" then
        leader:signal "TERM"
      else
        crown.spawn(run, { "evict", "--oracle", server.url, "--force", "spec" })
      end
      cluster:succeed(term.epoch, 20, "two")
    end)
  end

  it("keeps the lock of the file oracle while its keeper is stopped and its runtime is dead", function()
    cluster = Cluster.new { oracle = "file", mode = "at once", app = APP }
    local leader, _, term = cluster:pair()
    local keeper = leader:pids("keeper")[1]
    leader:hurt("STOP", "supervise", "keeper")
    leader:hurt("KILL", "runtime")
    crown.sleep(0.3) -- a free lock is taken at once
    ticks.verify(cluster.ticks)
    assert.equal(term.epoch, ticks.await(cluster.ticks, 0).epoch)
    assert(os.execute("kill -CONT " .. keeper) == 0)
    leader:hurt("CONT", "supervise")
    cluster:succeed(term.epoch, 20)
  end)

  it("is ended by its stopped keeper, which awakens, when supervisor and runtime are dead", function()
    cluster = Cluster.new { oracle = "file", mode = "at once", app = APP }
    local leader, _, term = cluster:pair()
    leader:hurt("STOP", "keeper")
    leader:hurt("KILL", "supervise", "runtime")
    cluster:succeed(term.epoch, 20, "two")
  end)

  it("has its deadline, too, when it begins while the term is being left", function()
    start("late", 4)
    local leader = cluster:join "one"
    eventually(function() return leader:output():find "child%.started" end)
    local follower = cluster:join "two"
    eventually(function() return follower:output():find "leadership%.rejected" end)
    crown.spawn(run, { "evict", "--oracle", server.url, "--force", "spec" }) -- it waits for the leader's end
    ticks.await(cluster.ticks, 0)
    leader:hurt("STOP", "supervise", "runtime", "keeper")
    eventually(function() return follower:output():find "leadership%.claimed" end)
    assert.same({}, ticks.alive(cluster.ticks))
    leader:hurt("CONT", "supervise")
  end)
end)
