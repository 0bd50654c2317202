--- Jobs of a crontab: how soon it is known when each is due next, what ten thousand of them take while nothing is due, and how long
-- three hosts need for a thousand that are due in the same second.
local Candidate = require "support.candidate"
local crontab = require "crown.cron.crontab"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local probe = require "probe"
local read_file = require "crown.text.read_file"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"
local WrongClock = require "support.wrong_clock"

local MANY, AT_ONCE = 10000, 1000
local MINUTE = 60
local WATCHED = 30 -- seconds

local FORMS = { "%d %d * * *", "%d %d * * mon-fri", "*/%d %d * * *", "%d %d 1-7 * *", "%d %d 29 2 *", "%d %d 31 */2 sun" }
local ZONES = { "Europe/Berlin", "America/New_York", "UTC", "Australia/Lord_Howe" }

-- None is due within the next hours, by UTC, but where clocks elsewhere say so.
local function many()
  local lines = {}
  for i = 1, MANY do
    if (i - 1) % (MANY / #ZONES) == 0 then lines[#lines + 1] = "CRON_TZ=" .. ZONES[(i - 1) / (MANY / #ZONES) + 1] end
    lines[#lines + 1] = ("#: name=job-%d retries=1"):format(i)
    lines[#lines + 1] = FORMS[i % #FORMS + 1]:format(1 + i % 59, i % 24) .. " /usr/local/bin/job --number " .. i
  end
  return table.concat(lines, "\n") .. "\n"
end

-- @return the longest that one took, in ms
local function next_of_each()
  local jobs, problems = crontab.read(many(), "UTC")
  assert(#jobs == MANY and #problems == 0)
  local worst, now = 0, os.time()
  for i, job in ipairs(jobs) do
    if i % 500 == 0 then crown.sleep(0) end
    local began = os.clock()
    assert(job.schedule:next(now))
    worst = math.max(worst, os.clock() - began)
  end
  return worst * 1000
end

local function start(redis, path, node, clock)
  local env = clock and clock:environment() or {}
  env.CROWN_DIRECTORY = tempdir()
  local one = Candidate.start { args = { "cron", "--oracle", redis.url .. "?trust_empty=true", path }, node = node,
    log = ("%s/%s.log"):format(tempdir(), node), env = env }
  eventually(function() return one:output():find "the jobs are read" end, 60)
  return one
end

-- A file whose jobs are all due on one day of the year: nothing runs while it is watched.
local function asleep(redis)
  local day = os.date("!%d %m", os.time() - 2 * 86400)
  local lines = { "CRON_TZ=UTC" }
  for i = 1, MANY do
    lines[#lines + 1] = ("#: name=job-%d retries=1"):format(i)
    lines[#lines + 1] = ("%d %d %s * /usr/local/bin/job --number %d"):format(i % 60, i % 24, day, i)
  end
  return start(redis, write_file(tempdir() .. "/jobs", table.concat(lines, "\n") .. "\n"), "one")
end

local function memory_of(one) return probe.memory(one:pids("runtime")[1]) end

-- @return ms in a second, of the runtime
local function busy_of(one)
  local pid = one:pids("runtime")[1]
  local before = probe.cpu_seconds(pid)
  crown.sleep(WATCHED)
  return (probe.cpu_seconds(pid) - before) / WATCHED * 1000
end

local function lines_of(path) return select(2, (read_file(path) or ""):gsub("\n", "")) end

-- @return seconds from the minute at which all were due to the last one's end
local function at_once(redis)
  local dir, hosts, clocks = tempdir(), {}, {}
  redis:call "FLUSHALL"
  local lines = { "CRON_TZ=UTC" }
  for i = 1, AT_ONCE do
    lines[#lines + 1] = ("#: name=job-%d"):format(i)
    lines[#lines + 1] = ("* * * * * echo $CROWN_SLOT_TIME %d >> %s/ran"):format(i, dir)
  end
  local path = write_file(dir .. "/jobs", table.concat(lines, "\n") .. "\n")
  local ahead = -os.time() % MINUTE - 50 -- fifty seconds are left
  for i = 1, 3 do
    clocks[i] = WrongClock.new(ahead)
    hosts[i] = start(redis, path, "host" .. i, clocks[i])
  end
  for _, clock in ipairs(clocks) do clock:set(-os.time() % MINUTE - 6) end
  eventually(function() return lines_of(dir .. "/ran") > 0 end, 60)
  local began = crown.now()
  eventually(function() return lines_of(dir .. "/ran") >= AT_ONCE end, 60)
  local took = crown.now() - began
  for _, clock in ipairs(clocks) do clock:set(-os.time() % MINUTE - 55) end
  crown.sleep(3)
  local slots = {}
  for slot in read_file(dir .. "/ran"):gmatch "(%d+) %d+\n" do slots[slot] = (slots[slot] or 0) + 1 end
  for _, host in ipairs(hosts) do host:destroy() end
  for slot, count in pairs(slots) do assert(count <= AT_ONCE, ("%s ran %d times"):format(slot, count)) end
  return took
end

return function(measure)
  local redis
  local function server()
    redis = redis or Redis.start()
    return redis
  end
  measure(("%d jobs in one file: next occurrence, the longest of all"):format(MANY), "≤ 1", next_of_each, 5)
  local one
  local function sleeper()
    one = one or asleep(server())
    return one
  end
  measure(("%d jobs in one file, nothing due: memory, MB"):format(MANY), "≤ 40", function() return memory_of(sleeper()) end, 1)
  measure(("%d jobs in one file, nothing due: processor, ms in a second"):format(MANY), "≤ 1",
    function() return busy_of(sleeper()) end, 1)
  if one then one:destroy() end
  measure(("%d jobs due in one second, three hosts on Redis: from the first one's end to the last one's, s"):format(AT_ONCE),
    "as they come", function() return at_once(server()) end, 3)
  if redis then redis:destroy() end
end
