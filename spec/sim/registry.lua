-- Runs seeds of the registry's virtual cluster, for `make simulate`: luajit spec/sim/registry.lua FROM COUNT.
collectgarbage("setpause", 400) -- a world is dropped as a whole; a quarter of the time would go into looking for garbage in it
package.path = "spec/?.lua;lua/?.lua;lua/?/init.lua;" .. package.path
package.preload["crown.core"] = function() return { json = require "cjson" } end
package.preload["crown.core.rows"] = assert(package.loadlib("build/rows.so", "bind_open_rows"), "make test-helpers")
local World = require "support.registry_world"

local from, count = tonumber(arg[1]), tonumber(arg[2])
local terms, acknowledged, events = 0, 0, 0
for seed = from, from + count - 1 do
  for _, case in ipairs(World.CLUSTERS) do
    local fine, problem = pcall(function()
      local world = World.new { seed = seed, nodes = case.nodes, strict = case.strict, faults = case.faults }:run(World.SECONDS)
      terms, acknowledged, events = terms + world.terms, acknowledged + world.acknowledged, events + world.clock.order
    end)
    if not fine then
      print(("%d nodes%s%s: %s"):format(case.nodes, case.strict and ", strict" or "", case.label and ", " .. case.label or "", problem))
      os.exit(1)
    end
  end
end
print(("%d seeds passed: registry from %d, %d terms, %d acknowledged, %d events"):format(count, from, terms, acknowledged, events))
