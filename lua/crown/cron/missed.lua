--- What a host that starts makes up for, of the times at which a job was due before.
-- @internal crown.cron.missed

local runs = require "crown.register.runs"

--- Judges by the marks in the election's record.
-- @tparam table job of crown.cron.crontab
-- @tparam[opt] table marks as of crown.register.runs; nil: the job is new
-- @number now the wall clock
-- @treturn number the first time to be made up for; nil: none
-- @treturn number the last one
local function missed(job, marks, now)
  local over, open = runs.slots(marks, job.retries, now)
  local known = open or over
  if not known or known > now then return nil end
  local latest = job.schedule:latest(now, known)
  if job.catch_up == "each" then
    local first = open or job.schedule:next(over)
    if first and first <= latest then return first, latest end
  elseif latest ~= over and (job.catch_up == "once" or latest == open) then
    return latest, latest
  end
end

return missed
