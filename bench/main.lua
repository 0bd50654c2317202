-- Measures: crown-lua bench/main.lua [ROWS-PATTERN] [N]. Prints a table of medians with min, max and n; progress goes to
-- stderr. Times are in milliseconds unless a row says otherwise. docs/bench.md tells how to read it.
package.path = "./spec/?.lua;./bench/?.lua;" .. package.path

local tables = require "crown.command.tables"

local pattern, count = arg[1] or "", tonumber(arg[2] or "") or 20
local rows = {}

local function statistics(values)
  table.sort(values)
  local n = #values
  local middle = n % 2 == 1 and values[(n + 1) / 2] or (values[n / 2] + values[n / 2 + 1]) / 2
  return middle, values[1], values[n]
end

local function show(value)
  return (value < 100 and "%.1f" or "%.0f"):format(value)
end

--- Measures one row.
-- @string name what the table calls it
-- @string target what it should reach, as text
-- @tparam function once returns one figure
-- @number[opt] times how often
local function measure(name, target, once, times)
  if not name:find(pattern) then return end
  local values = {}
  for i = 1, times or count do
    io.stderr:write(("\r%-58s %3d"):format(name, i))
    values[#values + 1] = once()
  end
  io.stderr:write "\n"
  local middle, least, most = statistics(values)
  rows[#rows + 1] = { name, target, show(middle), show(least), show(most), tostring(#values) }
end

local GROUPS = { "start", "failover", "peers", "scale", "web", "idle", "postgres", "crowd", "redis", "many", "stores", "registry",
  "registry_size" }
for _, group in ipairs(GROUPS) do require(group)(measure) end
io.write(tables.text({ "what", "target", "median", "min", "max", "n" }, rows))
