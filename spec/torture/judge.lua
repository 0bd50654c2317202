--- What the children's own ticks say: two at once, shared epochs, epochs that went back, and times without a leader that no
-- fault explains.
local ticks = require "support.ticks"

local judge = {}

-- The parts of a span that no interval covers.
local function uncovered(from, to, intervals)
  local rest, at = 0, from
  for _, one in ipairs(intervals) do
    if one.from > at then rest = rest + math.max(0, math.min(one.from, to) - at) end
    at = math.max(at, one.to)
    if at >= to then return rest end
  end
  return rest + math.max(0, to - at)
end

local function wrong_of(path, anew)
  local found = {}
  for _, text in ipairs(ticks.faults(path)) do
    if not (anew and (text:find "epoch went back" or text:find "share an epoch")) then found[#found + 1] = text end
  end
  return found
end

--- Judges a run.
-- @string path of the ticks
-- @tparam table intervals `{ from =, to = }` in which nobody need lead: a fault and what it may cost afterwards
-- @number ended when the run ended
-- @bool anew the store was made anew, and its epochs with it, as its page says
-- @treturn table `{ wrong = { text… }, terms =, overlap = ms, gap = seconds, unexplained = seconds }`
function judge.run(path, intervals, ended, anew)
  local result = { wrong = wrong_of(path, anew), terms = #ticks.terms(path), overlap = ticks.overlap(path) * 1000, gap = 0,
    unexplained = 0 }
  table.sort(intervals, function(a, b) return a.from < b.from end)
  local last
  for _, life in ipairs(ticks.lives(path)) do
    if last and life.first > last then
      result.gap = math.max(result.gap, life.first - last)
      result.unexplained = math.max(result.unexplained, uncovered(last, life.first, intervals))
    end
    last = math.max(last or 0, life.last)
  end
  if last and ended > last then result.unexplained = math.max(result.unexplained, uncovered(last, ended, intervals)) end
  return result
end

return judge
