--- The jobs of a crontab on the status page, where the runtime runs one: as a table, as JSON and as metrics.
-- @internal crown.web.jobs

local json = require "crown.text.json"

local jobs = {}

local look -- what tells them

--- Has the endpoint tell of jobs.
-- @tparam function fn returns an array of jobs as of crown.cron.board
function jobs.show(fn) look = fn end

--- The jobs now.
-- @treturn table as above; nil: this runtime runs none
function jobs.all() return look and look() end

--- How well a job does.
-- @tparam table one
-- @treturn string "bad", "warn" or ""
function jobs.level(one)
  if one.overdue then return "bad" end
  return one.failed > 0 and "warn" or ""
end

--- All of them as JSON, without what only the table needs.
-- @treturn string
function jobs.json()
  local found, list = jobs.all() or {}, {}
  for i, one in ipairs(found) do
    list[i] = {}
    for name, value in pairs(one) do list[i][name] = value end
    list[i].level = jobs.level(one)
  end
  return json.line({ heading = found.heading, jobs = list, problem = found.problem }, "jobs")
end

local function exit_code(one)
  local last = one.last
  if not last then return nil end
  return last.code or last.signal and 128 + last.signal or 255 -- it could not be started, or took too long
end

--- The families of metrics, as crown.web.metrics has them.
jobs.FAMILIES = {
  { "crown_job_last_success_timestamp_seconds", "gauge", "when the job's last run began that has succeeded, anywhere",
    function(one) return one.succeeded and one.succeeded.at end },
  { "crown_job_last_exit_code", "gauge", "how the job's last run ended, anywhere: 128 and its number for a signal, 255 for one "
    .. "that could not be started or took too long", exit_code },
  { "crown_job_failed_runs", "gauge", "runs that have failed anywhere since one succeeded",
    function(one) return one.failed end },
  { "crown_job_overdue_seconds", "gauge", "for how long the job is due, and neither done nor running: 0 when it is not",
    function(one) return one.overdue and one.now - one.overdue or 0 end },
  { "crown_job_next_timestamp_seconds", "gauge", "when the job is due next", function(one) return one.next end },
  { "crown_job_running", "gauge", "1 while it runs on some host", function(one) return one.running and 1 or 0 end },
  { "crown_job_paused", "gauge", "1 while it is paused", function(one) return one.paused and 1 or 0 end },
  { "crown_job_runs_total", "counter", "runs that were begun on this host", function(one) return one.runs end },
  { "crown_job_failures_total", "counter", "runs that have failed on this host", function(one) return one.failures end },
}

return jobs
