--- How long it takes to begin, and how much memory one election needs.
local Cluster = require "support.cluster"
local crown = require "crown"
local program = require "support.program"
local tempdir = require "support.tempdir"
local ticks = require "support.ticks"

local function smaps_pss(pid)
  local file = io.open(("/proc/%d/smaps_rollup"):format(pid))
  if not file then return 0 end
  local kilobytes = tonumber(file:read("*a"):match "\nPss:%s+(%d+)") or 0
  file:close()
  return kilobytes
end

return function(measure)
  measure("file, start to the child's first tick", "≤ 30", function()
    local cluster = Cluster.new { oracle = "file" }
    local at = crown.now()
    cluster:join "one"
    local term = ticks.await(cluster.ticks, 0, 10)
    cluster:destroy()
    return (term.first - at) * 1000
  end)

  measure("one election, whole tree without the child: PSS in MB", "≤ 12", function()
    local cluster = Cluster.new { oracle = "file" }
    local member = cluster:join "one"
    ticks.await(cluster.ticks, 0, 10)
    local sum = 0
    for _, kind in ipairs { "supervise", "runtime", "keeper", "warden" } do
      for _, pid in ipairs(member:pids(kind)) do sum = sum + smaps_pss(pid) end
    end
    cluster:destroy()
    return sum / 1024
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
