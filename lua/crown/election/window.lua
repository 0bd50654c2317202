--- The rule `window`: a candidate leads only at certain hours, by the clocks of a place. "Mon-Fri 08:00-18:00 Europe/Berlin".
-- @internal crown.election.window

local core = require "crown.core"
local Zone = require "crown.election.zone"
local preference = require "crown.election.preference"
local usage = require "crown.check.usage"

local window = {}

local DAY, WEEK = 86400, 7
local LOOK = 30 -- seconds at most: somebody may set the wall clock
local FORM = "a window is DAYS FROM-TO ZONE, as in 'Mon-Fri 08:00-18:00 Europe/Berlin'"
local NAMES = { "mon", "tue", "wed", "thu", "fri", "sat", "sun" }
local NUMBERS = {}
for i, name in ipairs(NAMES) do NUMBERS[name] = i end

local function read_days(text)
  local days = {}
  for part in (text .. ","):gmatch "([^,]*)," do
    local first, last = part:match "^(%a%a%a)-(%a%a%a)$"
    first, last = NUMBERS[(first or part):lower()], NUMBERS[(last or part):lower()]
    if not first or not last then return nil end
    for day = first, last < first and last + WEEK or last do days[(day - 1) % WEEK + 1] = true end
  end
  return days
end

local function read_minutes(text)
  local hour, minute = text:match "^(%d%d?):(%d%d)$"
  hour, minute = tonumber(hour), tonumber(minute)
  if not hour or minute > 59 or hour * 60 + minute > 1440 then return nil end
  return hour * 60 + minute
end

--- Reads a window.
-- @string text
-- @treturn table `{ days = set of 1 (Monday) to 7, from =, to = minutes of the day, zone = Zone }`; or nil and what is wrong
function window.read(text)
  local words = {}
  for word in text:gmatch "%S+" do words[#words + 1] = word end
  if #words == 2 and words[2]:find "^[%d:]+-" then
    return nil, ("'%s': its zone is missing: %s"):format(text, FORM)
  end
  if #words == 2 then table.insert(words, 1, "Mon-Sun") end
  if #words ~= 3 then return nil, ("'%s': %s"):format(text, FORM) end
  local days = read_days(words[1])
  if not days then return nil, ("'%s': the days '%s' are not like Mon-Fri or Sat,Sun"):format(text, words[1]) end
  local from, to = words[2]:match "^([%d:]+)-([%d:]+)$"
  from, to = from and read_minutes(from), to and read_minutes(to)
  if not from or not to then return nil, ("'%s': the hours '%s' are not like 08:00-18:00"):format(text, words[2]) end
  if from == to or from == 1440 then return nil, ("'%s': the hours '%s' hold no time"):format(text, words[2]) end
  local zone, problem = Zone.read(words[3])
  if not zone then return nil, ("'%s': %s"):format(text, problem) end
  return { days = days, from = from, to = to, zone = zone }
end

-- The instants between which a window is open on a day, counted from 1970-01-01; nil where it is not open on it. Hours that end
-- before they begin end on the next day.
local function on_day(one, day)
  if not one.days[(day + 3) % WEEK + 1] then return nil end
  local ends = one.to > one.from and day or day + 1
  return one.zone:instant(day * DAY + one.from * 60), one.zone:instant(ends * DAY + one.to * 60)
end

--- Whether one of several windows is open, and when that may change.
-- @tparam table list of windows
-- @number time seconds since 1970, UTC
-- @treturn boolean
-- @treturn number the next instant at which one of them opens or closes
function window.look(list, time)
  local open, soonest = false, math.huge
  for _, one in ipairs(list) do
    local today = math.floor((time + one.zone:offset(time)) / DAY)
    for day = today - 2, today + WEEK + 1 do
      local from, to = on_day(one, day)
      if from and from < to then
        open = open or from <= time and time < to
        if from > time then soonest = math.min(soonest, from) end
        if to > time then soonest = math.min(soonest, to) end
      end
    end
  end
  return open, soonest
end

local function watch(list, handle, words, who)
  local was_open
  while not handle:finished() do
    local time = core.now() + core.wall_offset()
    local open, soonest = window.look(list, time)
    if open then
      if not was_open then preference.allowed(who) end
      handle:allow "window"
    else
      handle:bar("window", words)
    end
    was_open = open
    core.sleep(math.max(0.001, math.min(LOOK, soonest - time)))
  end
end

--- Makes the rule of an option.
-- @string where how messages name the election
-- @tparam string|table given one window, or a list of them: one that is open is enough
-- @treturn table the rule, as crown.election.rules has it
-- @raise a usage error
function window.rule(where, given)
  local texts = type(given) == "string" and { given } or given
  local list = {}
  for i, text in ipairs(texts) do
    local problem = type(text) ~= "string" and FORM
    if not problem then list[i], problem = window.read(text) end
    if not list[i] then usage.error("%s: window: %s", where, problem) end
  end
  if #list == 0 then usage.error("%s: window: %s", where, FORM) end
  local words = ("outside of %s"):format(table.concat(texts, ", "))
  return { words = ("in these hours: %s"):format(table.concat(texts, ", ")), begin = function(handle, who)
    if not window.look(list, core.now() + core.wall_offset()) then handle:bar("window", words) end
    core.detach(watch, list, handle, words, who)
  end }
end

return window
