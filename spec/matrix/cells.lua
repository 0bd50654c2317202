--- Cells that are played side by side: each is a trick at a step, with ways of its own (matrix.way). What goes wrong first with
-- one stands in its `problem`.
local eventually = require("crown.testing").eventually
local tricks = require "matrix.tricks"

local cells = {}

--- What is played. MATRIX=all plays each trick at every step; else it is played at one, `stride` steps on from that of the trick
-- before.
-- @tparam table steps an array of names
-- @number stride
-- @number first
-- @treturn table an array of `{ step, trick }`
function cells.chosen(steps, stride, first)
  local names, found = {}, {}
  for name in pairs(tricks) do names[#names + 1] = name end
  table.sort(names)
  for i, trick in ipairs(names) do
    for k, step in ipairs(steps) do
      if os.getenv "MATRIX" == "all" or k == (i * stride + first) % #steps + 1 then found[#found + 1] = { step, trick } end
    end
  end
  return found
end

--- Waits until something is so of each cell, or the program has ended, and notes of which it never was.
-- @tparam table list
-- @tparam Candidate program
-- @number seconds
-- @string words the problem
-- @tparam function is_so called with a cell
function cells.await(list, program, seconds, words, is_so)
  local left
  pcall(eventually, function()
    left = {}
    for _, cell in ipairs(list) do
      if not is_so(cell) then left[#left + 1] = cell end
    end
    return #left == 0 or program.code or pcall(program.wait, program, 0)
  end, seconds)
  for _, cell in ipairs(left) do cell.problem = cell.problem or words end
end

local function each_way(list, fn)
  for _, cell in ipairs(list) do
    for _, way in pairs(cell.ways) do fn(way) end
  end
end

--- Lets all ways be well for connections that are opened from now on.
function cells.mend(list)
  each_way(list, function(way) way.well = true end)
end

--- Closes all ways.
function cells.close(list)
  each_way(list, function(way) way:close() end)
end

return cells
