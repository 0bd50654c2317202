-- A member of many registries: crown-lua registry_app.lua PLAN, a file with JSON: `ticker`; `leads`: it registers a name in each,
-- and else prints in which it has found that; `registries`: options of crown.registry, with `ticks`: a file. A healthy election is
-- beside, in its own memory, as in matrix/app.lua.
package.path = "spec/?.lua;" .. package.path
local crown = require "crown"
local registry = require "crown.registry"
local plan = require "matrix.beside" (arg[1])

for _, options in ipairs(plan.registries) do
  options.child = { command = { plan.ticker, options.ticks, "seldom" } }
  options.ticks = nil
  local names = registry.open(options)
  crown.spawn(function()
    repeat
      crown.sleep(0.2)
      local done
      if plan.leads then done = names:register "here" else done = names:whereis "here" end
    until done
    print((plan.leads and "REGISTERED " or "FOUND ") .. options.name)
  end)
end
