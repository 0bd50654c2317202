--- How long it takes to begin, and how much memory one election needs.
local Cluster = require "support.cluster"
local crown = require "crown"
local probe = require "probe"
local program = require "support.program"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"

return function(measure)
  -- From the start of a candidate to the first tick of its child, in an epoch after `epoch`.
  local function start(cluster, node, epoch)
    local at = crown.now()
    cluster:join(node)
    return (ticks.await(cluster.ticks, epoch, 10).first - at) * 1000
  end

  local function known(url)
    local cluster = Cluster.new { oracle = "file", url = url }
    start(cluster, "one", 0)
    cluster.members[1]:destroy()
    local took = start(cluster, "two", 1)
    cluster:destroy()
    return took
  end

  -- As in the default place, nothing changes in the directory above that of the locks.
  measure("file, a lock that was led under: start to the child's first tick", "≤ 8", function()
    return known("file:" .. tempdir() .. "/locks")
  end)

  -- Each process is looked at then, for one that leads under another file.
  measure("file, a lock that was led under, the directory above changed since: start to the child's first tick", "", function()
    return known()
  end)

  measure("file, a new lock: start to the child's first tick", "≤ 8", function()
    local cluster = Cluster.new { oracle = "file" }
    local took = start(cluster, "one", 0)
    cluster:destroy()
    return took
  end)

  measure("one election, whole tree without the child: PSS in MB", "≤ 3", function()
    local cluster = Cluster.new { oracle = "file" }
    local member = cluster:join "one"
    ticks.await(cluster.ticks, 0, 10)
    local sum = 0
    for _, kind in ipairs { "supervise", "runtime", "keeper", "warden" } do
      for _, pid in ipairs(member:pids(kind)) do sum = sum + probe.memory(pid) end
    end
    cluster:destroy()
    return sum
  end, 5)

  local function command(name, target, ...)
    local words = { program, ... }
    measure(name, target, function()
      local at = crown.now()
      assert(crown.exec(words))
      return (crown.now() - at) * 1000
    end)
  end
  local dir = tempdir()
  command("crown-lua --version", "≤ 5", "--version")
  command("crown-lua file --check", "≤ 5", "file", "--check", dir .. "/none")
  command("crown-lua info on a local store", "≤ 30", "info", "--oracle", "file:" .. dir)
end
