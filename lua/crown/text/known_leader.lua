--- The leader of an election as its candidate here knows it. One that may not lead asks the store for nothing, so what it knows
-- grows old: then it is said of when it is.
-- @internal crown.text.known_leader

local FRESH = 2 -- seconds

--- Puts it into words.
-- @tparam table one an election's status
-- @tparam function span seconds → words
-- @treturn string or nil: it knows of none
return function(one, span)
  local is_old = one.barred and one.phase == "following" and (one.answered or 0) >= FRESH
  return one.leader and is_old and ("%s, %s ago"):format(one.leader, span(one.answered)) or one.leader
end
