--- Leases of a fifth of a second: how often a term is lost while all cores are busy, and how soon the next one leads when a whole
-- host has died. BENCH_MINUTES: how long that is watched.
local Candidate = require "support.candidate"
local Cluster = require "support.cluster"
local crown = require "crown"
local Postgres = require "support.postgres"
local probe = require "probe"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"

local TTL = 0.2
local SPINNERS = 6
local MINUTES = tonumber(os.getenv "BENCH_MINUTES") or 10

-- What is left of a lease goes to refreshing: the child needs no time to stop.
local APP = [[
local crown = require "crown"
local command = { unpack(arg, 2) }
crown.elect { name = "spec", oracle = { arg[1], ttl = tonumber(os.getenv "TTL"), refresh = os.getenv "TTL" / 5 },
  stop_timeout = os.getenv "TTL" / 20, child = command }
]]

local function spinners()
  local list = {}
  for i = 1, SPINNERS do
    list[i] = Candidate.start { program = "/bin/sh", args = { "-c", "while :; do :; done" }, node = "spinner",
      log = tempdir() .. "/log" }
  end
  return list
end

-- Terms that ended although nobody asked for it.
local function lost(options)
  local busy, cluster = spinners(), Cluster.new(options)
  local leader = cluster:join "one"
  ticks.await(cluster.ticks, 0, 30)
  crown.sleep(MINUTES * 60)
  local count = select(2, leader:output():gsub("leadership%.lost", ""))
  cluster:destroy()
  for _, one in ipairs(busy) do
    one:hurt_self "KILL"
    one:wait(5)
  end
  return count
end

local function rows(measure, name, start, url_of)
  local server
  local function options()
    server = server or start()
    return { url = url_of(server), ttl = TTL, app = APP }
  end
  measure(("%s, TTL %g s, %d spinning processes, %g minutes: terms lost"):format(name, TTL, SPINNERS, MINUTES), "0", function()
    return lost(options())
  end, 1)
  measure(("%s, TTL %g s: dead host to next tick"):format(name, TTL), "≤ 300", function()
    return (probe.failover(options(), probe.kill_tree))
  end)
  if server then server:destroy() end
end

return function(measure)
  rows(measure, "redis", Redis.start, function(server) return server.quick end)
  rows(measure, "postgres_lease", Postgres.start, function(server) return server.url end)
end
