--- What is known of a job, in the cells of a table: for the terminal and for the status page.
-- @internal crown.cron.cells

local levels = require "crown.register.levels"
local runs = require "crown.register.runs"
local span = require "crown.text.span"
local view = require "crown.cron.view"

local cells = {}

--- What stands above them.
cells.HEADING = { "Job", "Last run", "Node", "Took", "Ended", "Failed", "Next", "State" }

local function ended(last)
  if not last then return "-" end
  return last.fine and "0" or runs.ended(last)
end

local function is_due(one)
  if one.next then return view.instant(one.next, one.zone) end
  return one.held and "not before " .. view.instant(one.held, one.zone) or "-"
end

-- What somebody has to know of it.
local function state(one, now)
  local parts = {}
  if one.running then parts[1] = ("runs on %s for %s"):format(one.running.node, span(now - one.running.at)) end
  if one.failed > 0 and not one.running then parts[1] = "has failed" end
  if one.paused then parts[#parts + 1] = one.paused end
  if one.overdue then parts[#parts + 1] = "overdue for " .. span(now - one.overdue) end
  if one.held and one.next and one.held > one.next then
    parts[#parts + 1] = "not before " .. view.instant(one.held, one.zone)
  end
  if one.preferred then parts[#parts + 1] = levels.words(one.preferred.node, one.preferred.level) end
  return #parts > 0 and table.concat(parts, "; ") or "-"
end

--- The cells of a job.
-- @tparam table one as of crown.cron.view
-- @number now the wall clock
-- @treturn table an array of texts, one for each of HEADING
function cells.of(one, now)
  local last = one.last
  return { one.name, last and view.instant(last.at, one.zone) or "-", last and last.node or "-",
    last and last.took and span(last.took) or "-", ended(last), ("%d"):format(one.failed), is_due(one), state(one, now) }
end

return cells
