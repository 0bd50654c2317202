--- A time span in words.
-- @internal crown.text.span

--- Says it to two figures.
-- @number seconds
-- @treturn string "0.4 s", "12 s", "3 min 5 s", "2 h 11 min", "5 d 3 h"
local function span(seconds)
  if seconds < 10 then return ("%.1f s"):format(math.max(0, seconds)) end
  if seconds < 60 then return ("%d s"):format(seconds) end
  if seconds < 3600 then return ("%d min %d s"):format(seconds / 60, seconds % 60) end
  if seconds < 86400 then return ("%d h %d min"):format(seconds / 3600, seconds % 3600 / 60) end
  return ("%d d %d h"):format(seconds / 86400, seconds % 86400 / 3600)
end

return span
