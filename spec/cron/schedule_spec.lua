-- When a job is due: held against another program's reading of crontab(5) where no clock is set, and against what cron(8) of
-- Debian says of clocks that are put forward or back.
local calendar = require "crown.text.calendar"
local crown = require "crown"
local fields = require "crown.cron.fields"
local Schedule = require "crown.cron.schedule"
local Zone = require "crown.election.zone"

local function utc(text)
  return assert(calendar.seconds(text:gsub(" ", "T") .. ":00Z"))
end

-- The next times of a job in a zone, by its clocks.
local function shown(zone_name, times, from, count)
  local zone = assert(Zone.read(zone_name))
  local schedule = assert(Schedule.read(times, zone))
  local found, time = {}, utc(from)
  for _ = 1, count do
    time = schedule:next(time)
    found[#found + 1] = time and os.date("!%m-%d %H:%M", time + zone:offset(time)) or "never"
  end
  return table.concat(found, ", ")
end

-- Times by chance, as people write them. croniter takes a day that begins with a star for a star, so each day is one or none.
local function by_chance()
  local function number(least, most) return tostring(math.random(least, most)) end
  local function field(least, most, stars)
    local kind = math.random(1, 6)
    if kind <= stars then return "*" end
    if kind == 3 then return "*/" .. number(2, math.max(2, math.floor(most / 2))) end
    if kind == 4 then
      local first = math.random(least, most)
      return ("%d-%d"):format(first, math.random(first, most))
    end
    if kind == 5 then
      local first = math.random(least, most - 1)
      return ("%d-%d/%d"):format(first, math.random(first + 1, most), math.random(2, 5))
    end
    return number(least, most) .. "," .. number(least, most)
  end
  local day, weekday = "*", "*"
  local which = math.random(1, 4)
  if which == 1 or which == 3 then day = number(1, 28) end
  if which == 2 or which == 3 then weekday = number(0, 3) .. "," .. number(4, 6) end
  return ("%s %s %s %s %s"):format(field(0, 59, 2), field(0, 23, 2), day, field(1, 12, 4), weekday)
end

local CRONITER = [[
import sys
from croniter import croniter
from datetime import datetime, timezone
for line in sys.stdin:
    start, times = line.rstrip("\n").split("|")
    one = croniter(times, datetime.fromtimestamp(int(start), timezone.utc))
    print(" ".join(str(int(one.get_next(datetime).timestamp())) for _ in range(3)))
]]

describe("a schedule", function()
  it("says what croniter says, at hundreds of times by chance", function()
    math.randomseed(11)
    local zone, questions, ours = assert(Zone.read "UTC"), {}, {}
    for i = 1, 400 do
      local start, times = math.random(1e9, 2e9), by_chance()
      questions[i] = ("%d|%s\n"):format(start, times)
      local schedule, found = assert(Schedule.read(times, zone)), {}
      for k = 1, 3 do
        start = assert(schedule:next(start), times)
        found[k] = ("%d"):format(start)
      end
      ours[i] = table.concat(found, " ")
    end
    local result = assert(crown.exec({ "/usr/bin/python3", "-c", CRONITER }, { stdin = table.concat(questions), timeout = 60 }))
    assert.equal(0, result.code, result.stderr)
    local i = 0
    for line in result.stdout:gmatch "[^\n]+" do
      i = i + 1
      assert.equal(line, ours[i], questions[i])
    end
    assert.equal(400, i)
  end)

  for _, case in ipairs {
    { "fixed, where the clocks leave its time out: at the change", "Europe/Berlin", "30 2 * * *", "2026-03-27 12:00",
      "03-28 02:30, 03-29 03:00, 03-30 02:30" },
    { "fixed, twice in what is left out: once", "Europe/Berlin", "0,30 2 * * *", "2026-03-28 12:00",
      "03-29 03:00, 03-30 02:00, 03-30 02:30" },
    { "fixed, where the clocks show its time twice: the first time", "Europe/Berlin", "30 2 * * *", "2026-10-24 12:00",
      "10-25 02:30, 10-26 02:30" },
    { "at each hour, where one is left out", "Europe/Berlin", "15 * * * *", "2026-03-29 00:00",
      "03-29 01:15, 03-29 03:15, 03-29 04:15" },
    { "at each hour, where one comes twice", "Europe/Berlin", "15 * * * *", "2026-10-24 23:30",
      "10-25 02:15, 10-25 02:15, 10-25 03:15" },
    { "by minutes of an hour that is left out", "Europe/Berlin", "*/30 2 * * *", "2026-03-28 12:00",
      "03-30 02:00, 03-30 02:30" },
    { "by minutes of an hour that comes twice", "Europe/Berlin", "*/30 2 * * *", "2026-10-24 12:00",
      "10-25 02:00, 10-25 02:30, 10-25 02:00, 10-25 02:30, 10-26 02:00" },
    { "in New York, left out", "America/New_York", "30 2 * * *", "2026-03-07 12:00", "03-08 03:00, 03-09 02:30" },
    { "in New York, twice", "America/New_York", "30 1 * * *", "2026-10-31 12:00", "11-01 01:30, 11-02 01:30" },
    { "on Lord Howe, whose clocks move by half an hour", "Australia/Lord_Howe", "*/20 1 * * *", "2026-04-04 14:00",
      "04-05 01:20, 04-05 01:40, 04-05 01:40, 04-06 01:00" },
    { "on Lord Howe, fixed, left out", "Australia/Lord_Howe", "15 2 * * *", "2026-10-03 12:00", "10-04 02:30, 10-05 02:15" },
    { "where the clocks move at midnight", "America/Santiago", "@daily", "2026-09-04 12:00",
      "09-05 00:00, 09-06 01:00, 09-07 00:00" },
    { "on a leap day", "UTC", "0 12 29 2 *", "2026-01-01 00:00", "02-29 12:00, 02-29 12:00" },
    { "on a leap day, eight years on", "UTC", "0 12 29 2 *", "2096-03-01 00:00", "02-29 12:00" },
    { "on either of two days", "UTC", "0 0 13 * fri", "2026-11-01 00:00", "11-06 00:00, 11-13 00:00, 11-20 00:00" },
    { "on a day that has to be both, where one begins with a star", "UTC", "0 0 */2 * fri", "2026-11-01 00:00",
      "11-13 00:00, 11-27 00:00, 12-11 00:00" },
    { "on Sunday by either number", "UTC", "0 0 * * 7", "2026-11-24 00:00", "11-29 00:00, 12-06 00:00" },
    { "from Friday to Sunday", "UTC", "0 0 * * Fri-Sun", "2026-11-24 00:00", "11-27 00:00, 11-28 00:00, 11-29 00:00, 12-04 00:00" },
    { "by its name", "UTC", "@Monthly", "2026-11-24 00:00", "12-01 00:00, 01-01 00:00" },
    { "at the end of a day that fits and before one that does not", "UTC", "* * 24 11 *", "2026-11-24 23:58",
      "11-24 23:59, 11-24 00:00" },
    { "not in the minute before its day", "UTC", "59 * 25 11 *", "2026-11-24 23:57", "11-25 00:59" },
  } do
    it("is due " .. case[1], function()
      local count = select(2, case[5]:gsub(",", "")) + 1
      assert.equal(case[5], shown(case[2], case[3], case[4], count))
    end)
  end

  -- Each minute of the four days around a change, by the fields alone.
  local function by_the_minute(times, zone, from)
    local sets, found = {}, {}
    for i, one in ipairs(fields.order) do sets[i] = assert(fields.read(one, times[i])).has end
    for time = from + 60, from + 4 * 86400, 60 do
      local shows = os.date("!*t", time + zone:offset(time))
      local is_day = sets[3][shows.day] and sets[5][shows.wday - 1]
      if is_day and sets[1][shows.min] and sets[2][shows.hour] and sets[4][shows.month] then found[#found + 1] = time end
    end
    return found
  end

  for _, case in ipairs { { "Europe/Berlin", "2026-03-27 12:00", "2026-10-23 12:00" },
    { "America/New_York", "2026-03-06 12:00", "2026-10-30 12:00" }, { "Australia/Lord_Howe", "2026-04-03 12:00", "2026-10-02 12:00" } } do
    it("with a star goes by what the clocks show, over both changes in " .. case[1], function()
      math.randomseed(7)
      local zone = assert(Zone.read(case[1]))
      local function some() return math.random(0, 9) .. "-" .. math.random(10, 23) .. "/" .. math.random(1, 5) end
      for i = 1, 12 do
        local from = utc(case[2 + i % 2])
        local times = { "*/" .. math.random(1, 59), some(), "*", "*", i % 3 == 0 and "sun" or "*" }
        if i % 4 == 0 then times[1], times[2] = some(), "*/" .. math.random(1, 3) end
        local schedule, time = assert(Schedule.read(table.concat(times, " "), zone)), from
        for _, expected in ipairs(by_the_minute(times, zone, from)) do
          time = schedule:next(time)
          assert.equal(expected, time, table.concat(times, " "))
        end
      end
    end)
  end

  it("goes on from any instant, also one that is in the middle of a minute", function()
    local schedule = assert(Schedule.read("*/10 * * * *", assert(Zone.read "UTC")))
    local start = utc "2026-11-24 10:00"
    assert.equal(start + 600, schedule:next(start))
    assert.equal(start, schedule:next(start - 0.5))
    assert.equal(start + 600, schedule:next(start + 0.5))
  end)

  for _, case in ipairs {
    { "60 * * * *", 1, "minute 60 is not between 0 and 59" },
    { "0 24 * * *", 3, "hour 24 is not between 0 and 23" },
    { "0 0 0 * *", 5, "day of the month 0 is not between 1 and 31" },
    { "0 0 * jann *", 7, "'jann' is no month (did you mean 'jan'?): write 1 to 12 or the first three letters of its name" },
    { "0 0 * * 1,8", 11, "day of the week 8 is not between 0 and 7" },
    { "5/15 * * * *", 1, "a step goes with a range: write 5-59/15 in place of 5/15" },
    { "0 22-2 * * *", 3, "the range 22-2 goes backwards: write 22-23,0-2" },
    { "*/0 * * * *", 1, "the step in '*/0' is not between 1 and 59" },
    { "1,,2 * * * *", 3, "the minute lacks a number" },
    { "0 0 * *", 8, "the day of the week is missing: there are five fields" },
    { "0 0 30 2 *", 1, "no month has this day: it would never run" },
    { "@dayly x", 1, "there is no '@dayly' (did you mean '@daily'?)" },
    { " @reboot x", 2, "@reboot means one host: leave it in that host's own crontab" },
    { "@every 5m x", 1, "@every is not of crontab(5): write */5 * * * * for each five minutes" },
  } do
    it("refuses " .. case[1], function()
      local schedule, problem, column = Schedule.read(case[1], assert(Zone.read "UTC"))
      assert.is_nil(schedule)
      assert.equal(case[3], problem)
      assert.equal(case[2], column)
    end)
  end
end)
