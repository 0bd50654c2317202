--- Dates of the Gregorian calendar, as seconds.
-- @internal crown.text.calendar

local calendar = {}

local DAY = 86400 -- seconds

--- Days from 1970-01-01 to a date.
-- @number year
-- @number month
-- @number day may be beyond its month
-- @treturn number
function calendar.days(year, month, day)
  if month <= 2 then year, month = year - 1, month + 12 end -- the year begins in March, so that the odd day is its last
  return 365 * year + math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400)
    + math.floor((153 * (month - 3) + 2) / 5) + day - 719469
end

--- The date of a day.
-- @number days from 1970-01-01
-- @treturn number year
-- @treturn number month
-- @treturn number day
function calendar.date(days)
  local since = days + 719468 -- from 1 March of the year 0
  local era = math.floor(since / 146097)
  local of_era = since - era * 146097
  local year = math.floor((of_era - math.floor(of_era / 1460) + math.floor(of_era / 36524) - math.floor(of_era / 146096)) / 365)
  local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local month = math.floor((5 * of_year + 2) / 153) -- 0 is March
  local day = of_year - math.floor((153 * month + 2) / 5) + 1
  return year + era * 400 + (month >= 10 and 1 or 0), month < 10 and month + 3 or month - 9, day
end

--- The instant of a time in UTC, as servers write it: "2026-11-21T22:24:03.5Z".
-- @string[opt] text
-- @treturn number seconds since 1970, or nil where it is no such time
function calendar.seconds(text)
  local year, month, day, hour, minute, second, part = (text or ""):match "^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)%.?(%d*)"
  if not year then return nil end
  local days = calendar.days(tonumber(year), tonumber(month), tonumber(day))
  return days * DAY + hour * 3600 + minute * 60 + second + (part ~= "" and tonumber("0." .. part) or 0)
end

local MONTHS = { Jan = 1, Feb = 2, Mar = 3, Apr = 4, May = 5, Jun = 6, Jul = 7, Aug = 8, Sep = 9, Oct = 10, Nov = 11, Dec = 12 }

--- The instant of a time as HTTP's headers have it: "Sat, 21 Nov 2026 22:24:03 GMT".
-- @string[opt] text
-- @treturn number seconds since 1970, or nil where it is no such time
function calendar.of_header(text)
  local day, month, year, hour, minute, second = (text or ""):match "^%a+, (%d+) (%a+) (%d+) (%d+):(%d+):(%d+) GMT$"
  if not MONTHS[month or ""] then return nil end
  local days = calendar.days(tonumber(year), MONTHS[month], tonumber(day))
  return days * DAY + hour * 3600 + minute * 60 + second
end

return calendar
