--- Numbers for people: never with an exponent, and never with more digits than say something. The C side has the same rule for
-- what it measures: runtime/base/figure.h.
-- @internal crown.check.figure

local figure = {}

local MEASURED, EXACT = 3, 14 -- significant digits: of what is measured or worked out, and of what somebody gave

local function with_digits(value, digits)
  local text = ("%." .. digits .. "g"):format(value)
  if not text:find "e" then return text end
  if math.abs(value) >= 1 then return ("%.0f"):format(value) end
  return (("%.9f"):format(value):gsub("%.?0+$", ""))
end

--- A number that was measured or worked out, to three figures; a larger one to the unit.
-- @number value
-- @treturn string "0.125", "2.33", "30000"
function figure.about(value)
  return with_digits(value, MEASURED)
end

--- A number that somebody gave, or may give, with all its digits.
-- @number value
-- @treturn string "1500.25", "31536000"
function figure.exact(value)
  return with_digits(value, EXACT)
end

return figure
