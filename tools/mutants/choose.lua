--- Which mutants are to run, and what is known of earlier runs.
local list = require "mutants.list"

local choose = { RESULTS = "build-mutants/results" }

local function hash(text)
  local value = 5381
  for i = 1, #text do value = (value * 33 + text:byte(i)) % 2 ^ 32 end
  return value
end

--- What a result is of: a mutant that was changed since has none.
function choose.digest(record)
  return ("%08x"):format(hash(record.before .. "\n>" .. record.after))
end

--- The last result of each mutant, as far as it has not changed since: `{ status, unit, test, seconds }` by id.
function choose.results(records)
  local current, results = {}, {}
  for _, record in ipairs(records) do current[record.id] = choose.digest(record) end
  for line in (list.read(choose.RESULTS) or ""):gmatch "[^\n]+" do
    local id, of, status, seconds, unit, test = line:match "^(%S+)\t(%S+)\t(%S+)\t(%S+)\t([^\t]*)\t(.*)$"
    if id and current[id] == of then
      results[id] = { status = status, seconds = tonumber(seconds), unit = unit, test = test }
    end
  end
  return results
end

--- Those that the options ask for.
function choose.some(records, wanted, results)
  local living = {}
  for _, record in ipairs(records) do
    if not record.equivalent then living[#living + 1] = record end
  end
  local chosen = {}
  for _, record in ipairs(living) do
    local before = results[record.id]
    if (not wanted.sample or record.sample)
      and (not wanted.folder or record.file:find(wanted.folder, 1, true))
      and (not wanted.only or record.id:find(wanted.only, 1, true))
      and (not wanted.todo or not before or wanted.todo ~= "new" and before.status ~= "killed") then
      chosen[#chosen + 1] = record
    end
  end
  return chosen
end

return choose
