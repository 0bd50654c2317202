--- Ten thousand elections on the in-memory oracle in one runtime, refreshed every 10 s.
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local tempdir = require "support.tempdir"

local APP = [[
local crown = require "crown"
local core = require "crown.core"
local memory = require "crown.oracles.memory"
local due, late = {}, {}
local refresh = memory.refresh
function memory:refresh()
  local now = core.now()
  if due[self] then late[#late + 1] = now - due[self] end
  due[self] = now + self.delay
  return refresh(self)
end
for i = 1, 10000 do
  crown.elect { name = "e" .. i, oracle = { "memory", ttl = 30, refresh = 10 }, claim_delay = i / 1000 }
end
crown.spawn(function()
  crown.sleep(45)
  table.sort(late)
  local file = io.open(arg[1], "w")
  file:write(("%d %.6f\n"):format(#late, late[math.ceil(#late * 0.999)]))
  file:close()
end)
]]

local function read(path)
  local file = io.open(path)
  local text = file and file:read "*a" or ""
  if file then file:close() end
  return text
end

local function cpu_seconds(pid)
  local fields = {}
  for word in read(("/proc/%d/stat"):format(pid)):match("%) (.*)"):gmatch "%S+" do fields[#fields + 1] = word end
  return (tonumber(fields[12]) + tonumber(fields[13])) / 100
end

return function(measure)
  local result
  local function run()
    if result then return result end
    local dir = tempdir()
    local file = assert(io.open(dir .. "/app.lua", "w"))
    file:write(APP)
    file:close()
    local member = Candidate.start { args = { "--log-level", "error", dir .. "/app.lua", dir .. "/late" }, node = "scale",
      log = dir .. "/log" }
    local pid = eventually(function() return member:pids("runtime")[1] end)
    crown.sleep(20)
    local cpu, at = cpu_seconds(pid), crown.now()
    crown.sleep(20)
    local share = (cpu_seconds(pid) - cpu) / (crown.now() - at) * 100
    eventually(function() return read(dir .. "/late") ~= "" end, 30)
    local pss = tonumber(read(("/proc/%d/smaps_rollup"):format(pid)):match "\nPss:%s+(%d+)") / 1024
    local late = tonumber(read(dir .. "/late"):match " (%S+)") * 1000
    member:destroy()
    result = { pss = pss, cpu = share, late = late }
    return result
  end
  measure("10,000 elections: memory of the runtime in MB", "≤ 40", function() return run().pss end, 1)
  measure("10,000 elections, refresh 10 s: % of a core", "≤ 2", function() return run().cpu end, 1)
  measure("10,000 elections: 99.9 % of refreshes late by at most", "≤ 50", function() return run().late end, 1)
end
