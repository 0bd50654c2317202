--- Epochs: whole numbers that a number of Lua's holds exactly.
-- @internal crown.check.epoch

local epoch = {}

--- The largest one. From the next number on two terms could have the same.
epoch.MOST = 2 ^ 53 - 1

--- Whether a value is an epoch that somebody can lead under.
-- @param value
-- @treturn boolean
function epoch.is(value)
  return type(value) == "number" and value >= 1 and value <= epoch.MOST and value % 1 == 0
end

--- A store's epoch as a number. One that is too large for a number comes as a text; no higher one is given out, so it counts
-- as the largest.
-- @param value a number, its digits, or nil: none was given out
-- @treturn number
function epoch.counted(value)
  return type(value) == "string" and epoch.MOST or math.min(value or 0, epoch.MOST)
end

--- A store's epoch in digits, also one that is too large for a number: such come as texts.
-- @param value a number or its digits
-- @treturn string
function epoch.text(value)
  if type(value) ~= "number" then return tostring(value) end
  return ("%.0f"):format(value)
end

--- Why nobody can lead any more where a store has come to the largest.
-- @param last the store's last one, a number or its digits
-- @treturn string
function epoch.none_above(last)
  return ("the last epoch was %s, and there is none above %.0f: see \"How large an epoch may be\" in docs/oracles.md")
    :format(epoch.text(last), epoch.MOST)
end

return epoch
