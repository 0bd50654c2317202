--- What became of the runs of a command that is not to run for ever, as of `crown-lua run` with the option once. These marks
-- stand in the election's record, in its field `runs`: a claim is judged by the marks of the very record that it is written over,
-- and the step that releases a lease writes what became of its run. They are pure data here: no clock, no store.
--
-- `done`: the last run that succeeded. `failed`: the runs that failed since then, `count` of them, and the last one of those.
-- `begun`: a run before whose `until` nobody may lead again; the claim has written it. Each has `at`, when it began, `node`, and
-- perhaps `slot`, the time for which it was due; `done` has `took` in seconds, and perhaps `until`; `failed` has `code`, `signal`
-- or `error`, and of a slot `tries`, how often that one has failed. A claim for a slot always writes `begun`, and with it `plan`:
-- the `times` of crontab(5) in the `zone` whose clocks count. Times are seconds since 1970 by the wall clock of the host that
-- wrote them. They decide whether a run is begun, and permit no claim. `prefers` is of crown.register.levels.
--
-- A mark whose types are others is no mark. Other fields are kept, as other marks are.
-- @internal crown.register.runs

local figure = require "crown.check.figure"
local levels = require "crown.register.levels"
local printable = require "crown.text.printable"

local runs = {}

local LATER = 60 -- seconds until a candidate asks again that goes on waiting
local AHEAD = 900 -- seconds: a slot that is further away was written by a clock that was wrong
local ELSEWHERE = 5 -- seconds that the host which failed last leaves to the others

local TYPES = { at = "number", node = "string", took = "number", ["until"] = "number", slot = "number", count = "number",
  tries = "number", code = "number", signal = "number", error = "string" }

local function mark(found, name)
  local one = type(found) == "table" and found[name]
  if type(one) ~= "table" or not one.at or not one.node then return nil end
  for field, wanted in pairs(TYPES) do
    if one[field] ~= nil and type(one[field]) ~= wanted then return nil end
  end
  return one
end

-- For how long a mark counts yet that counts for so many seconds from its run's end, or its begin where the end is not known.
-- A clock that was wrong by years must not keep everybody from running for as long: a mark counts for no more than that length
-- before it was written.
local function left_of(one, length, time)
  local left = one.at + (one.took or 0) + length - time
  return left > 0 and left <= 2 * length and left or nil
end

local function stands(begun, time)
  return begun["until"] ~= nil and left_of(begun, begun["until"] - begun.at, time) ~= nil
end

local function instant(at, time)
  local same_day = os.date("%Y-%m-%d", at) == os.date("%Y-%m-%d", time)
  return os.date(same_day and "at %H:%M:%S %z" or "on %Y-%m-%d at %H:%M:%S %z", at)
end

local function length(took) return (took < 10 and figure.about(took) or ("%.0f"):format(took)) .. " s" end

local function done_words(one, time)
  return ("ran on %s %s%s"):format(printable(one.node), instant(one.at, time), one.took and ", took " .. length(one.took) or "")
end

local function begun_words(one, time)
  local ends = instant(one["until"], time):gsub("^[ao][tn] ", "")
  return ("held until %s, as %s began it %s"):format(ends, printable(one.node), instant(one.at, time))
end

--- How a run that failed has ended, in words.
-- @tparam table one a mark
-- @treturn string
function runs.ended(one)
  if one.error then return printable(one.error) end
  return one.signal and ("signal %d"):format(one.signal) or ("exit code %d"):format(one.code or 1)
end

local function failed_words(one, time)
  local times = (one.count or 1) > 1 and ("%d times, last "):format(one.count) or ""
  return ("failed %son %s %s: %s"):format(times, printable(one.node), instant(one.at, time), runs.ended(one))
end

-- --- jobs

local Job = {}
Job.__index = Job

--- What one candidate asks of the marks, and writes there.
-- Its field `ran` is the mark by which the last claim was not begun any more, or nil; `defers` whether that claim only leaves the
-- others the first turn, `held` whether nobody may begin it yet. Whoever runs the command sets `started` when it runs, and
-- `result` when it has ended: `{ at =, took =, code =, signal =, error = }`, as of a mark.
-- @tparam table options `done_for`: seconds for which nobody begins it again after it has succeeded, counted from its end;
-- `at_least`: seconds for which nobody leads again, counted from the claim; `elsewhere`: after a failure on this host another one
-- comes first; `slot`: a number: it is not begun where one of that slot has succeeded, or one of a later slot was begun;
-- `retries`: how often one slot is tried again after a failure, at most; nil: without end; `plan`: `{ times =, zone = }`, noted
-- for who looks at the marks; `level`, `yields` and `from`, as of crown.register.levels
-- @treturn Job
function runs.job(options)
  return setmetatable({ done_for = options.done_for, at_least = options.at_least, elsewhere = options.elsewhere,
    slot = options.slot, retries = options.retries, plan = options.plan, level = options.level, yields = options.yields,
    from = options.from }, Job)
end

--- A job as it is now: what is owed of a term must not change with the next one.
-- @tparam[opt] Job job
-- @treturn Job or nil
function runs.now(job)
  local one = job and runs.job(job)
  if one then one.started, one.result, one.of = job.started, job.result, job end
  return one
end

--- Gives a candidate its job.
-- @tparam Election election as crown.elect returns it, before it has claimed
-- @tparam Job job
-- @treturn boolean true; or nil and a message: its store keeps no marks
function runs.attach(election, job)
  local state = election.state
  if type(state) ~= "table" or not state.attend then return nil, "its store keeps no marks of runs" end
  state:attend(job)
  return true
end

-- Whether a mark says that a job's slot is over: a later one was begun, or it has succeeded, or failed too often.
local function is_over(job, name, one, time)
  local slot = job.slot and one.slot
  if not slot or slot < job.slot or slot > math.max(time, job.slot) + AHEAD then return false end
  return slot > job.slot or name == "done" or name == "failed" and job.retries ~= nil and (one.tries or 1) > job.retries
end

local SAYS = {
  done = done_words,
  failed = failed_words,
  begun = function(one, time) return ("a later run was begun on %s %s"):format(printable(one.node), instant(one.at, time)) end,
}
local ORDER = { "done", "failed", "begun" }

--- Whether a run is not to be begun any more, whatever else the record says.
-- @tparam[opt] table found the marks of the record
-- @tparam[opt] Job job of the candidate
-- @number time of day, in seconds
-- @treturn table the mark that says so, or nil
-- @treturn number seconds until it is asked again
-- @treturn string the mark in words
function runs.ran(found, job, time)
  for _, name in ipairs(found and job and ORDER or {}) do
    local one = mark(found, name)
    -- The job that asks says for how long, so that a period that was changed is obeyed at once.
    local left = one and name == "done" and job.done_for ~= nil and left_of(one, job.done_for, time)
    if one and (left or is_over(job, name, one, time)) then
      return one, left and math.min(LATER, left) or LATER, SAYS[name](one, time)
    end
  end
end

--- A mark, where it is one.
-- @tparam[opt] table found the marks of the record
-- @string name "done", "failed" or "begun"
-- @treturn table as above, or nil
function runs.mark(found, name) return found and mark(found, name) end

--- When the runs were due, as far as that is noted.
-- @tparam[opt] table found the marks of the record
-- @treturn table `times` and `zone`, or nil
function runs.plan(found)
  local plan = type(found) == "table" and found.plan
  if type(plan) ~= "table" or type(plan.times) ~= "string" or type(plan.zone) ~= "string" then return nil end
  return plan
end

--- Up to which slot all are over, and which one was begun after that and has not ended, as far as marks tell.
-- @tparam[opt] table found the marks of the record
-- @tparam[opt] number retries how often a slot is tried again
-- @number time of day, in seconds
-- @treturn number the last slot that is over, or nil
-- @treturn number the one that is open, or nil
function runs.slots(found, retries, time)
  local over, open
  for _, name in ipairs(ORDER) do
    local one = mark(found, name)
    local slot = one and one.slot
    if slot and slot <= time + AHEAD then
      if is_over({ slot = slot, retries = retries }, name, one, time) then over = math.max(over or slot, slot)
      else open = math.max(open or slot, slot) end
    end
  end
  return over, open and open > (over or -math.huge) and open or nil
end

-- For how long a candidate leaves others the first turn: whose host failed last, and whose host is preferred less.
local function defers(found, job, node, stood, now)
  local failed = found and job and job.elsewhere and mark(found, "failed")
  local left, why = levels.wait(found, job, now)
  if not failed or failed.node ~= node or ELSEWHERE - stood <= (left or 0) then return left, why end
  return ELSEWHERE - stood, failed
end

--- For how long a candidate may not claim by what is marked.
-- @tparam[opt] table found the marks of the record
-- @tparam[opt] Job job of the candidate
-- @string node the candidate's
-- @number stood seconds for which the candidate has seen the record stand
-- @number time of day, in seconds
-- @number now on the clock of the job's `from`
-- @treturn number seconds until it asks again; or nil: it may claim
-- @treturn string why
-- @treturn boolean whether it only leaves the others the first turn
function runs.wait(found, job, node, stood, time, now)
  local begun = found and mark(found, "begun")
  if begun and stands(begun, time) then return math.min(LATER, begun["until"] - time), begun_words(begun, time), false end
  local left, why = defers(found, job, node, stood, now)
  if not left then return nil end
  return left, type(why) == "table" and failed_words(why, time) or why, true
end

local function copy_of(found)
  local one = {}
  for name, value in pairs(type(found) == "table" and found or one) do one[name] = value end
  return one
end

local function or_none(one) return next(one) ~= nil and one or nil end

--- The marks with a claim.
-- @tparam[opt] table found those of the record that it is written over
-- @tparam[opt] Job job of the candidate
-- @string node the candidate's
-- @number time of day, in seconds
-- @treturn table or nil: none
function runs.claimed(found, job, node, time)
  local begins = job and (job.at_least or job.slot)
  if not found and not begins then return nil end
  local one = copy_of(found)
  one.begun = begins and { at = math.floor(time), ["until"] = job.at_least and math.ceil(time + job.at_least), node = node,
    slot = job.slot } or nil
  if job then one.plan = job.plan or one.plan end
  levels.note(one, job, node)
  return or_none(one)
end

--- The marks with the level of a candidate that has lost its slot to a lower one.
-- @tparam[opt] table found those of the record that it is written over
-- @tparam[opt] Job job of the candidate
-- @string node the candidate's
-- @treturn table or nil: nothing is to be written
function runs.risen(found, job, node)
  if not levels.is_above(found, job) then return nil end
  local one = copy_of(found)
  levels.note(one, job, node)
  return one
end

local function failure_of(job, node, before)
  local result, again = job.result, before and job.slot and before.slot == job.slot
  return { count = (before and before.count or 0) + 1, at = result.at, took = result.took, node = node, code = result.code,
    signal = result.signal, error = result.error, slot = job.slot, tries = job.slot and (again and before.tries or 0) + 1 or nil }
end

local function success_of(job, node)
  local result = job.result
  local ends = job.done_for and math.ceil(result.at + result.took + job.done_for) or nil
  return { at = result.at, took = result.took, node = node, ["until"] = ends, slot = job.slot }
end

local function is_success(result) return result.code == 0 and not result.signal and not result.error end

--- Whether a job has marks to write when its lease is given back.
-- @tparam Job job
-- @treturn boolean
function runs.owes(job)
  return job.result ~= nil or job.at_least ~= nil and not job.started
end

--- The marks with what became of a job, where that is known. What was claimed and never began holds nobody up.
-- @tparam[opt] table found those of the record that it is written over
-- @tparam Job job
-- @string node the candidate's
-- @treturn table or nil: none
function runs.after(found, job, node)
  local one = copy_of(found)
  if not job.started and not job.slot then one.begun = nil end
  local result = job.result
  if result and is_success(result) then
    one.failed = nil
    if job.done_for or job.slot then one.done = success_of(job, node) end
  elseif result then
    one.failed = failure_of(job, node, mark(found, "failed"))
  end
  return or_none(one)
end

--- Whether a job's success is to be marked, so that nobody begins it again.
-- @tparam Job job
-- @treturn boolean
function runs.expects_mark(job)
  return job.result ~= nil and is_success(job.result) and (job.done_for or job.slot) ~= nil
end

--- Whether marks tell of the run of a job.
-- @tparam[opt] table found the marks of the record
-- @tparam Job job
-- @string node the candidate's
-- @treturn boolean
function runs.tell_of(found, job, node)
  local done = mark(found, "done")
  return done ~= nil and job.result ~= nil and done.at == job.result.at and done.node == node
end

--- Notes that a store has the marks of a job's run.
-- @tparam Job job as `now` made it, of a job whose field `marked` counts the stores
function runs.note_marked(job)
  job.of.marked = (job.of.marked or 0) + 1
end

--- The marks without what has run: it may be begun again.
-- @tparam[opt] table found
-- @treturn table or nil: none are left
function runs.forgotten(found)
  local one = copy_of(found)
  one.done, one.failed, one.begun, one.plan = nil, nil, nil, nil
  return or_none(one)
end

--- Marks in words.
-- @tparam[opt] table found
-- @number time of day, in seconds
-- @treturn string or nil: there are none
function runs.words(found, time)
  local parts, done, failed, begun = {}, mark(found, "done"), mark(found, "failed"), mark(found, "begun")
  if done then parts[#parts + 1] = done_words(done, time) end
  if failed then parts[#parts + 1] = failed_words(failed, time) end
  if begun and stands(begun, time) then parts[#parts + 1] = begun_words(begun, time) end
  return parts[1] and table.concat(parts, "; ")
end

local MARKS = { "done", "failed", "begun" }

-- @return a mark of that name, the one that was written later
local function later_of(one, other, name)
  local first, second = mark(one, name), mark(other, name)
  if first and second then return second.at > first.at and second or first end
  return first or second
end

--- Of the marks of two servers those that were written later, each kind by itself: a claim that too few servers granted leaves
-- its mark beside older ones. A failure is one since the last success.
-- @tparam[opt] table one
-- @tparam[opt] table other
-- @treturn table or nil: there are none
function runs.later(one, other)
  if not one or not other then return one or other end
  local function last(found)
    local at = -1
    for _, name in ipairs(MARKS) do at = math.max(at, (mark(found, name) or { at = -1 }).at) end
    return at
  end
  local found = copy_of(last(other) > last(one) and other or one)
  for _, name in ipairs(MARKS) do found[name] = later_of(one, other, name) end
  if found.done and found.failed and found.failed.at < found.done.at then found.failed = nil end
  return found
end

return runs
