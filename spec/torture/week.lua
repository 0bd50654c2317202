-- `make week`: a week of a crontab on three hosts and a real store, in about two minutes. Each host has a wall clock of its own, which
-- leaps from one occurrence to the next as soon as that has run. In this week Berlin puts its clocks back.
-- crown-lua spec/torture/week.lua [STORE]
package.path = "./spec/?.lua;" .. package.path

local calendar = require "crown.text.calendar"
local Candidate = require "support.candidate"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local read_file = require "crown.text.read_file"
local Schedule = require "crown.cron.schedule"
local stores = require "torture.stores"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"
local WrongClock = require "support.wrong_clock"
local Zone = require "crown.election.zone"

local DAY = 86400
local BEGINS = calendar.days(2026, 10, 19) * DAY + 60 -- a Monday
local ENDS = BEGINS + 7 * DAY
local SOON = 60  -- seconds until an occurrence has run on a busy machine
local LOOK = 5   -- seconds in which a host notices that its clock was set
local APART = 20 -- seconds between the clocks

-- What is due how often in that week: on Sunday half past two comes twice in Berlin, and a job at a fixed time runs once.
local JOBS = {
  { name = "quarterly", times = "0 */6 * * *", zone = "UTC", count = 28 },
  { name = "nightly", times = "30 2 * * *", zone = "Europe/Berlin", count = 7 },
  { name = "sunday", times = "30 12 * * sun", zone = "Europe/Berlin", count = 1 },
  { name = "workday", times = "45 7 * * mon-fri", zone = "America/New_York", count = 5, fails = true },
}

local dir = tempdir()

local function crontab()
  local lines = {}
  for _, job in ipairs(JOBS) do
    local then_do = job.fails and (" && mkdir '%s/%s-'$CROWN_SLOT_TIME 2> /dev/null && exit 3; true"):format(dir, job.name) or ""
    lines[#lines + 1] = ("CRON_TZ=%s\n#: name=%s retries=1\n%s echo %s $CROWN_SLOT_TIME $CROWN_NODE >> '%s/ran'%s"):format(job.zone,
      job.name, job.times, job.name, dir, then_do)
  end
  return write_file(dir .. "/jobs", table.concat(lines, "\n") .. "\n")
end

-- All occurrences of the week in their order.
local function occurrences()
  local list = {}
  for _, job in ipairs(JOBS) do
    local schedule, count = assert(Schedule.read(job.times, Zone.read(job.zone))), 0
    local at = schedule:next(BEGINS)
    while at and at < ENDS do
      list[#list + 1], count = { job = job, at = at }, count + 1
      at = schedule:next(at)
    end
    assert(count == job.count, ("%s is due %d times, not %d"):format(job.name, count, job.count))
  end
  table.sort(list, function(a, b) return a.at < b.at end)
  return list
end

local function ran()
  local found = {}
  for name, slot, node in (read_file(dir .. "/ran") or ""):gmatch "(%a+) (%d+) (%a+)\n" do
    local key = ("%s %d"):format(name, slot)
    found[key] = found[key] or {}
    table.insert(found[key], node)
  end
  return found
end

local store = stores.start(arg[1] or "redis")
local path, hosts = crontab(), {}

local function logs()
  local texts = {}
  for i, host in ipairs(hosts) do texts[i] = host.candidate:output() end
  return table.concat(texts)
end

-- Its mark is in the store, as far as its host has said.
local function has_run(one)
  local nodes = ran()[("%s %d"):format(one.job.name, one.at)]
  local ended = ("the job has ended code=0 name=%s slot=%s"):format(one.job.name, os.date("!%Y-%m-%dT%H:%M:%SZ", one.at))
  return nodes and #nodes >= (one.job.fails and 2 or 1) and logs():find(ended, 1, true)
end

local function set_clocks(at)
  for i, host in ipairs(hosts) do host.clock:set(at - os.time() + 1 + (i - 1) * APART / 2) end
end

local function play()
  local began, list = crown.now(), occurrences()
  for i, node in ipairs { "ann", "ben", "cat" } do
    local host = { clock = WrongClock.new(0) }
    hosts[i] = host
    set_clocks(BEGINS)
    local env = host.clock:environment()
    env.CROWN_DIRECTORY = tempdir()
    if i > 1 then crown.sleep(LOOK / 3) end -- so that some host looks at its clock soon after each leap
    host.candidate = Candidate.start { args = { "cron", "--oracle", store.url(), path }, node = node,
      log = ("%s/%s.log"):format(dir, node), env = env }
  end
  eventually(function() return select(2, logs():gsub("the jobs are read", "")) == #hosts end, SOON)
  for _, one in ipairs(list) do
    set_clocks(one.at)
    local fine = pcall(eventually, function() return has_run(one) end, SOON)
    assert(fine, ("%s did not run for %s\n%s"):format(one.job.name, os.date("!%c", one.at), logs():sub(-4000)))
  end
  crown.sleep(2 * LOOK) -- a host that has not looked yet finds all of it done
  local count, by_node = 0, {}
  for key, nodes in pairs(ran()) do
    local wanted = key:find "^workday" and 2 or 1
    assert(#nodes == wanted, ("%s ran %d times, on %s"):format(key, #nodes, table.concat(nodes, ", ")))
    if wanted == 2 then assert(nodes[1] ~= nodes[2], key .. " was tried again on the same host") end
    count = count + 1
    for _, node in ipairs(nodes) do by_node[node] = (by_node[node] or 0) + 1 end
  end
  assert(count == #list, ("%d occurrences of %d"):format(count, #list))
  print(("a week of %d jobs on %s, by the clocks of three hosts: each of %d occurrences ran once, those that failed once more; "
    .. "ann %d, ben %d, cat %d runs; %.0f s"):format(#JOBS, store.name, count, by_node.ann or 0, by_node.ben or 0, by_node.cat or 0,
    crown.now() - began))
end

local fine, problem = pcall(play)
for _, host in ipairs(hosts) do host.candidate:destroy() end
store.server:destroy()
if not fine then print(problem) end
os.exit(fine and 0 or 1)
