--- From the fault to the successor's first tick, and how long two ticked at once: two candidates, a child that ticks every
-- 10 ms.
local Cluster = require "support.cluster"
local crown = require "crown"
local ticks = require "support.ticks"

local TTL = 2

-- One failover: from the fault, or, for an orderly stop, from the old child's last tick.
local function failover(oracle, hurt, from_last_tick, options)
  local cluster = Cluster.new { oracle = oracle, ttl = TTL, app = options and options.app }
  local leader, _, term = cluster:pair()
  crown.sleep(math.random() * 0.6) -- anywhere between two refreshes
  local at = hurt(leader)
  local next_term = ticks.await(cluster.ticks, term.epoch, 15)
  local terms = ticks.terms(cluster.ticks)
  local since = from_last_tick and terms[#terms - 1].last or at
  local overlap = ticks.overlap(cluster.ticks)
  cluster:destroy()
  return (next_term.first - since) * 1000, overlap * 1000
end

local SPIN = [[
local crown = require "crown"
local command = { unpack(arg, 2) }
crown.elect { name = "spec", oracle = "file:" .. arg[1], child = command, handlers = {
  won = function() crown.watch_file(arg[1] .. "/spin", function()
    if crown.node == "one" then (("a"):rep(40)):find(("a?"):rep(40) .. ("a"):rep(40)) end
  end) end } }
]]

local function touch(leader, cluster_dir)
  local file = assert(io.open(cluster_dir .. "/locks/spin", "w"))
  file:close()
  return crown.now(), leader
end

return function(measure)
  local overlaps = 0
  local function row(name, target, oracle, hurt, from_last_tick)
    measure(name, target, function()
      local value, overlap = failover(oracle, hurt, from_last_tick)
      overlaps = math.max(overlaps, overlap)
      return value
    end)
    measure(name .. ": both ticking (worst of all so far)", "0", function() return overlaps end, 1)
  end

  local function signal(name, ...)
    local kinds = { ... }
    return function(leader)
      if #kinds == 0 then return leader:signal(name) end
      return leader:hurt(name, unpack(kinds))
    end
  end

  row("file, SIGTERM, beyond the child's last tick", "≤ 25", "file", signal "TERM", true)
  row("file, runtime SIGKILL", "≤ 60", "file", signal("KILL", "runtime"))
  row("file, supervisor, runtime, keeper SIGKILL", "≤ 25", "file", signal("KILL", "supervise", "runtime", "keeper"))
  row("lease 2 s (no release event), SIGTERM, beyond the child's last tick", "≤ 2000", "lease", signal "TERM", true)
  row("lease 2 s, runtime SIGKILL", "≤ 60", "lease", signal("KILL", "runtime"))
  row("lease 2 s, runtime SIGSTOP", "≤ 2100", "lease", signal("STOP", "runtime"))
  row("lease 2 s, supervisor, runtime, keeper SIGKILL", "≤ 2100", "lease",
    signal("KILL", "supervise", "runtime", "keeper"))
  measure("file, runtime spins in C: until it leads again", "≤ 2100", function()
    local cluster = Cluster.new { oracle = "file", app = SPIN }
    local leader, _, term = cluster:pair()
    local at = touch(leader, cluster.dir)
    local next_term = ticks.await(cluster.ticks, term.epoch, 15)
    cluster:destroy()
    return (next_term.first - at) * 1000
  end, 3)
end
