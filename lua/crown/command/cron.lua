--- Runs the jobs of a crontab, each occurrence on one of all hosts.
-- @internal crown.command.cron

local Board = require "crown.cron.board"
local cli = require "crown.command.cli"
local control = require "crown.control"
local crontab = require "crown.cron.crontab"
local files = require "crown.core.files"
local host_zone = require "crown.cron.host_zone"
local is_program = require "crown.command.is_program"
local json = require "crown.text.json"
local output = require "crown.command.output"
local printable = require "crown.text.printable"
local read_file = require "crown.text.read_file"
local store = require "crown.command.store"
local usage = require "crown.check.usage"

local cron = {
  summary = "run the jobs of a crontab, each occurrence on one of all hosts",
  usage = "crown-lua cron [OPTIONS] FILE\n  crown-lua cron --check FILE [--json]",
  most_words = 1,
  campaigns = true,
  options = {
    { name = "check", help = "show each job with its next five times, and what is wrong with FILE; needs no store" },
    { name = "json", help = "with --check: for programs" },
    { name = "healthy", value = "COMMAND", help = "run jobs only while this command of sh(1) ends with 0: asked every 5 s",
      default = "no check" },
    { name = "prefer", value = "N", number = { least = -1000, most = 1000, integer = true }, default = "0",
      help = "of the hosts that live, the one with the highest N runs the jobs" },
    { name = "prefer-wait", value = "SECONDS", number = { least = 1, most = 30 }, default = "2",
      help = "leave an occurrence to a host that is preferred for so long, also where that is gone" },
    { name = "stop-timeout", value = "SECONDS", number = { above = 0, most = 86400 },
      help = "from a job's stop signal to KILL", default = "a quarter of the TTL, at most 5" },
  },
  help = [[
It is started with the same FILE on every host, as a service. When a job is due, one of the hosts
runs it, and the store remembers that it has succeeded. Where the job fails, another host tries it
again, as often as its options say. Where the host dies, another one begins it again. A job's
output goes to the log, each line with the job's name, its time, and the host.

FILE is a crontab as in crontab(5), without a column for the user: five fields or @daily and its
kin, CRON_TZ=ZONE, variables, comments, and % for the command's input. A line before a job has its
options:

  CRON_TZ=Europe/Berlin
  #: name=nightly timeout=2h retries=3 catch-up=once
  15 3 * * mon-fri  /usr/local/bin/backup --all

  name       the job's, and its election's; by default the program's
  timeout    how long it may run: 90s, 10m, 2h
  retries    how often it is tried again when it fails, by default 0
  overlap    no: a job never runs beside itself
  output     keep: the store keeps the last 64 KiB of the last run too, for `info --output NAME`
  catch-up   what of the times at which no host was up, or it was paused, is made up for: no (the
             default), once, each

Hosts share the jobs by chance. Where some have a higher --prefer, the highest of those that live
runs them: the others wait for --prefer-wait first. When it comes back, it may lose one occurrence.

A command gets CROWN_SLOT_TIME, the time at which it was due (seconds since 1970), CROWN_EPOCH,
CROWN_ELECTION and CROWN_NODE. FILE is read once: after a change, start the services again.

--check shows each job with its next five times by the clocks of its zone. Exit code 2 where
something is wrong, with line, column, and what is meant.]],
}

local NEXT = 5 -- times that are shown
local PREFER_WAIT = 2 -- seconds; less than from one occurrence to the next, else a host would wait for ever
local WRONG = 2

local USERS = "/etc/passwd"
local A_USER = "'%s' is a user of this host, and no program: there is no column for the user here, unlike in /etc/cron.d"

-- A line of /etc/cron.d names a user in front of its command.
local function add_users_columns(problems, jobs)
  local users = "\n" .. (read_file(USERS) or "")
  for _, job in ipairs(jobs) do
    local user = job.command:match "^([%w_][%w._-]*)%s+%S"
    if user and users:find("\n" .. user .. ":", 1, true) and not is_program(user, job.environment.PATH) then
      problems[#problems + 1] = { line = job.line, column = job.column, message = A_USER:format(user) }
    end
  end
  table.sort(problems, function(a, b) return a.line < b.line or a.line == b.line and a.column < b.column end)
end

local function read(words)
  local path = words[1]
  if not path then usage.error("cron: name a crontab: %s", cli.usage(cron)) end
  if path == "" then usage.error "cron: FILE is an empty word (is a variable not set?)" end
  local fine, problem = files.readable(path)
  if not fine then usage.error("cron: %s", problem) end
  local text
  text, problem = read_file(path)
  if not text then usage.error("cron: %s cannot be read%s", path, problem and ": " .. problem or "") end
  local jobs, problems = crontab.read(text, host_zone())
  add_users_columns(problems, jobs)
  if #jobs == 0 and #problems == 0 then problems[1] = { line = 1, column = 1, message = "the file has no job" } end
  return path, jobs, problems
end

local function next_of(job)
  local times, time = {}, os.time()
  for i = 1, NEXT do
    time = job.schedule:next(time)
    if not time then break end
    times[i] = time
  end
  return times
end

local function in_words(job, time)
  local ahead = job.schedule.zone:offset(time)
  local minutes = math.floor(math.abs(ahead) / 60)
  return os.date("!%A %d %B %Y %H:%M", time + ahead) .. (" (UTC%s%02d:%02d)"):format(ahead < 0 and "-" or "+",
    math.floor(minutes / 60), minutes % 60)
end

local function show(job)
  output.line(("%s (line %d): %s, %s"):format(job.name, job.line, job.times, job.zone))
  output.line("  runs   " .. printable(job.command))
  local times = next_of(job)
  for i, time in ipairs(times) do output.line((i == 1 and "  next   " or "         ") .. in_words(job, time)) end
  if #times < NEXT then output.line("         and not again in the eight years from then") end
end

local TZ = "line %d: TZ is for the command alone: when it is due goes by CRON_TZ (here %s)"

-- Hosts whose zones differ would run its jobs at different times.
local function warnings_of(jobs)
  for _, job in ipairs(jobs) do
    if job.is_hosts_zone and job.environment.TZ then return { TZ:format(job.line, job.zone) } end
    if job.is_hosts_zone and job.zone ~= "UTC" and job.zone ~= "Etc/UTC" then
      return { ("line %d: no CRON_TZ is above it, so the time zone of each host counts (here %s): write CRON_TZ=%s at the top")
        :format(job.line, job.zone, job.zone) }
    end
  end
  return {}
end

local function for_programs(jobs, problems, warnings)
  local list = {}
  for i, job in ipairs(jobs) do
    list[i] = { name = job.name, line = job.line, times = job.times, zone = job.zone, command = job.command, input = job.input,
      timeout = job.timeout, retries = job.retries, catch_up = job.catch_up, output = job.output, next = next_of(job) }
  end
  return json.line({ jobs = list, problems = problems, warnings = warnings }, "jobs", "problems", "warnings", "next")
end

local function tell(path, problems, warnings)
  for _, warning in ipairs(warnings) do output.say("cron", ("%s: %s"):format(path, warning)) end
  for _, one in ipairs(problems) do
    output.say("cron", ("%s:%d:%d: %s"):format(path, one.line, one.column, one.message))
  end
end

local function check(options, words)
  local path, jobs, problems = read(words)
  local warnings = warnings_of(jobs)
  if options.json then
    output.write(for_programs(jobs, problems, warnings))
    return #problems == 0 and 0 or WRONG
  end
  for _, job in ipairs(jobs) do show(job) end
  tell(path, problems, warnings)
  output.line(("%s: %d job%s, %s"):format(printable(path), #jobs, #jobs == 1 and "" or "s",
    #problems == 0 and "nothing wrong" or "not as it should be"))
  return #problems == 0 and 0 or WRONG
end

--- Answers `--json` where the command line is wrong.
-- @param problem the error
-- @treturn number the exit code
function cron.refused(problem)
  local message = type(problem) == "table" and problem.message or problem
  output.write(for_programs({}, { { message = usage.one_line(message) } }, {}))
  return WRONG
end

-- Events that the log leaves out: the jobs write lines of their own for each occurrence.
local QUIET = {}
for i, name in ipairs { "leadership.claimed", "leadership.changed", "leadership.lost", "leadership.abdicated", "child.started",
  "child.exited", "child.stopped", "monitor.leader_down", "oracle.connected" } do
  QUIET[i] = name .. "=warn"
end

--- The filter of the log where no option sets one.
-- @treturn string as --log-filter takes it
function cron.log_filter()
  return table.concat(QUIET, ",")
end

-- What asks the store what has run.
local function lister()
  store.expect_marks "cron"
  local list, opts = store.find("cron", "list")
  return function() return list(opts) end
end

-- What has the store keep the end of a job's output, where a job wants that.
local function keeper(jobs)
  local is_wanted = false
  for _, job in ipairs(jobs) do is_wanted = is_wanted or job.output == "keep" end
  if not is_wanted then return nil end
  local keep, opts = store.find("cron", "output")
  return function(name, fields)
    local one = { keep = fields }
    for option, value in pairs(opts) do one[option] = value end
    return keep(one, store.election(opts, name))
  end
end

local function refuse_in_vain(options)
  if options.json then usage.error "cron: --json has no effect here: it goes with --check" end
end

--- The verb.
function cron.run(options, words)
  if options.check then return check(options, words) end
  refuse_in_vain(options)
  local path, jobs, problems = read(words)
  tell(path, problems, warnings_of(jobs))
  if #problems > 0 then return WRONG end
  local list = lister()
  control.open() -- also where nothing is due for a day
  local board = Board.new(jobs, list, os.time())
  if options.http then require("crown.web").show_jobs(function() return board:look(os.time()) end) end
  require("crown.cron.runner").start(jobs, { list = list, keep = keeper(jobs), board = board,
    stop_timeout = options["stop-timeout"], level = options.prefer or 0, yields = options["prefer-wait"] or PREFER_WAIT,
    healthy = options.healthy and { exec = { "/bin/sh", "-c", options.healthy } } or nil })
end

return cron
