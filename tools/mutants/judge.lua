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

-- @tparam table records
-- @tparam table results by id
-- @treturn boolean
return function(records, results)
  local rows, order, total = {}, {}, { killed = 0, all = 0, seconds = 0 }
  local bad = false
  for _, record in ipairs(records) do
    local folder, result = list.folder(record), results[record.id]
    local row = rows[folder]
    if not row then
      row = { killed = 0, all = 0, seconds = 0 }
      rows[folder], order[#order + 1] = row, folder
    end
    for _, sum in ipairs { row, total } do
      sum.all = sum.all + 1
      sum.killed = sum.killed + (result.status == "killed" and 1 or 0)
      sum.seconds = sum.seconds + result.seconds
    end
    if result.status ~= "killed" then
      local sure = has_to_die(record)
      print(("%-12s %s (%s)%s"):format(result.status, record.id, record.file, sure and ", which has to be killed" or ""))
      bad = bad or sure or result.status ~= "survived"
    end
  end
  table.sort(order)
  order[#order + 1] = "all"
  rows.all = total
  for _, folder in ipairs(order) do
    local row = rows[folder]
    print(("%-28s %4d of %4d killed  %5.1f %%  %6.0f s"):format(folder, row.killed, row.all, 100 * row.killed / math.max(1, row.all),
      row.seconds))
  end
  return not bad and total.killed >= LEAST_SHARE * total.all
end

