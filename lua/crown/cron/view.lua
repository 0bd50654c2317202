--- What is known of a job, by the marks that its runs have left in the store: for people and for metrics. Without input or
-- output.
-- @internal crown.cron.view

local levels = require "crown.register.levels"
local orders = require "crown.register.orders"
local runs = require "crown.register.runs"
local Schedule = require "crown.cron.schedule"
local Zone = require "crown.election.zone"

local view = {}

local GRACE = 60 -- seconds that an occurrence may be late: hosts' clocks differ, and a store may be slow
local AHEAD = 86400 -- seconds: a slot that is further away was written by a clock that was wrong

-- The last run that has ended, as a mark; and whether it succeeded.
local function last_of(done, failed)
  if failed and (not done or failed.at >= done.at) then return failed, false end
  return done, done ~= nil
end

local function run_of(one, fine)
  if not one then return nil end
  return { at = one.at, node = one.node, took = one.took, slot = one.slot, code = fine and 0 or one.code, signal = one.signal,
    error = one.error, fine = fine }
end

-- @return the mark of what runs now, or nil
local function running(election, begun)
  if not election.node or election.over or not begun or begun.node ~= election.node then return nil end
  return { at = begun.at, node = begun.node, slot = begun.slot }
end

local known = setmetatable({}, { __mode = "v" }) -- thousands of jobs have few different times

-- @return the schedule that a mark notes, or nil: its zone is not known here
local function schedule_of(plan)
  local key = plan.times .. "\n" .. plan.zone
  if not known[key] then
    local zone = Zone.read(plan.zone)
    known[key] = zone and Schedule.read(plan.times, zone)
  end
  return known[key]
end

-- The last occurrence before which nothing is owed: the last one that succeeded, or what is before the first one that was begun.
local function settled(marks, now)
  local done = runs.mark(marks, "done")
  local slot = done and done.slot
  for _, name in ipairs { "failed", "begun" } do
    local one = runs.mark(marks, name)
    if not slot and one and one.slot then slot = one.slot - 1 end
  end
  return slot and slot <= now + AHEAD and slot or nil
end

-- Since when an occurrence is due that has neither succeeded nor runs. Where the file has other times now than those by which the
-- job ran last, those before it was read count for nothing.
local function owed_since(marks, schedule, job, now)
  local from, plan = settled(marks, now), runs.plan(marks)
  local is_same = not job or plan and plan.times == job.times and plan.zone == job.zone
  if not from or not is_same then from = job and math.max(from or job.since, job.since) end
  local due = from and schedule:next(from)
  return due and due + GRACE <= now and due or nil
end

--- What is known of one job.
-- @tparam table election as an oracle's `list` has it: `name`, `node`, `over`, `orders`, `runs`
-- @number now the wall clock, in seconds since 1970
-- @tparam[opt] table job of a crontab, where there is one: `schedule`, `times`, `zone`, and `since`, when it was read; else its
-- times are those that the marks note
-- @treturn table `name`; `last`, the last run that has ended: `at`, `node`, `took` in seconds, `slot`, and `code`, `signal` or
-- `error`, `fine` whether it succeeded, or nil; `succeeded`, the last one that did, or nil; `running`: `at`, `node`, `slot`, or
-- nil; `failed`, how many have since one succeeded; `times` and `zone`, or nil; `next`, when it is due, or nil; `overdue`, since
-- when it is, or nil; `paused`, in words, or nil; `held`, until when nobody begins it, or nil;
-- `preferred`, the `node` to which others leave the next occurrence first, and its `level`, or nil. Nil: no run is marked
function view.of(election, now, job)
  local marks = election.runs
  local done, failed, begun = runs.mark(marks, "done"), runs.mark(marks, "failed"), runs.mark(marks, "begun")
  if not job and not done and not failed and not begun then return nil end
  local plan = job or runs.plan(marks)
  local schedule = job and job.schedule or plan and schedule_of(plan)
  local paused = orders.is_paused(election.orders, now) and orders.words(election.orders, now) or nil
  local one = { name = election.name, last = run_of(last_of(done, failed)), succeeded = run_of(done, true),
    running = running(election, begun), failed = failed and (failed.count or 1) or 0, times = plan and plan.times,
    zone = plan and plan.zone, next = schedule and schedule:next(now), paused = paused }
  local level, node = levels.of(marks)
  if level > 0 then one.preferred = { node = node, level = level } end
  local held = math.max(done and done["until"] or 0, begun and begun["until"] or 0)
  if held > now then one.held = held end
  if schedule and not paused and not one.running then one.overdue = owed_since(marks, schedule, job, now) end
  return one
end

--- The jobs that a store knows, and those of a crontab.
-- @tparam table elections as an oracle's `list` has them
-- @number now the wall clock
-- @tparam[opt] table jobs of crown.cron.crontab, each with `since`: those alone, also where nothing is known of them yet
-- @treturn table an array of what `of` returns, in the order of the jobs, or by name
function view.all(elections, now, jobs)
  local found, by_name = {}, {}
  for _, election in ipairs(elections) do
    by_name[election.name] = election
    if not jobs then found[#found + 1] = view.of(election, now) end
  end
  for i, job in ipairs(jobs or {}) do found[i] = view.of(by_name[job.name] or { name = job.name }, now, job) end
  if not jobs then table.sort(found, function(a, b) return a.name < b.name end) end
  return found
end

--- A time by the clocks of a zone.
-- @number at seconds since 1970, UTC
-- @string[opt] name of the zone; else the clocks of this host count
-- @treturn string such as "2026-11-28 03:15:00 +0100"
function view.instant(at, name)
  local zone = name and Zone.read(name)
  if not zone then return os.date("%Y-%m-%d %H:%M:%S %z", at) end
  local ahead = zone:offset(at)
  local minutes = math.floor(math.abs(ahead) / 60)
  return os.date("!%Y-%m-%d %H:%M:%S", at + ahead) .. (" %s%02d%02d"):format(ahead < 0 and "-" or "+",
    math.floor(minutes / 60), minutes % 60)
end

return view
