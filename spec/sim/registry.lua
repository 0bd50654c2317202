-- Runs seeds of the registry's virtual cluster, for `make simulate`: luajit spec/sim/registry.lua FROM COUNT.
-- A seed plays the same way again only from the same FROM, since the order in which Lua walks a table depends on what was
-- before.
package.path = "spec/?.lua;lua/?.lua;lua/?/init.lua;" .. package.path
local World = require "support.registry_world"

local SECONDS = 60
local CASES = { { nodes = 3 }, { nodes = 3, strict = true }, { nodes = 5 }, { nodes = 5, strict = true } }

local from, count = tonumber(arg[1]), tonumber(arg[2])
local terms, acknowledged = 0, 0
for seed = from, from + count - 1 do
  for _, case in ipairs(CASES) do
    local fine, problem = xpcall(function()
      local world = World.new { seed = seed, nodes = case.nodes, strict = case.strict }:run(SECONDS)
      terms, acknowledged = terms + world.terms, acknowledged + world.acknowledged
    end, function(message) return message:match "^seed" and message or debug.traceback(message) end)
    if not fine then
      print(("FROM=%d, %d nodes%s: %s"):format(from, case.nodes, case.strict and ", strict" or "", problem))
      os.exit(1)
    end
  end
end
print(("%d seeds passed: registry from %d, %d terms, %d acknowledged"):format(count, from, terms, acknowledged))
