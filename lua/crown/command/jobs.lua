--- The jobs that a store knows, as a table and as JSON: when they ran, where, how that ended, and when they are due.
-- @internal crown.command.job_list

local cells = require "crown.cron.cells"
local json = require "crown.text.json"
local tables = require "crown.command.tables"

local jobs = {}

local LAYOUT = { spare = { "Took", "Failed", "Node" }, long = { Job = 10, Node = 10, Ended = 10, State = 20 } }

--- Lays jobs out for people.
-- @tparam table found as of crown.cron.view
-- @number now the wall clock
-- @number[opt] columns of the terminal; nil: none
-- @bool none_matches there are jobs, and none of them is asked for
-- @treturn string
function jobs.text(found, now, columns, none_matches)
  if none_matches then return "" end
  if #found == 0 then return "no run of a job is marked there\n" end
  local rows = {}
  for i, one in ipairs(found) do rows[i] = cells.of(one, now) end
  return tables.text({ unpack(cells.HEADING) }, rows, columns, LAYOUT)
end

--- The same for programs.
-- @string word the oracle's
-- @tparam table found as of crown.cron.view
-- @treturn string
function jobs.for_programs(word, found)
  return json.line({ oracle = word, jobs = found }, "jobs")
end

return jobs
