--- The jobs that a store knows, for `crown-lua info --jobs`: when they ran, where, how that ended, and when they are due.
-- @internal crown.command.jobs

local json = require "crown.text.json"
local runs = require "crown.register.runs"
local tables = require "crown.command.tables"
local view = require "crown.cron.view"
local words = require "crown.command.words"

local jobs = {}

local HEADING = { "Job", "Last run", "Node", "Took", "Ended", "Failed", "Next", "State" }
local LAYOUT = { spare = { "Took", "Failed", "Node" }, long = { Job = 10, Node = 10, Ended = 10, State = 20 } }

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
  if one.running then parts[1] = ("runs on %s for %s"):format(one.running.node, words.span(now - one.running.at)) end
  if one.paused then parts[#parts + 1] = one.paused end
  if one.overdue then parts[#parts + 1] = "overdue for " .. words.span(now - one.overdue) end
  return #parts > 0 and table.concat(parts, "; ") or "-"
end

--- Lays jobs out for people.
-- @tparam table found as of crown.cron.view
-- @number now the wall clock
-- @number[opt] columns of the terminal; nil: none
-- @treturn string
function jobs.text(found, now, columns)
  if #found == 0 then return "no run of a job is marked there\n" end
  local rows = {}
  for i, one in ipairs(found) do
    local last = one.last
    rows[i] = { one.name, last and view.instant(last.at, one.zone) or "-", last and last.node or "-",
      last and last.took and words.span(last.took) or "-", ended(last), ("%d"):format(one.failed), is_due(one), state(one, now) }
  end
  return tables.text({ unpack(HEADING) }, rows, columns, LAYOUT)
end

--- The same for programs.
-- @string word the oracle's
-- @tparam table found as of crown.cron.view
-- @treturn string
function jobs.for_programs(word, found)
  return json.line({ oracle = word, jobs = found }, "jobs")
end

return jobs
