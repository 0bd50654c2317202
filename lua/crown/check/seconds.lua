--- Times as users write them: every time here is in seconds, and other systems count in milliseconds or take units.
-- @internal crown.check.seconds

local core = require "crown.core"
local figure = require "crown.check.figure"
local others = require "crown.check.others"

local seconds = {}

local LEAST, STEP = 1000, 500 -- of what may have been meant in milliseconds: 5000 and 1500 are, an hour is not
local UNITS = { ms = 0.001, s = 1, m = 60, min = 60, h = 3600, d = 86400 }

local warned = {}

--- Seconds, ten years, that a person may give at most for what stands in a store until then.
seconds.LONGEST = 3660 * 86400

--- Whether a number of seconds looks as if milliseconds were meant.
-- @number value
-- @treturn boolean
function seconds.doubtful(value)
  return value >= LEAST and value % STEP == 0
end

--- Warns, once, of a time that looks as if milliseconds were meant.
-- @string where whose option it is
-- @string name of the option
-- @number value
function seconds.warn(where, name, value)
  if not seconds.doubtful(value) then return end
  local slip = ("%s %s"):format(others.plain(name), figure.exact(value)) -- one slip, though ten thousand elections have it
  if warned[slip] then return end
  warned[slip] = true
  core.log("warn", ("%s: %s %s: seconds, not milliseconds?"):format(where, name, figure.exact(value)))
end

--- What to write instead of a time with a unit.
-- @string text
-- @treturn string " (in seconds: 15)", or ""
function seconds.suggest(text)
  local number, unit = text:match "^([%d.]+)(%l+)$"
  if not tonumber(number) or not UNITS[unit] then return "" end
  return (" (in seconds: %s)"):format(figure.exact(number * UNITS[unit]))
end

--- Reads a time with units, where a person gives one of hours or days.
-- @string text such as "2h", "1h30m" or "90", which are seconds
-- @treturn number seconds above 0; or nil: it is none
function seconds.read(text)
  local total, rest = 0, text:gsub("^[%d.]+$", "%0s")
  while rest ~= "" do
    local number, unit, more = rest:match "^([%d.]+)(%l+)(.*)$"
    if not tonumber(number) or not UNITS[unit] then return nil end
    total, rest = total + number * UNITS[unit], more
  end
  return total > 0 and total or nil
end

return seconds
