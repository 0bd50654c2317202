--- Tells a job of crown.register.runs how the command of its election fares.
-- @internal crown.election.outcome

local core = require "crown.core"
local events = require "crown.election.events"

local outcome = {}

local TENTH = 10

--- Notes in a job that its command runs, and how it has ended, when that ends by itself: not when it was stopped.
-- @tparam Job job gets `started` and `result`
-- @string name of the election
function outcome.note(job, name)
  local began, at
  local function begin()
    began, at, job.started = core.now(), os.time(), true
  end
  events.listen({ "child.started", "child.exited" }, function(event)
    if event.name ~= name or event.role ~= "leader" then return end
    if event.event == "child.started" then
      job.result = nil
      return begin()
    end
    if not began then begin() end -- it could not be started
    local took = math.floor((core.now() - began) * TENTH + 0.5) / TENTH
    job.result = { at = at, took = took, code = event.code, signal = event.signal, error = event.error }
    began = nil
  end)
end

return outcome
