--- Which slips are made: one for each changed line, then some by a seed, the same on every machine.
local groups = require "slips.groups"
local hash = require "slips.hash"
local slip = require "slips.slip"

local sample = {}

local MOST_IN_FUNCTION = 3

--- A number for a slip by a seed: those with the lowest are taken first.
function sample.rank(seed, one)
  return hash(seed .. " " .. slip.name(one))
end

local function by_rank(a, b)
  if a.rank ~= b.rank then return a.rank < b.rank end
  return slip.name(a) < slip.name(b)
end

local function ranked(slips, seed)
  local sorted = {}
  for i, one in ipairs(slips) do
    one.rank = sample.rank(seed, one)
    sorted[i] = one
  end
  table.sort(sorted, by_rank)
  return sorted
end

--- One slip for each changed line, at most three in a function.
-- @tparam table slips
-- @string seed
-- @tparam table changed lines by file, `{ [file] = { [line] = true } }`
function sample.of_changed(slips, seed, changed)
  local taken, lines, functions = {}, {}, {}
  for _, one in ipairs(ranked(slips, seed)) do
    local line, func = one.file .. ":" .. one.line, one.file .. ":" .. one.func
    local count = functions[func] or 0
    if (changed[one.file] or {})[one.line] and not lines[line] and count < MOST_IN_FUNCTION then
      lines[line], functions[func] = true, count + 1
      taken[#taken + 1] = one
    end
  end
  return taken
end

--- All slips in an order by a seed: of each part its share (slips.groups), as long as there are any.
function sample.in_order(slips, seed)
  local parts, at, order, empty, turn = {}, {}, {}, 0, 0
  for _, part in ipairs(groups.TURNS) do parts[part], at[part] = {}, 0 end
  for _, one in ipairs(ranked(slips, seed)) do
    local part = parts[groups.of(one.file).part]
    part[#part + 1] = one
  end
  while empty < #groups.TURNS do
    local part = groups.TURNS[turn % #groups.TURNS + 1]
    turn, at[part] = turn + 1, at[part] + 1
    local one = parts[part][at[part]]
    order[#order + 1] = one
    empty = one and 0 or empty + 1
  end
  return order
end

return sample
