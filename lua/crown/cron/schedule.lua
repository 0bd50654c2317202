--- When a job is due: the times of a line of crontab(5), in a zone. Where clocks are put forward or back it does as cron(8) of
-- Debian: a job at a fixed time runs once, at the change where its time is left out; a job whose minute or hour begins with a
-- star goes by what the clocks show.
-- @internal crown.cron.schedule

local calendar = require "crown.text.calendar"
local fields = require "crown.cron.fields"
local usage = require "crown.check.usage"

local Schedule = {}
Schedule.__index = Schedule

local MINUTE, HOUR, DAY = 60, 3600, 86400 -- seconds
local LOOK = 9 * 366                      -- days: 29 February is up to eight years away, from 1896 and from 2096
local NEAR = 36 * HOUR                    -- further than clocks are put forward or back

local NAMED = {
  ["@yearly"] = "0 0 1 1 *", ["@annually"] = "0 0 1 1 *", ["@monthly"] = "0 0 1 * *", ["@weekly"] = "0 0 * * 0",
  ["@daily"] = "0 0 * * *", ["@midnight"] = "0 0 * * *", ["@hourly"] = "0 * * * *",
}

local INSTEAD = {
  ["@reboot"] = "@reboot means one host: leave it in that host's own crontab",
  ["@every"] = "@every is not of crontab(5): write */5 * * * * for each five minutes",
}

-- "@daily": what it stands for; nil and what is wrong.
local function expand(word)
  local known = NAMED[word:lower()]
  if known then return known end
  return nil, INSTEAD[word:lower()] or ("there is no '%s'%s"):format(word, usage.suggest(word, usage.names(NAMED)))
end

local FIRST_WEEKDAY = 4 -- 1970-01-01 was a Thursday

-- Whether a job runs on a day of a month that it runs in: cron(8) takes either of the two days where both are given.
local function on_day(self, day, of_its_month)
  local of_month, of_week = self.days.has[of_its_month], self.weekdays.has[(day + FIRST_WEEKDAY) % 7]
  if self.days.is_star or self.weekdays.is_star then return of_month and of_week end
  return of_month or of_week
end

-- The first day from `day` on that fits, counted from 1970-01-01; nil where none does.
local function day_from(self, day)
  local ends = day + LOOK
  while day <= ends do
    local year, month, of_its_month = calendar.date(day)
    if not self.months.has[month] then
      day = calendar.days(year, month + 1, 1)
    elseif on_day(self, day, of_its_month) then
      return day
    else
      day = day + 1
    end
  end
  return nil
end

--- Reads the times of a job.
-- @string text five fields, or one of @hourly and its kin; what follows is not read
-- @tparam Zone zone as of crown.election.zone
-- @treturn Schedule nil where it is none
-- @return where in the text they end; or what is wrong
-- @treturn number where in the text that stands, from 1
function Schedule.read(text, zone)
  local self = setmetatable({ zone = zone }, Schedule)
  local at, word, behind = text:match "^%s*()(@%S*)()"
  local line, wrong = text, nil
  if word then line, wrong = expand(word) end
  if not line then return nil, wrong, at end
  local next_at = 1
  for _, field in ipairs(fields.order) do
    local from, one, past = line:match("^%s*()(%S+)()", next_at)
    if not from then return nil, ("the %s is missing: there are five fields"):format(field.name), #line + 1 end
    local read, problem, offset = fields.read(field, one)
    if not read then return nil, problem, from + offset end
    self[field.key], next_at = read, past
  end
  self.repeated = self.minutes.is_star or self.hours.is_star
  if not day_from(self, 0) then return nil, "no month has this day: it would never run", at or line:match "^%s*()" end
  return self, behind or next_at
end

-- A job at fixed times: each time of day has one instant, also where clocks are put forward over it or show it twice.
local function next_fixed(self, after)
  local day = math.floor((after + self.zone:offset(after)) / DAY) - 1
  for _ = 1, LOOK do
    day = day_from(self, day)
    if not day then return nil end
    local noon = day * DAY + DAY / 2
    local least = math.min(self.zone:offset(noon - NEAR), self.zone:offset(noon + NEAR))
    for _, hour in ipairs(self.hours.list) do
      for _, minute in ipairs(self.minutes.list) do
        local wall = day * DAY + hour * HOUR + minute * MINUTE
        local instant = wall - least > after and self.zone:instant(wall)
        if instant and instant > after then return instant end
      end
    end
    day = day + 1
  end
  return nil
end

-- Goes on from a minute that does not fit to a later one that may, of a job by the clocks: to the first one that shows a day that
-- fits; or by an hour, where no clock is put forward or back on the way; or by a minute. nil where no day fits any more.
-- @return the time, and whether it is one that fits
local function forward(self, time)
  local zone = self.zone
  local offset = zone:offset(time)
  local wall = time + offset
  local day = math.floor(wall / DAY)
  local fitting = day_from(self, day)
  if not fitting then return nil end
  if fitting > day then return math.max(zone:instant(fitting * DAY), time + MINUTE) end
  if not self.hours.has[math.floor(wall % DAY / HOUR)] then
    local step = HOUR - wall % HOUR
    return time + (zone:offset(time + step) == offset and step or MINUTE)
  end
  local fits = self.minutes.has[math.floor(wall % HOUR / MINUTE)]
  return fits and time or time + MINUTE, fits
end

-- A job by what the clocks show: each minute of real time whose time of day fits.
local function next_shown(self, after)
  local time, fits = after - after % MINUTE + MINUTE, false
  local ends = after + LOOK * DAY
  while time and not fits and time < ends do time, fits = forward(self, time) end
  return fits and time or nil
end

--- The next time that it is due.
-- @number after seconds since 1970, UTC
-- @treturn number seconds since 1970, UTC, later than `after`; nil where there is none in the next eight years
function Schedule:next(after)
  if self.repeated then return next_shown(self, after) end
  return next_fixed(self, after)
end

local WINDOWS = { HOUR, DAY, 32 * DAY, 366 * DAY } -- looked at from the end, so that few times are gone through

--- The latest time that it was due.
-- @number time seconds since 1970, UTC
-- @number known a time not later than that, at which it was due
-- @treturn number seconds since 1970, UTC, not later than `time`
-- @treturn number the next one; nil: see above
function Schedule:latest(time, known)
  local found = known
  for _, window in ipairs(WINDOWS) do
    local one = time - window > known and self:next(time - window)
    if one and one <= time then found = one break end
  end
  local one = self:next(found)
  while one and one <= time do found, one = one, self:next(one) end
  return found, one
end

return Schedule
