--- Ten thousand elections on the in-memory oracle in one runtime, refreshed every 10 s.
local probe = require "probe"

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

return function(measure)
  local result
  local function run()
    result = result or probe.many { app = APP, settle = 20, watch = 20 }
    return result
  end
  measure("10,000 elections: memory of the runtime in MB", "≤ 40", function() return run().pss end, 1)
  measure("10,000 elections, refresh 10 s: % of a core", "≤ 2", function() return run().cpu end, 1)
  measure("10,000 elections: 99.9 % of refreshes late by at most", "≤ 50", function()
    return tonumber(run().text:match " (%S+)") * 1000
  end, 1)
end
