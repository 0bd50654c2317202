--- Says what survived, sums up by folder, and whether that is good enough.
local list = require "mutants.list"

local LEAST_SHARE = 0.95
local SURE = { "^runtime/election/", "^runtime/process/" } -- every mutant of these has to be killed

local function has_to_die(record)
  if record.decides then return true end
  for _, pattern in ipairs(SURE) do
    if record.file:find(pattern) then return true end
  end
  return false
end

local function new_row() return { killed = 0, survived = 0, equivalent = 0, unknown = 0, seconds = 0 } end

local function column_of(record, result)
  if record.equivalent then return "equivalent" end
  if not result then return "unknown" end
  return result.status == "killed" and "killed" or "survived"
end

local function print_row(folder, row)
  local ran = row.killed + row.survived
  print(("%-28s %4d of %4d killed  %5.1f %%  %3d equivalent  %3d survived  %3d not run  %6.0f s"):format(folder, row.killed, ran,
    100 * row.killed / math.max(1, ran), row.equivalent, row.survived, row.unknown, row.seconds))
end

--- @tparam table records
-- @tparam table results by id; one without was not run
-- @treturn boolean
return function(records, results)
  local rows, order, total = {}, {}, new_row()
  local bad = false
  for _, record in ipairs(records) do
    local folder, result = list.folder(record), results[record.id]
    if not rows[folder] then rows[folder], order[#order + 1] = new_row(), folder end
    local column = column_of(record, result)
    for _, sum in ipairs { rows[folder], total } do
      sum[column] = sum[column] + 1
      sum.seconds = sum.seconds + (result and result.seconds or 0)
    end
    if column == "survived" then
      local sure = has_to_die(record)
      print(("%-12s %s (%s)%s"):format(result.status, record.id, record.file, sure and ", which has to be killed" or ""))
      bad = bad or sure or result.status ~= "survived"
    end
  end
  table.sort(order)
  for _, folder in ipairs(order) do print_row(folder, rows[folder]) end
  print_row("all", total)
  return not bad and total.killed >= LEAST_SHARE * (total.killed + total.survived)
end
