--- Why a candidate may not lead, beside the store: its own rules of who leads and when.
-- @internal crown.text.barred

--- Puts it into words.
-- @tparam table one an election's status
-- @tparam function span seconds → words
-- @treturn string or nil: it may lead
return function(one, span)
  if not one.barred then return nil end
  local told = {}
  for i, bar in ipairs(one.barred) do told[i] = ("%s for %s: %s"):format(bar.reason, span(bar.since), bar.why) end
  return table.concat(told, "; ")
end
