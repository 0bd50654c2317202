--- Tells a job of crown.register.runs how the command of its election fares.
-- @internal crown.election.outcome

local core = require "crown.core"
local events = require "crown.election.events"

local outcome = {}

local TENTH = 10

local function begin(job)
  job.since, job.at, job.started, job.marked = core.now(), os.time(), true, nil
end

--- Hears that a job's command runs, or that it has ended by itself, or is stopped since it fell silent.
-- @tparam Job job gets `started` and `result`
-- @tparam table event "child.started", "child.exited" or "child.silent" of the leader's command
function outcome.hear(job, event)
  if event.event == "child.started" then
    job.result = nil
    return begin(job)
  end
  if not job.since then begin(job) end -- it could not be started
  outcome.ended(job, { code = event.code, signal = event.signal, error = event.error })
end

--- Notes how a job's command has ended.
-- @tparam Job job gets `result`
-- @tparam table how `code`, `signal` or `error`
function outcome.ended(job, how)
  how.at, how.took = job.at, math.floor((core.now() - job.since) * TENTH + 0.5) / TENTH
  job.result, job.since = how, nil
end

--- Notes in a job that its command runs, and how it has ended, when that ends by itself or fell silent: not when it was stopped.
-- @tparam Job job gets `started` and `result`
-- @string name of the election
function outcome.note(job, name)
  events.listen({ "child.started", "child.exited", "child.silent" }, function(event)
    if event.name == name and event.role == "leader" then outcome.hear(job, event) end
  end)
end

return outcome
