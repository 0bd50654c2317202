--- Which share of many a node takes from another one, so that nobody has more than one more than another. It is pure: it is told
-- who leads each share, as far as that node knows. What is seen may be old: then a share moves once more.
-- @internal crown.election.balance

local balance = {}

-- The shares that may be taken, of the node that has the most of those that have one at least, and two more than this node.
local function theirs_of(leaders, node, stays)
  local counts, free, most = {}, {}, nil
  for number, leader in ipairs(leaders) do
    if leader then counts[leader] = (counts[leader] or 0) + 1 end
    if leader and not (stays and stays[number]) then
      free[leader] = free[leader] or {}
      table.insert(free[leader], number)
    end
  end
  for leader, count in pairs(counts) do
    local is_more = free[leader] and leader ~= node and count - (counts[node] or 0) >= 2
    if is_more and (not most or count > counts[most] or count == counts[most] and leader < most) then most = leader end
  end
  return most and free[most]
end

--- Picks the share that a node asks for.
-- @tparam table leaders an array: the node that leads each share, or false
-- @string node
-- @tparam function random as math.random: nodes that come together ask for different shares
-- @tparam[opt] table stays by number, whether a share may not be taken now, as it is paused
-- @treturn number the share's, led by a node that has at least two more; or nil: there is nothing to take
function balance.pick(leaders, node, random, stays)
  local theirs = theirs_of(leaders, node, stays)
  return theirs and theirs[random(#theirs)] or nil
end

return balance
