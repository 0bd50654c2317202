-- Draws failover.svg and growth.svg of what `make bench SAVE=` has kept: crown-lua bench/plot.lua FIGURES DIRECTORY.
package.path = "./bench/?.lua;" .. package.path

local percentile = require "percentile"
local Record = require "record"
local Svg = require "svg"

local rows, directory = Record.read(arg[1]), arg[2]

-- --- how long a failover takes, each run a dot

local LEFT, RIGHT, WIDTH, STEP = 150, 640, 760, 22
local LEAST, MOST = 1, 10000 -- milliseconds

local PANELS = {
  { "The leader ends in order: from its last tick to the next one's first", ", SIGTERM, beyond the child's last tick$" },
  { "The leader's runtime is killed", ", runtime SIGKILL$" },
  { "Its whole tree but the child is killed, as with a host that dies: the lease has to run out", ", tree SIGKILL$" },
  { "The same, beyond what was left of the lease", ", tree SIGKILL, beyond the lease$" },
}

local function in_panel(pattern)
  local found = {}
  for _, row in ipairs(rows) do
    local name = row.name:match("^([^,]+)" .. pattern)
    if name then
      table.sort(row.values)
      found[#found + 1] = { name = (name:gsub(" %b()", "")), values = row.values }
    end
  end
  return found
end

local function draw_row(page, axis, y, row)
  page:text(LEFT - 10, y + 4, "end", nil, row.name)
  for i, value in ipairs(row.values) do page:dot(axis(value), y + (i % 5 - 2) * 2, 2.5, "dot") end
  local median = percentile(row.values, 0.5)
  page:line(axis(median), y - 8, axis(median), y + 8, "median")
  page:text(WIDTH - 10, y + 4, "end", "s", ("%.1f · %.1f ms, n = %d"):format(median, percentile(row.values, 0.99), #row.values))
end

local function draw_panel(page, y, title, found)
  local axis = Svg.log_axis(LEAST, MOST, LEFT, RIGHT - 30)
  page:text(10, y, "start", "b", title)
  local bottom = y + 12 + #found * STEP
  for _, at in ipairs { 1, 10, 100, 1000, 10000 } do
    page:line(axis(at), y + 8, axis(at), bottom, "grid")
    page:text(axis(at), bottom + 12, "middle", "s", at < 1000 and at .. " ms" or at / 1000 .. " s")
  end
  for i, row in ipairs(found) do draw_row(page, axis, y + i * STEP, row) end
  return bottom + 40
end

local function draw_failover()
  local panels, height = {}, 40
  for _, panel in ipairs(PANELS) do
    local found = in_panel(panel[2])
    if #found > 0 then
      panels[#panels + 1] = { title = panel[1], rows = found }
      height = height + 52 + #found * STEP
    end
  end
  local page = Svg.new(WIDTH, height, "How long a failover takes on each store",
    "A dot for each run on a logarithmic axis, the median as a line; at the right median and 99th percentile.")
  page:text(WIDTH - 10, 16, "end", "s", "median · 99th percentile")
  local y = 30
  for _, panel in ipairs(panels) do y = draw_panel(page, y, panel.title, panel.rows) end
  page:save(directory .. "/failover.svg")
end

-- --- what many elections cost

-- Elixir's Crown, measured before on two cores, with the same leases on Postgres.
local CROWN = { memory = { { 1, 60 }, { 1000, 101 }, { 10000, 485 } }, processor = { { 10000, 22 } } }

local CHARTS = {
  { title = "memory in MB", field = "memory in MB", peer = CROWN.memory, marks = { 1, 10, 100, 1000 } },
  { title = "processor, % of a core", field = "% of a core", peer = CROWN.processor, marks = { 0.01, 0.1, 1, 10, 100 } },
}

local function series(field)
  local found = {}
  for _, row in ipairs(rows) do
    local count, what = row.name:match "^growth, TTL %d+ s, ([%d,]+) leases: (.*)$"
    if what == field then found[#found + 1] = { tonumber((count:gsub(",", ""))), percentile(row.values, 0.5) } end
  end
  table.sort(found, function(a, b) return a[1] < b[1] end)
  return found
end

local function draw_series(page, x, y, list, class)
  local points = {}
  for i, one in ipairs(list) do
    points[i] = { x(one[1]), y(one[2]) }
    page:dot(points[i][1], points[i][2], 3.5, class .. "-dot")
    page:text(points[i][1], points[i][2] - 8, "middle", "s", (one[2] < 10 and "%.2g" or "%.0f"):format(one[2]))
  end
  page:path(points, class)
end

local function draw_chart(page, left, chart)
  local top, bottom, right = 60, 300, left + 290
  local x = Svg.log_axis(1, 100000, left, right)
  local y = Svg.log_axis(chart.marks[1], chart.marks[#chart.marks], bottom, top)
  page:text(left, 34, "start", "b", chart.title)
  for _, at in ipairs(chart.marks) do
    page:line(left, y(at), right, y(at), "grid")
    page:text(left - 14, y(at) + 4, "end", "s", ("%g"):format(at))
  end
  for power, words in ipairs { "1", "10", "100", "1,000", "10,000", "100,000" } do
    page:text(x(10 ^ (power - 1)), bottom + 18, "middle", "s", words)
  end
  page:line(left, bottom, right, bottom, "axis")
  draw_series(page, x, y, chart.peer, "peer")
  draw_series(page, x, y, series(chart.field), "ours")
end

local function draw_growth()
  local page = Svg.new(WIDTH, 360, "What many elections cost one process",
    "Memory and processor time against 1 to 100,000 elections on logarithmic axes, for crown-lua and for Elixir's Crown.")
  draw_chart(page, 60, CHARTS[1])
  draw_chart(page, 440, CHARTS[2])
  page:dot(64, 344, 3.5, "ours-dot")
  page:text(74, 348, "start", "s", "crown-lua's runtime, leases in Postgres")
  page:dot(304, 344, 3.5, "peer-dot")
  page:text(314, 348, "start", "s", "Elixir's Crown, leases in Postgres")
  page:text(750, 348, "end", "s", "elections in one process")
  page:save(directory .. "/growth.svg")
end

draw_failover()
draw_growth()
