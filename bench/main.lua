-- Measures: crown-lua bench/main.lua [ROWS-PATTERN] [N]. Prints a table with n, median, 99th percentile, least and most; progress
-- goes to stderr. Times are in milliseconds unless a row says otherwise. BENCH_SAVE: a file that gets every figure, for
-- bench/plot.lua. BENCH_STORE_URL: measures that store instead of servers of its own. docs/bench.md tells how to read it.
package.path = "./spec/?.lua;./bench/?.lua;" .. package.path

local percentile = require "percentile"
local Record = require "record"
local tables = require "crown.command.tables"

local LEAST_RUNS = 20 -- of which a 99th percentile says anything

local pattern, count = arg[1] or "", tonumber(arg[2] or "") or LEAST_RUNS
local store_url = os.getenv "BENCH_STORE_URL" or ""
local record = Record.open(os.getenv "BENCH_SAVE" or "")
local rows = {}

local function show(value)
  return (value < 100 and "%.1f" or "%.0f"):format(value)
end

--- Measures one row.
-- @string name what the table calls it
-- @string target what it should reach, as text
-- @tparam function once returns one figure; nil where this machine cannot measure it
-- @number[opt] times how often
local function measure(name, target, once, times)
  if not name:find(pattern) then return end
  local values = {}
  for i = 1, times or count do
    io.stderr:write(("\r%-58s %3d"):format(name, i))
    local value = once()
    values[#values + 1] = value
    if value then record:add(name, value) end
  end
  io.stderr:write "\n"
  if #values == 0 then
    rows[#rows + 1] = { name, target, "not here", "", "", "", "0" }
    return
  end
  table.sort(values)
  local last = #values >= LEAST_RUNS and show(percentile(values, 0.99)) or ""
  rows[#rows + 1] = { name, target, show(percentile(values, 0.5)), last, show(values[1]), show(values[#values]), tostring(#values) }
end

local GROUPS = { "start", "failover", "peers", "scale", "web", "idle", "postgres", "crowd", "redis", "many", "counters", "short", "growth",
  "jobs", "stores", "libraries", "mysql", "registry", "registry_size" }
for _, group in ipairs(store_url ~= "" and { "own_store" } or GROUPS) do require(group)(measure, store_url) end
io.write(tables.text({ "what", "target", "median", "p99", "min", "max", "n" }, rows))
