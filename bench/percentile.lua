--- The value below which a part of sorted values lies: the mean of two for the median of an even number, else one that was
-- measured.
-- @tparam table values sorted, not empty
-- @number part 0.5 for the median
-- @treturn number
return function(values, part)
  local at = #values * part
  if part == 0.5 and at % 1 == 0 then return (values[at] + values[at + 1]) / 2 end
  return values[math.ceil(at)]
end
