--- Time zones, from the system's zone database: how far a place's clocks are ahead of UTC at an instant. It reads the files
-- itself (RFC 9636), because libc knows one zone for all threads of a process, and takes an unknown one for UTC.
-- @internal crown.election.zone

local calendar = require "crown.text.calendar"
local read_file = require "crown.text.read_file"

local Zone = {}
Zone.__index = Zone

local DATABASE = "/usr/share/zoneinfo"
local HEADER, DAY = 44, 86400 -- bytes; seconds

local function number(bytes, at, size)
  local value = bytes:byte(at)
  if value >= 128 then value = value - 256 end
  for i = at + 1, at + size - 1 do value = value * 256 + bytes:byte(i) end
  return value
end

-- The header of a part: where its data begins, how long it is, and how many there are of what.
local function header(bytes, at, time_size)
  if bytes:sub(at, at + 3) ~= "TZif" then return nil end
  local count = {}
  for i, name in ipairs { "isut", "isstd", "leap", "time", "type", "char" } do
    count[name] = number(bytes, at + 16 + 4 * i, 4)
  end
  local size = count.time * (time_size + 1) + count.type * 6 + count.char + count.leap * (time_size + 4) + count.isstd
    + count.isut
  return { data = at + HEADER, size = size, count = count }
end

-- "2", "-1", "2:30": seconds; and where it ends.
local function duration(text, at)
  local sign, hours, rest = text:match("^([+-]?)(%d+)()", at)
  if not hours then return nil end
  local seconds, unit = hours * 3600, 60
  local digits, behind = text:match("^:(%d%d)()", rest)
  while digits and unit >= 1 do
    seconds, unit, rest = seconds + digits * unit, unit / 60, behind
    digits, behind = text:match("^:(%d%d)()", rest)
  end
  return sign == "-" and -seconds or seconds, rest
end

-- "M3.5.0/2", "J60", "59": a function of the year → the second of that year's change, by the clock before it.
local function change(text)
  local month, week, weekday, at = text:match "^M(%d+)%.(%d)%.(%d)()"
  local julian, j_at = text:match "^J(%d+)()"
  local plain, p_at = text:match "^(%d+)()"
  at = at or j_at or p_at
  if not at then return nil end
  local time = 2 * 3600
  if text:sub(at, at) == "/" then time = duration(text, at + 1) end
  if not time then return nil end
  if not month then
    return function(year)
      local first = calendar.days(year, 1, 1)
      if plain then return (first + plain) * DAY + time end
      local leaps = calendar.days(year, 3, 1) - first == 60 and tonumber(julian) >= 60 and 1 or 0
      return (first + julian - 1 + leaps) * DAY + time
    end
  end
  month, week, weekday = tonumber(month), tonumber(week), tonumber(weekday)
  return function(year)
    local first = calendar.days(year, month, 1)
    local day = first + (weekday - (first + 4)) % 7 + (week - 1) * 7
    local behind = calendar.days(month == 12 and year + 1 or year, month % 12 + 1, 1)
    while day >= behind do day = day - 7 end
    return day * DAY + time
  end
end

-- What holds behind the last change that the file lists, as "CET-1CEST,M3.5.0,M10.5.0/3".
local function read_rule(text)
  local function name(at) return text:match("^<[%w+-]+>()", at) or text:match("^%a+()", at) end
  local at = name(1)
  local standard, behind = duration(text, at or #text + 1)
  if not standard then return nil end
  local rule = { standard = 0 - standard }
  if behind > #text then return rule end
  at = name(behind)
  if not at then return nil end
  local summer, after = duration(text, at)
  rule.summer = summer and 0 - summer or rule.standard + 3600
  local begins, ends = text:match("^,([^,]+),([^,]+)$", after or at)
  rule.begins, rule.ends = begins and change(begins), ends and change(ends)
  return rule.begins and rule.ends and rule or nil
end

local function by_rule(rule, time)
  if not rule.begins then return rule.standard end
  local year = os.date("!*t", time + rule.standard).year
  local begins, ends = rule.begins(year) - rule.standard, rule.ends(year) - rule.summer
  local is_summer
  if begins < ends then is_summer = time >= begins and time < ends else is_summer = time >= begins or time < ends end
  return is_summer and rule.summer or rule.standard
end

local function parse(bytes)
  local old = header(bytes, 1, 4)
  local new = old and bytes:byte(5) >= 50 and header(bytes, old.data + old.size, 8) -- 50 is "2"
  if not new then return nil end
  local count, at = new.count, new.data
  local kinds = at + count.time * 8
  local types = kinds + count.time
  local zone = setmetatable({ times = {}, offsets = {}, first = number(bytes, types, 4) }, Zone)
  for i = 1, count.time do
    zone.times[i] = number(bytes, at + 8 * (i - 1), 8)
    zone.offsets[i] = number(bytes, types + 6 * bytes:byte(kinds + i - 1), 4)
  end
  local text = bytes:match("^\n([^\n]*)\n", new.data + new.size)
  zone.rule = text and text ~= "" and read_rule(text) or nil
  if text and text ~= "" and not zone.rule then return nil end
  return zone
end

local known = {}

--- Reads a zone.
-- @string name "Europe/Berlin", "UTC"
-- @treturn Zone or nil, and why there is none
function Zone.read(name)
  if known[name] then return known[name] end
  local is_name = name:find "^[/%w_+-]+$" and not ("/" .. name .. "/"):find "//"
  if not is_name then return nil, ("'%s' is no time zone"):format(name) end
  local database = os.getenv "TZDIR" or DATABASE
  local bytes = read_file(("%s/%s"):format(database, name))
  if not bytes and (name == "UTC" or name == "Etc/UTC") then
    known[name] = setmetatable({ times = {}, offsets = {}, first = 0 }, Zone)
    return known[name]
  end
  if not bytes then
    local there = read_file(database .. "/Europe/Berlin") ~= nil
    return nil, there and ("there is no time zone '%s' in %s"):format(name, database)
      or ("%s has no time zones: install the package tzdata"):format(database)
  end
  local fine, zone = pcall(parse, bytes)
  if not fine or not zone then return nil, ("%s/%s is no file of a time zone that can be read"):format(database, name) end
  known[name] = zone
  return zone
end

--- How far its clocks are ahead of UTC.
-- @number time seconds since 1970, UTC
-- @treturn number seconds
function Zone:offset(time)
  local times = self.times
  local low, high = 0, #times -- the last change that is not after `time`
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if times[middle] <= time then low = middle else high = middle - 1 end
  end
  if low == #times and self.rule then return by_rule(self.rule, time) end
  return self.offsets[low] or self.first
end

--- The first instant at which its clocks show a time of day, or a later one: where they are put forward over it, that instant;
-- where they show it twice, the first one.
-- @number wall the time as if it were UTC: seconds since 1970
-- @treturn number seconds since 1970, UTC
function Zone:instant(wall)
  local before, after = self:offset(wall - DAY - 12 * 3600), self:offset(wall + DAY + 12 * 3600)
  local early, late = wall - math.max(before, after), wall - math.min(before, after)
  if self:offset(wall - before) == before then return wall - before end
  if self:offset(wall - after) == after then return wall - after end
  while late - early > 1 do -- put forward in between: its clocks show less at `early`, and more at `late`
    local middle = math.floor((early + late) / 2)
    if middle + self:offset(middle) >= wall then late = middle else early = middle end
  end
  return late
end

return Zone
