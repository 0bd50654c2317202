--- The specs that watch some files, one a line: luajit tools/units-of.lua FILE...
package.path = "tools/?.lua;" .. package.path
local suites = require "mutants.suites"

local rows, seen = suites.load(), {}
for _, file in ipairs(arg) do
  for _, unit in ipairs((suites.of(rows, file)) or {}) do
    -- C units and virtual clusters around the core run in any case.
    if not seen[unit] and not unit:find "^c/" and not unit:find "^simulate:" then print(unit) end
    seen[unit] = true
  end
end
