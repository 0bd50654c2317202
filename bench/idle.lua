--- What an election costs that has nothing to do, and what many children cost.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local probe = require "probe"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local SETTLED, WATCHED = 10, 60 -- seconds

local function switches(member, kind)
  local sum = 0
  for _, pid in ipairs(member:pids(kind)) do
    local status = read_file(("/proc/%d/status"):format(pid))
    sum = sum + tonumber(status:match "\nvoluntary_ctxt_switches:%s*(%d+)") -- those that it makes by itself
  end
  return sum
end

local function idle()
  local dir, found = tempdir(), {}
  local member = Candidate.start { node = "one", log = dir .. "/log",
    args = { "run", "--oracle", "file:" .. dir, "bench", "--", "/bin/sleep", "1000" } }
  eventually(function() return member:pids("child")[1] end, 10)
  crown.sleep(SETTLED)
  for _, kind in ipairs { "supervise", "runtime", "keeper", "warden" } do found[kind] = -switches(member, kind) end
  crown.sleep(WATCHED)
  for kind, before in pairs(found) do found[kind] = before + switches(member, kind) end
  member:destroy()
  return found
end

local CHILDREN = [[
local crown = require "crown"
local elections = require "crown.core.election"
local count = tonumber(arg[2])
for i = 1, count do
  crown.elect { name = "e" .. i, oracle = { "memory", ttl = 60 }, child = { "/bin/sleep", "1000" } }
end
crown.spawn(function()
  repeat crown.sleep(0.05) until elections.counts()["child.started"] >= count
  io.open(arg[1], "w"):close()
end)
]]

local function children(count)
  local dir = tempdir()
  write_file(dir .. "/app.lua", CHILDREN)
  local began = crown.now()
  local member = Candidate.start { node = "one", log = dir .. "/log",
    args = { "--log-level", "error", dir .. "/app.lua", dir .. "/out", count } }
  eventually(function() return read_file(dir .. "/out") end, 120)
  local found = { started = (crown.now() - began) * 1000 }
  local megabytes = 0
  for _, kind in ipairs { "keeper", "warden" } do
    for _, pid in ipairs(member:pids(kind)) do megabytes = megabytes + probe.memory(pid) end
  end
  found.kilobytes = megabytes * 1024 / count
  local stopped = member:signal "TERM"
  member:wait(120)
  found.stopped = (crown.now() - stopped) * 1000
  return found
end

return function(measure)
  local found
  for _, row in ipairs { { "supervise", "≤ 6" }, { "runtime", "≤ 12" }, { "keeper", "0" }, { "warden", "0" } } do
    measure(("file, one idle election: context switches of the %s a minute"):format(row[1]), row[2], function()
      found = found or idle()
      return found[row[1]]
    end, 1)
  end
  for _, count in ipairs { 1000, 10000 } do
    local cost
    for _, row in ipairs { { "started", "all started after (ms)", "≤ 10000" }, { "kilobytes", "keeper and warden: KB a child", "≤ 50" },
      { "stopped", "SIGTERM: all stopped after (ms)", "≤ 5000" } } do
      measure(("%d children: %s"):format(count, row[2]), row[3], function()
        cost = cost or children(count)
        return cost[row[1]]
      end, 1)
    end
  end
end
