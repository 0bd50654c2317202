--- The five fields of a line of crontab(5): each is a list of numbers, names, ranges and steps.
-- @internal crown.cron.fields

local usage = require "crown.check.usage"

local fields = {}

local MONTHS = { jan = 1, feb = 2, mar = 3, apr = 4, may = 5, jun = 6, jul = 7, aug = 8, sep = 9, oct = 10, nov = 11, dec = 12 }
local WEEKDAYS = { sun = 0, mon = 1, tue = 2, wed = 3, thu = 4, fri = 5, sat = 6 }

--- The fields in the order in which they stand, each with its `key` in a schedule. 7 is Sunday too.
fields.order = {
  { name = "minute", key = "minutes", least = 0, most = 59 },
  { name = "hour", key = "hours", least = 0, most = 23 },
  { name = "day of the month", key = "days", least = 1, most = 31 },
  { name = "month", key = "months", least = 1, most = 12, names = MONTHS },
  { name = "day of the week", key = "weekdays", least = 0, most = 7, names = WEEKDAYS },
}

local function range_words(field)
  return ("%d to %d"):format(field.least, field.most)
end

-- A number or a name; nil and what is wrong.
local function value_of(field, text)
  local number = text:find "^%d+$" and tonumber(text)
  if number and (number < field.least or number > field.most) then
    return nil, ("%s %s is not between %d and %d"):format(field.name, text, field.least, field.most)
  end
  number = number or field.names and field.names[text:lower()]
  if number then return number end
  if text == "" then return nil, ("the %s lacks a number"):format(field.name) end
  local known = field.names and usage.names(field.names) or {}
  return nil, ("'%s' is no %s%s: write %s%s"):format(text, field.name, usage.suggest(text, known), range_words(field),
    field.names and " or the first three letters of its name" or "")
end

-- "*", "5", "1-5", "mon-fri": its first and last number, and where the last one is only the field's own end.
local function ends_of(field, text)
  if text == "*" then return field.least, field.names == WEEKDAYS and 6 or field.most, true end
  local left, right = text:match "^([^-]*)%-(.*)$"
  local first, problem = value_of(field, left or text)
  if not first then return nil, problem end
  if not left then return first, first end
  local last
  last, problem = value_of(field, right)
  if not last then return nil, problem end
  if field.names == WEEKDAYS and last == 0 and first > 0 then last = 7 end -- Fri-Sun
  if last < first then
    return nil, ("the range %s goes backwards: write %s-%d,%d-%s"):format(text, left, field.most, field.least, right)
  end
  return first, last, true
end

-- Adds what stands between two commas. @return nil; or what is wrong
local function add(set, field, text)
  local base, step = text:match "^([^/]*)/(.*)$"
  local first, last, is_range = ends_of(field, base or text)
  if not first then return last end
  if base and not is_range then
    return ("a step goes with a range: write %s-%d/%s in place of %s"):format(base, field.most, step, text)
  end
  step = step and (step:find "^%d+$" and tonumber(step) or 0) or 1
  if step < 1 or step > field.most then
    return ("the step in '%s' is not between 1 and %d"):format(text, field.most)
  end
  for number = first, last, step do set[field.names == WEEKDAYS and number % 7 or number] = true end
  return nil
end

-- Thousands of jobs have few different fields: equal ones are one table.
local known = setmetatable({}, { __mode = "v" })

local function new_field(set, is_star)
  local list = {}
  for number in pairs(set) do list[#list + 1] = number end
  table.sort(list)
  return { has = set, list = list, is_star = is_star }
end

--- Reads a field.
-- @tparam table field one of fields.order
-- @string text without blanks
-- @treturn table `has`, a set of numbers; `list`, the same in order; `is_star`: it begins with a star, by which cron(8) tells a
-- fixed time from a repeated one. Not to be changed. nil where it is none
-- @treturn string what is wrong
-- @treturn number where in the text that stands, from 0
function fields.read(field, text)
  local key = field.name .. " " .. text
  if known[key] then return known[key] end
  local set, at = {}, 1
  while at <= #text + 1 do
    local ends = text:find(",", at, true) or #text + 1
    local problem = add(set, field, text:sub(at, ends - 1))
    if problem then return nil, problem, at - 1 end
    at = ends + 1
  end
  local one = new_field(set, text:sub(1, 1) == "*")
  known[key] = one
  return one
end

return fields
