--- Runs a command on the one candidate that leads.
-- @internal crown.command.run

local console = require "crown.core.console"
local core = require "crown.core"
local figure = require "crown.check.figure"
local elect = require "crown.elect"
local events = require "crown.election.events"
local notices = require "crown.core.notices"
local outcome = require "crown.election.outcome"
local output = require "crown.command.output"
local printable = require "crown.text.printable"
local progress = require "crown.command.progress"
local runs = require "crown.register.runs"
local seconds = require "crown.check.seconds"
local settings = require "crown.election.settings"
local store = require "crown.command.store"
local usage = require "crown.check.usage"

local run = {
  summary = "run a command on exactly one candidate, as long as that one leads",
  usage = "crown-lua run [OPTIONS] NAME [--] COMMAND [ARG...]",
  campaigns = true,
  command_at = 2,
  log_level = "warn",
  options = {
    { name = "terminate", help = "as by default, and send SIGUSR1 at the win to a command with a handler for it" },
    { name = "signal", help = "only tell the command when leadership is lost: it lives on" },
    { name = "fence", help = "with --signal: KILL at the deadline unless it has exited or leads again" },
    { name = "follower", value = "COMMAND", help = "what sh(1) runs while somebody else leads; not with --signal",
      default = "nothing" },
    { name = "restart", value = "POLICY", values = { "permanent", "transient", "temporary" },
      help = "keep campaigning when the command ends: permanent, transient or temporary", default = "end with the command" },
    { name = "stop-timeout", value = "SECONDS", number = { above = 0, most = 86400 },
      help = "from the first stop signal to KILL", default = "a quarter of the TTL, at most 5" },
    { name = "once", help = "give up with exit code 1 when somebody else leads; COMMAND is begun once" },
    { name = "done-for", value = "TIME", default = "begin it again at any time",
      help = "with --once: end with 0 where COMMAND did so less than TIME ago, on any host (20h, 90m)" },
    { name = "at-least", value = "TIME", default = "until COMMAND ends",
      help = "with --once: nobody leads again before TIME after its start, also when this host is gone" },
    { name = "retry-elsewhere", help = "with --once: where it failed on this host last, another host comes first" },
    { name = "wait", value = "SECONDS", number = { least = 0, most = 31536000 },
      help = "give up when it has not won after so long; with --once, try for so long first",
      default = "campaign until told to end" },
    { name = "never", help = "never lead here: COMMAND is not started, --follower's is; not with --once or --wait" },
    { name = "healthy", value = "COMMAND", help = "lead only while this command of sh(1) ends with 0: asked every 5 s",
      default = "no check" },
    { name = "last-resort", help = "with --healthy: lead though it fails, where nobody else leads" },
    { name = "prefer", value = "N", number = { least = -1000, most = 1000, integer = true }, default = "0",
      help = "of those that wait, a higher one leads first" },
    { name = "prefer-wait", value = "SECONDS", number = { least = 0, most = 3600 }, default = "2, or two looks",
      help = "leave those that are preferred the first claim for so long, also where they are gone" },
    { name = "preempt", value = "SECONDS", number = { above = 0, most = 31536000 }, default = "wait for its end",
      help = "ask a leader of a lower --prefer to go after so long" },
    { name = "watchdog", value = "SECONDS", number = { least = 0.1, most = 86400 }, default = "COMMAND may be silent",
      help = "stop COMMAND when it has not said WATCHDOG=1 by sd_notify(3) for so long" },
    { name = "window", value = "HOURS", many = true, default = "at any time",
      help = "lead only then: 'Mon-Fri 08:00-18:00 Europe/Berlin'; give it again for further hours" },
    { name = "slots", value = "COUNT", number = { least = 1, most = 64, integer = true }, default = "one leader",
      help = "so many nodes lead at once, each one of NAME.1, NAME.2 and so on; COMMAND gets CROWN_SLOT" },
    { name = "shares", value = "COUNT", number = { least = 1, most = 1024, integer = true }, default = "one leader",
      help = "spread NAME.1 to NAME.COUNT evenly over the nodes; COMMAND runs for each and gets CROWN_SHARE" },
    { name = "quiet", help = "do not say who leads, nor that somebody else does" },
    { name = "isolation", value = "KIND", values = { "tree", "pidns" }, help = "tree, or pidns: a PID namespace",
      default = "tree" },
  },
  help = [[
COMMAND starts when NAME is won. When NAME is lost, COMMAND gets INT, a second later TERM, and its
whole tree is killed before anybody else can lead; crown-lua then campaigns again. With --terminate
a COMMAND that has a handler for SIGUSR1 gets that signal when it leads.

With --signal COMMAND lives on when NAME is lost. It gets SIGUSR2 then, and SIGUSR1 at each win, as
soon as it has handlers for them. It must stop its work at SIGUSR2 by itself, or two of them work
at once; --fence kills it at the deadline if it does not end.

When COMMAND ends by itself, crown-lua releases the lease and ends with COMMAND's exit code. That is
128 + N where signal N ended it, 127 where there is no such command, and 126 where it cannot be
executed.

COMMAND gets the terminal, and the variables CROWN_ELECTION, CROWN_NODE, CROWN_ROLE and CROWN_EPOCH.
With --signal it gets CROWN_EPOCH_FILE too: a file that has the epoch of each win before SIGUSR1
comes.

Ctrl-C reaches COMMAND, which decides what to do. With --restart it ends COMMAND and then crown-lua;
half a second later or more, Ctrl-C again ends both at once.

When the terminal that it was started from is gone, crown-lua ends in order, as on TERM. With --keep
it goes on, as it does under nohup(1); COMMAND then does not get the terminal.

  crown-lua run reports -- ./report-worker --loop
  crown-lua run --restart permanent web ./server
  * * * * *  crown-lua run --once nightly ./backup      # one of several crontabs
  */10 * * * *  crown-lua run --once --quiet --done-for 20h nightly ./backup      # until it has succeeded]],
}

local NOT_LEADER, MISUSED, UNREACHABLE = 1, 2, 3
local NO_SUCH_FILE = "No such file or directory"

local JOB = { "done-for", "at-least", "retry-elsewhere" } -- options that need marks of runs in the store

-- What to say where only one of NAME and COMMAND stands there.
local function one_word(word)
  if word:find "%.lua$" then return ("an app needs no verb: crown-lua %s"):format(word) end
  if word:find "/" then return ("name an election before the command: crown-lua run NAME -- %s"):format(word) end
  return ("name a command for '%s': %s"):format(word, run.usage)
end

local function check(options, words)
  if not words[1] then usage.error("run: name an election and a command: %s", run.usage) end
  if not words[2] then usage.error("run: %s", one_word(words[1])) end
  if words[2] == "" then usage.error("run: the command for '%s' is an empty word (is a variable not set?)", words[1]) end
  if options.signal and options.terminate then
    usage.error("run: --signal and --terminate say the opposite of each other")
  end
  if options.follower and options.signal then
    usage.error("run: --follower cannot go with --signal: there COMMAND itself lives on while it follows")
  end
  if options.once and options.restart then
    usage.error("run: --once ends with COMMAND, which is begun once: leave --restart %s out", options.restart)
  end
  for _, name in ipairs(JOB) do
    if options[name] and not options.once then usage.error("run: --%s belongs to --once", name) end
  end
  if options.never and (options.once or options.wait) then
    usage.error("run: --never never leads, so %s could only give up", options.once and "--once" or "--wait")
  end
  local many = options.slots and "slots" or options.shares and "shares"
  if options.slots and options.shares then
    usage.error("run: --slots cannot go with --shares: both say how many elections there are")
  end
  if many and (options.once or options.wait) then
    usage.error("run: --%s cannot go with --%s, which asks for one leader", many, options.once and "once" or "wait")
  end
  if many and (options.follower or options.signal) then
    usage.error("run: --%s cannot go with --%s: it would run a command for each of them", many,
      options.signal and "signal" or "follower")
  end
  if options["last-resort"] and not options.healthy then
    usage.error("run: --last-resort belongs to --healthy: without a check every candidate leads")
  end
  for _, name in ipairs { "preempt", "prefer", "prefer-wait" } do
    if options.never and options[name] and options[name] ~= 0 then
      usage.error("run: --never never leads, so --%s has no effect", name)
    end
  end
  if options.fence and not options.signal then
    usage.error("run: --fence belongs to --signal; otherwise COMMAND is killed at the deadline anyway")
  end
end

local function length_of(options, name)
  local given = options[name]
  if not given then return nil end
  local length = seconds.read(given)
  if not length or length > seconds.LONGEST then
    usage.error("run: --%s: '%s' is no time of up to %s days, such as 20h, 90m or 60", name, printable(given),
      figure.exact(seconds.LONGEST / 86400))
  end
  return length
end

-- @return the job of crown.register.runs, or nil: the options ask for none
local function job_of(options)
  local wanted
  for _, name in ipairs(JOB) do wanted = wanted or options[name] and name end
  if not wanted then return nil end
  local job = runs.job { done_for = length_of(options, "done-for"), at_least = length_of(options, "at-least"),
    elsewhere = options["retry-elsewhere"] }
  store.expect_marks("run --" .. wanted)
  return job
end

-- What a command of `run` is told so that it can speak to the service manager that has started crown-lua.
local function notices_for_child()
  local socket, problem = notices.open()
  if not socket then return problem and output.say("run", problem) end
  return { NOTIFY_SOCKET = socket, WATCHDOG_USEC = os.getenv "WATCHDOG_USEC" }
end

local function forget_when_it_ends()
  events.listen({ "child.stopped", "child.exited", "child.killed" }, function(event)
    if event.role == "leader" then notices.forget() end
  end)
end

-- Somebody who writes `-- "echo hi"` may not know that no shell takes the words apart.
local function explain_a_line(words)
  local command = words[2]
  if #words > 2 or not command:find "%s" then return end
  events.listen({ "child.exited" }, function(event)
    if event.role ~= "leader" or not (event.error or ""):find(NO_SUCH_FILE, 1, true) then return end
    local line = command:gsub("'", "'\\''")
    output.say("run", ("'%s' is taken for the name of one program; for a line of a shell: sh -c '%s'"):format(command, line))
  end)
end

-- Several events may say so; the first one is told.
local function give_up(election, code, text)
  if election.given_up then return end
  election.given_up = true
  if text then output.say("run", text) end
  core.exit_code(code)
  election:stop()
end

-- Where it has run already, as far as --done-for is concerned, nothing is left to do.
local function end_where_it_has_run(election, job, quiet)
  events.listen({ "leadership.rejected" }, function(event)
    if job.ran then give_up(election, 0, not quiet and ("'%s' %s"):format(election.name, event.error)) end
  end)
end

-- An answer that somebody else leads, or that there was none, ends it: the first one, or when the time is up, the last one
-- before that. Who has led is past that. Who has won and cools down is neither: it leads, or hears of its loss.
local function give_up_when_not_leader(election, job, options, on_led)
  local patience, quiet = options.wait, options.quiet
  local name, problem, code, led, answered, waiting = election.name, nil, nil, false, false, patience ~= nil
  local because -- nobody may lead it now
  events.listen({ "leadership.claimed", "leadership.acting" }, function(event)
    led = led or event.phase == "leading"
    if led then on_led() end
  end)
  local function judge()
    local status = election:status()
    local leader = status.leader
    if led or status.phase == "leading" or status.phase == "cooling" then return end
    if problem and not leader then return give_up(election, code, problem) end
    if because and not leader then
      local is_usual = quiet and job and job.held -- others came first, as their crontabs have it
      return give_up(election, NOT_LEADER, not is_usual and ("'%s' is %s"):format(name, because))
    end
    give_up(election, NOT_LEADER, not quiet and ("'%s' is led by %s"):format(name, leader or "nobody yet"))
  end
  local function answer()
    answered = true
    if not waiting then judge() end
  end
  events.on("oracle.error", function(event)
    if event.server and not event.name then return end -- of a connection, which may lack what a claim does not need
    problem, code = event.error, event.fault == "usage" and MISUSED or UNREACHABLE
    answer()
  end)
  events.listen({ "leadership.rejected" }, function(event)
    because = event.error
    if job and (job.ran or job.defers) then return end -- it is told elsewhere, or has its turn soon
    if not event.unsure then answer() end -- of a holder that may have died long ago: soon somebody knows
  end)
  events.listen({ "leadership.barred" }, function(event) -- which drops the question that would have told of it
    if event.reason ~= "paused" then return end
    because = event.error
    answer()
  end)
  events.on("leadership.lost", function() -- in its cool-down; an outage that goes on is not told again
    if election:status().away then answer() end
  end)
  if not waiting then return end
  events.on("oracle.amnesia", answer) -- without a time it is waited for
  core.spawn(function()
    core.sleep(patience)
    waiting = false
    local bar = not led and (election:status().barred or {})[1] -- it does not ask who leads
    if bar then give_up(election, NOT_LEADER, ("'%s' may not be led here: %s (%s)"):format(name, bar.reason, bar.why))
    elseif answered then judge() end
  end)
end

-- With --once nothing is begun twice: a command that was stopped with its term has done a part of its work. One that lives on, as
-- with --signal, does not end with its term.
local STOPPED = "the command was stopped, since the lease was lost: it was not run to its end; %s%s"
local STOPS = { expired = UNREACHABLE, denied = NOT_LEADER, evicted = NOT_LEADER, abdicated = NOT_LEADER,
  unhealthy = NOT_LEADER, window = NOT_LEADER, paused = NOT_LEADER, handover = NOT_LEADER }
local KILLED = "the command was killed before its end, since its keeper or its warden was"
local SILENT = "the command was stopped before its end: "

local function end_with_the_term(election)
  local led, silent
  events.listen({ "leadership.claimed", "leadership.acting" }, function(event) led = event.phase == "leading" end)
  events.listen({ "child.silent" }, function(event) silent = SILENT .. event.error end)
  events.on("leadership.lost", function(event)
    if led and event.reason == "child_killed" then return give_up(election, NOT_LEADER, silent or KILLED) end
    local code = led and STOPS[event.reason]
    if not code then return end
    give_up(election, code, STOPPED:format(event.reason, event.error and (" (%s)"):format(event.error) or ""))
  end)
end

-- From the win on, before COMMAND is begun: who comes after a runtime that has died cannot know how far COMMAND came.
local DIED = "run: the command was not run to its end, as far as is known: its runtime died (killed, or stopped for too long), "
  .. "and the command with it. It is not started again"

local function begin_once()
  events.listen({ "leadership.claimed", "leadership.acting" }, function(event)
    if event.phase == "leading" then core.once(NOT_LEADER, DIED) end
  end)
end

-- What the verb itself says is not told a second time by the log, unless that is asked for: that it leads no more, and why; and
-- for one that gives up, that the store gives no answer.
local GIVES_UP = "oracle.disconnected=off,oracle.error=off,monitor.failed=off"
local SAYS = "oracle.disconnected=off,leadership.lost=off,oracle.amnesia=off"
local GIVES_UP_AND_SAYS = GIVES_UP .. ",oracle.amnesia=off"

-- Else nothing tells why nothing happens: with --once it does not say who leads.
local function tell_of_a_wait()
  local told = false
  events.listen({ "oracle.amnesia" }, function(event)
    if not told then console.say("crown-lua: " .. printable(event.error)) end
    told = true
  end)
end

--- The filter of the log where no option sets one.
-- @tparam table options of the command line
-- @treturn string as --log-filter takes it, or nil
function run.log_filter(options)
  if options.once or options.wait then return options.quiet and GIVES_UP or GIVES_UP_AND_SAYS end
  return not options.quiet and SAYS or nil
end

-- Who has led does not give up any more.
local function tell_all(options)
  local filter = options["log-filter"]
  if filter ~= GIVES_UP and filter ~= GIVES_UP_AND_SAYS then return end
  local heard, problem = core.log_setup { filter = not (options.quiet or options.once) and SAYS or "" }
  assert(heard, problem)
end

--- Checks the options and declares the election.
-- @tparam table options of the command line
-- @tparam table words NAME, and the words of COMMAND
-- @treturn Election
-- @treturn Job of crown.register.runs, or nil
-- @raise a usage error
function run.declare(options, words)
  check(options, words)
  local command = {} -- in a loop: unpack has room for some thousand
  for i = 2, #words do command[i - 1] = words[i] end
  local job = job_of(options)
  local election = elect {
    name = words[1],
    slots = options.slots,
    shares = options.shares,
    never = options.never,
    window = options.window,
    preference = options.prefer,
    preference_wait = options["prefer-wait"],
    preempt = options.preempt,
    last_resort = options["last-resort"],
    healthy = options.healthy and { exec = { "/bin/sh", "-c", options.healthy } } or nil,
    stop_timeout = options["stop-timeout"],
    child = {
      command = command,
      env = not settings.checking and notices_for_child() or nil,
      mode = options.signal and "signal" or "interrupt",
      told = options.terminate,
      fence = options.fence,
      terminal = not options.keep, -- in its foreground COMMAND would get SIGHUP
      isolation = options.isolation,
      watchdog = options.watchdog,
      restart = { policy = options.restart or "finish" },
    },
    follower_child = options.follower and { command = { "/bin/sh", "-c", options.follower }, stdin = "null" } or nil,
  }
  if job then
    assert(runs.attach(election, job))
    outcome.note(job, election.name)
  end
  return election, job
end

--- The verb.
function run.run(options, words)
  local election, job = run.declare(options, words)
  forget_when_it_ends()
  explain_a_line(words)
  if job then end_where_it_has_run(election, job, options.quiet) end
  if options.once or options.wait then
    if not options.restart then core.exit_code_before(NOT_LEADER) end -- told to end while it waits, it has done nothing
    give_up_when_not_leader(election, job, options, function() tell_all(options) end)
  end
  if options.once then begin_once() end
  if options.once and not options.signal then end_with_the_term(election) end
  if not options.quiet then (options.once and tell_of_a_wait or progress)(election) end
end

return run
