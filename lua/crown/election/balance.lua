--- Which share of many a node takes from another one, so that nobody has more than one more than another. It is pure: it is told
-- who leads each share, as far as that node knows. What is seen may be old: then a share moves once more.
-- @internal crown.election.balance

local balance = {}

--- Picks the share that a node asks for.
-- @tparam table leaders an array: the node that leads each share, or false
-- @string node
-- @tparam function random as math.random: nodes that come together ask for different shares
-- @treturn number the share's, led by a node that has at least two more; or nil: there is nothing to take
function balance.pick(leaders, node, random)
  local counts, most = {}, nil
  for _, leader in ipairs(leaders) do
    if leader then counts[leader] = (counts[leader] or 0) + 1 end
  end
  for leader, count in pairs(counts) do
    local is_more = leader ~= node and (not most or count > counts[most] or count == counts[most] and leader < most)
    if is_more then most = leader end
  end
  if not most or counts[most] - (counts[node] or 0) < 2 then return nil end
  local theirs = {}
  for i, leader in ipairs(leaders) do
    if leader == most then theirs[#theirs + 1] = i end
  end
  return theirs[random(#theirs)]
end

return balance
