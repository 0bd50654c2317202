--- What the benches share: one failover, and the cost of many elections in one runtime.
local Candidate = require "support.candidate"
local Cluster = require "support.cluster"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local oracle = require "crown.election.contract"
local Proxy = require "support.proxy"
local run = require "support.run"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"

local probe = {}

probe.TTL = 2
probe.QUESTIONS = 10 -- of how many the quickest is believed, where a store tells exactly how much is left of a lease

local function read(path)
  local file = io.open(path)
  local text = file and file:read "*a" or ""
  if file then file:close() end
  return text
end

--- One failover: from the fault, or, for an orderly stop, from the old child's last tick.
-- @tparam table options of support.cluster; `patience`: seconds that it may take (15); `settled`: a function that returns when
-- the fault may come
-- @tparam function hurt called with the leader; returns when it did
-- @tparam[opt] boolean from_last_tick
-- @string[opt] leaders_url the leader's own way to the store
-- @treturn number milliseconds to the successor's first tick
-- @treturn number milliseconds in which two ticked
function probe.failover(options, hurt, from_last_tick, leaders_url)
  options.ttl = options.ttl or probe.TTL
  local cluster = Cluster.new(options)
  local leader, _, term = cluster:pair(leaders_url)
  if options.settled then options.settled() end
  crown.sleep(math.random() * 0.6) -- anywhere between two refreshes
  ticks.read(cluster.ticks) -- now, not when it would take a core from those that are measured
  local at = hurt(leader, cluster)
  local next_term = ticks.await(cluster.ticks, term.epoch, options.patience or 15)
  ticks.settle(cluster.ticks)
  local terms = ticks.terms(cluster.ticks)
  local since = from_last_tick and terms[#terms - 1].last or at
  cluster:destroy()
  return (next_term.first - since) * 1000, ticks.overlap(cluster.ticks) * 1000
end

--- A fault: SIGNAL to the candidate itself, or to its processes of these kinds.
function probe.signal(name, ...)
  local kinds = { ... }
  return function(leader)
    if #kinds == 0 then return leader:signal(name) end
    return leader:hurt(name, unpack(kinds))
  end
end

--- A fault: everything but the child.
probe.kill_tree = probe.signal("KILL", "supervise", "runtime", "keeper", "warden")

--- One failover after the death of everything but the child, beyond what was left of the lease.
-- @tparam table options as of failover
-- @tparam function left asks the store how many seconds the lease has left
-- @number[opt] times how often that is asked (1). The end is no earlier than what the quickest answer says
-- @treturn number milliseconds
function probe.beyond_lease(options, left, times)
  return (probe.failover(options, function(leader)
    probe.kill_tree(leader)
    local ends = 0
    for _ = 1, times or 1 do
      local asked = crown.now()
      ends = math.max(ends, asked + left())
    end
    return ends
  end))
end

--- Rows for one fault: the time, and the worst overlap of all faults so far.
-- @tparam function measure
-- @tparam function options makes the cluster's
function probe.rows(measure, options)
  local worst = 0
  return function(name, target, hurt, from_last_tick, leaders_url)
    measure(name, target, function()
      local value, overlap = probe.failover(options(), hurt, from_last_tick, leaders_url and leaders_url())
      worst = math.max(worst, overlap)
      return value
    end)
    measure(name .. ": both ticking (worst of all so far)", "0", function() return worst end, 1)
  end
end

--- Rows for what can happen to a leader whose lease is in a store, wherever that is: it ends in order, or parts of it are killed
-- or stopped.
-- @tparam function row of probe.rows
-- @string name of the oracle
-- @tparam table limits for the orderly end, for the runtime's death, and for whatever waits for the lease to end
function probe.leader_rows(row, name, limits)
  local signal = probe.signal
  row(name .. ", SIGTERM, beyond the child's last tick", limits[1], signal "TERM", true)
  row(name .. ", runtime SIGKILL", limits[2], signal("KILL", "runtime"))
  row(name .. ", tree SIGKILL", limits[3], probe.kill_tree)
  row(name .. ", runtime SIGSTOP", limits[3], signal("STOP", "runtime"))
end

-- An operator has the follower lead.
local function hand_over(url)
  return function()
    local at = crown.now()
    run { "handover", "--oracle", url, "spec", "--to", "two", "--wait", "0" }
    return at
  end
end

--- The same, and rows for a hand-over, where the store takes orders, and for a leader that is cut off from its store.
-- @tparam function row
-- @string name
-- @tparam table limits
-- @tparam table server with its `port`
-- @string url the candidates' way to it
function probe.store_rows(row, name, limits, server, url)
  probe.leader_rows(row, name, limits)
  if oracle.find("bench", url).order then
    row(name .. ", hand-over, beyond the child's last tick", "≤ 40", hand_over(url), true)
  end
  local proxies = {}
  row(name .. ", cut off without a reset", limits[3], function() return proxies[#proxies]:freeze() end, false, function()
    proxies[#proxies + 1] = Proxy.start(server.port)
    return (url:gsub(":" .. server.port, ":" .. proxies[#proxies].port))
  end)
  for _, proxy in ipairs(proxies) do proxy:destroy() end
end

--- CPU seconds that a process has used.
function probe.cpu_seconds(pid)
  local fields = {}
  for word in (read(("/proc/%d/stat"):format(pid)):match "%) (.*)" or ""):gmatch "%S+" do fields[#fields + 1] = word end
  return (tonumber(fields[12] or 0) + tonumber(fields[13] or 0)) / 100
end

--- CPU seconds that a process and its descendants have used.
function probe.tree_seconds(pid)
  local sum = 0
  for _, one in ipairs(Candidate.tree(pid)) do sum = sum + probe.cpu_seconds(one) end
  return sum
end

--- MB that a process has in memory, its part of what it shares; 0 where it has ended.
function probe.memory(pid)
  return tonumber(read(("/proc/%d/smaps_rollup"):format(pid)):match "\nPss:%s+(%d+)" or 0) / 1024
end

--- An app with ten thousand leases on an oracle; it writes how long it took until all were led, and how late 99.9 % of the
-- refreshes were at most.
probe.LEASES = [[
local crown = require "crown"
local core = require "crown.core"
local lease = require "crown.oracles.ORACLE"
local due, late, led, all_led = {}, {}, 0, nil
local started = core.now()
local refresh = lease.refresh
local function without_refresher(verdict, delay, grant)
  return verdict, delay, verdict and { ttl = grant.ttl, epoch = grant.epoch } or grant
end
function lease:refresh()
  local verdict, delay, grant = refresh(self)
  local now = core.now()
  if due[self] then late[#late + 1] = now - due[self] end
  due[self] = verdict and now + delay
  return without_refresher(verdict, delay, grant)
end
-- Where leases are refreshed without the oracle, it refreshes a tenth of them here, so that there is something to measure.
local claim = lease.claim
function lease:claim()
  if math.random(10) == 1 then return without_refresher(claim(self)) end
  return claim(self)
end
for i = 1, 10000 do
  crown.elect { name = "e" .. i, oracle = { "ORACLE", url = arg[2], ttl = 30 }, handlers = {
    won = function()
      led = led + 1
      if led == 10000 then all_led = core.now() - started end
    end } }
end
crown.spawn(function()
  crown.sleep(tonumber(arg[3] or 45))
  table.sort(late)
  local file = io.open(arg[1], "w")
  file:write(("%.6f %.6f\n"):format(all_led or 1/0, late[math.ceil(#late * 0.999)]))
  file:close()
end)
]]

--- Runs an app with many elections; it writes what it knows about itself to the file that is its first argument.
-- @tparam table options `app` source, `args` behind the file, `settle` and `watch` in seconds, `meter` (function, optional)
-- @treturn table `{ pss = MB, descriptors = count, cpu = % of a core, metered = % of what meter counts in seconds,
-- text = what the app wrote }`
function probe.many(options)
  local dir = tempdir()
  local file = assert(io.open(dir .. "/app.lua", "w"))
  file:write(options.app)
  file:close()
  local member = Candidate.start { node = "scale", log = dir .. "/log",
    args = { "--log-level", "error", dir .. "/app.lua", dir .. "/out", unpack(options.args or {}) } }
  local pid = eventually(function() return member:pids("runtime")[1] end)
  crown.sleep(options.settle)
  local meter = options.meter or function() return 0 end
  local cpu, metered, at = probe.cpu_seconds(pid), meter(), crown.now()
  crown.sleep(options.watch)
  local seconds = crown.now() - at
  cpu, metered = probe.cpu_seconds(pid) - cpu, meter() - metered
  eventually(function() return read(dir .. "/out") ~= "" end, 180)
  local pss = probe.memory(pid)
  local descriptors = select(2, crown.exec({ "ls", ("/proc/%d/fd"):format(pid) }).stdout:gsub("\n", ""))
  member:destroy()
  return { pss = pss, descriptors = descriptors, cpu = cpu / seconds * 100, metered = metered / seconds * 100, text = read(dir .. "/out") }
end

return probe
