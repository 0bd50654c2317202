--- Runs jobs when they are due: for each occurrence an election among all hosts, whose leader runs the command. What has come of
-- it stands in the election's record (crown.register.runs), so that no other host runs it again.
-- @internal crown.cron.runner

local Agenda = require "crown.cron.agenda"
local core = require "crown.core"
local Course = require "crown.cron.course"
local elect = require "crown.elect"
local events = require "crown.election.events"
local missed = require "crown.cron.missed"
local figure = require "crown.check.figure"
local outcome = require "crown.election.outcome"
local outputs = require "crown.register.outputs"
local runs = require "crown.register.runs"

local runner = {}

-- Seconds in which the hosts claim one after the other, in an order by chance: so each has its share. Those of a lower level wait
-- for longer than that.
local SPREAD = 0.5
local ASK, ASK_MOST = 1, 30 -- seconds from one question for the marks to the next, while the store gives no answer
local UTC = "!%Y-%m-%dT%H:%M:%SZ"

local function wall() return core.now() + core.wall_offset() end

-- The commands that are open on this host, by their election's name.
local open = {}

-- A host that works on by halves would keep its jobs to itself: the service manager starts it again.
local function in_a_task(fn, ...)
  core.detach(function(...)
    local fine, problem = pcall(fn, ...)
    if fine then return end
    core.log("error", "jobs are run no more", { error = tostring(problem) })
    core.exit(1)
  end, ...)
end

-- sh(1) reads the command's input from the line behind it: no further process is between the two.
local function script_of(job)
  if not job.input then return job.command end
  local mark = "CROWN_INPUT"
  while job.input:find(mark, 1, true) do mark = mark .. "_" end
  return ("{ %s\n} <<'%s'\n%s%s\n"):format(job.command, mark, job.input, mark)
end

local function environment_of(job, slot)
  local env = { CROWN_SLOT_TIME = ("%d"):format(slot) }
  for name, value in pairs(job.environment) do env[name] = value end
  return env
end

local function say(level, run, text, fields)
  fields.name, fields.slot = run.course.job.name, run.slot_text
  core.log(level, text, fields)
end

-- A job that takes too long has failed: the election ends, and so does the command, by its stop signal first.
local function watch_the_time(run)
  local timeout = run.course.job.timeout
  if not timeout then return end
  local began = run.marks.since
  core.detach(function()
    core.sleep(timeout)
    if run.ended or run.marks.since ~= began then return end
    outcome.ended(run.marks, { error = ("it took longer than %s s"):format(figure.exact(timeout)) })
    run.course.settings.board:failed(run.course.job.name)
    say("warn", run, "the job takes too long, and is ended", { timeout = timeout })
    run.election:stop()
  end)
end

local hands = {}

function hands.begin(course, slot)
  local job, settings = course.job, course.settings
  if core.is_ending() then return end
  local run = { course = course, slot = slot, slot_text = os.date(UTC, slot) }
  run.marks = runs.job { slot = slot, retries = job.retries, elsewhere = true, plan = { times = job.times, zone = job.zone },
    level = settings.level, yields = settings.yields, from = core.now() }
  run.election = elect {
    name = job.name,
    claim_delay = math.random() * SPREAD,
    healthy = settings.healthy,
    stop_timeout = settings.stop_timeout,
    child = {
      command = { job.environment.SHELL or "/bin/sh", "-c", script_of(job) },
      env = environment_of(job, slot),
      log_fields = { slot = run.slot_text, node = core.node() },
      stdin = "null", stdout = "log", stderr = "log",
      keep_output = job.output == "keep" and outputs.MOST or nil,
      restart = { policy = "finish" },
    },
  }
  assert(runs.attach(run.election, run.marks))
  open[job.name] = run
end

-- Where its election has just ended, the course is about to hear of it.
function hands.stop(course)
  local run = open[course.job.name]
  if run then run.election:stop() end
end

function hands.leads(course)
  local run = open[course.job.name]
  return run ~= nil and run.election:status().phase == "leading"
end

function hands.finish(course)
  course.settings.courses[course.job.name] = nil
end

local heard = {}

heard["leadership.rejected"] = function(run)
  local ran = run.marks.ran
  if not ran then return end
  run.course:pass(ran.took and ran.slot or run.slot) -- what has succeeded is over with all before it
  run.election:stop()
end

-- Else a job that is kept from its night would run in the morning, when somebody resumes it.
heard["leadership.barred"] = function(run, event)
  if event.reason ~= "paused" or run.course.job.catch_up ~= "no" then return end
  say("info", run, "the job is left out, as it is paused", { error = event.error })
  run.course:pass(run.slot)
  run.election:stop()
end

heard["child.started"] = function(run, event)
  outcome.hear(run.marks, event)
  run.course.settings.board:ran(run.course.job.name)
  run.began = os.time()
  say("info", run, "the job begins", { epoch = event.epoch })
  watch_the_time(run)
end

heard["child.exited"] = function(run, event)
  if not run.marks.since then run.course.settings.board:ran(run.course.job.name) end -- it could not be started
  outcome.hear(run.marks, event)
  local fine = event.code == 0
  if fine then run.course:pass(run.slot) else run.course.settings.board:failed(run.course.job.name) end
  say(fine and "info" or "warn", run, fine and "the job has ended" or "the job has failed",
    { took = run.marks.result.took, code = event.code, signal = event.signal, error = event.error })
end

-- What was killed with its keeper or its warden may kill those each time, so it has failed like any other.
heard["child.killed"] = function(run, event)
  if not event.error or not run.marks.since then return end
  outcome.ended(run.marks, { error = event.error })
  run.course.settings.board:failed(run.course.job.name)
  say("warn", run, "the job has failed", { error = event.error })
end

-- The job is over by then, and another host may run it again: it is worth a try or two, and no more.
local function keep_output(run)
  local bytes, written = run.election:output()
  if not bytes or not run.began then return end
  local fields = { bytes = bytes, written = written, node = core.node(), began = run.began, slot = run.slot }
  core.detach(function()
    local kept, problem = run.course.settings.keep(run.course.job.name, fields)
    if not kept then say("warn", run, "the store does not keep what the job has written", { error = problem }) end
  end)
end

-- Also where it was stopped, as its host has lost the lease: its time is not up any more.
heard["child.stopped"] = function(run)
  run.marks.since = nil
  keep_output(run)
end

heard["process.terminating"] = function(run)
  run.ended = true
  open[run.course.job.name] = nil
  in_a_task(run.course.ended, run.course) -- this election's name is free when this event is over
end

local function listen()
  for name, act in pairs(heard) do
    events.listen({ name }, function(event)
      local run = open[event.name]
      if run and event.role ~= "follower" then act(run, event) end
    end)
  end
end

local function marks_by_name(settings)
  local wait = ASK
  while true do
    local listed, problem = settings.list()
    if listed then
      local marks = {}
      for _, one in ipairs(listed) do marks[one.name] = one.runs end
      return marks
    end
    core.log("warn", "the store does not tell yet what has run", { error = problem })
    core.sleep(wait)
    wait = math.min(ASK_MOST, 2 * wait)
  end
end

local function begin(settings, job, first, latest)
  local course = settings.courses[job.name]
  if course then return course:due(latest) end
  course = Course.new(job, first, latest, hands)
  course.settings, settings.courses[job.name] = settings, course
  course:begin()
end

local function work(jobs, settings)
  local now = wall()
  local agenda, marks = Agenda.new(jobs, now), marks_by_name(settings)
  core.log("info", "the jobs are read", { jobs = #jobs })
  for _, job in ipairs(jobs) do
    local first, latest = missed(job, marks[job.name], now)
    if first then begin(settings, job, first, latest) end
  end
  while true do
    for _, one in ipairs(agenda:take(wall())) do begin(settings, one.job, one.first, one.latest) end
    core.sleep(agenda:wait(wall()))
  end
end

--- Begins, and goes on until the program is told to end.
-- @tparam table jobs of crown.cron.crontab
-- @tparam table settings `list()`, which returns the elections of the store with their `runs`, or nil and a message; `keep(name,
-- fields)`, which keeps what a job has written as of crown.register.outputs; `board` of crown.cron.board; `healthy` and
-- `stop_timeout`, as crown.elect takes them; `level` and `yields` of crown.register.levels
function runner.start(jobs, settings)
  settings.courses = {}
  listen()
  core.stay()
  core.exit_code(0) -- and not that of a job
  in_a_task(work, jobs, settings)
end

return runner
