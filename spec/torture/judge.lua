--- What the children's own ticks say: two at once, shared epochs, epochs that went back, and times without a leader that no
-- fault explains. And what the candidates' logs say of epochs.
local heard = require "torture.heard"
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

--- Whether what is wrong is about epochs.
-- @string text
function judge.is_of_epochs(text) return text:find "epoch went back" or text:find "share an epoch" end

-- A node leads one slot at a time.
local function add_in_two_slots(found, paths)
  local before = {}
  for _, path in ipairs(paths) do
    local lives = ticks.lives(path)
    for _, life in ipairs(lives) do
      for _, other in ipairs(before) do
        if life.node == other.node and life.first <= other.last and other.first <= life.last then
          found[#found + 1] = ("%s led two slots at once, in their epochs %.0f and %.0f"):format(life.node, other.epoch, life.epoch)
        end
      end
    end
    for _, life in ipairs(lives) do before[#before + 1] = life end
  end
end

-- Where epochs may begin anew, those of two candidates are not compared: the later one need not have heard of the earlier's.
local function wrong_of(run)
  local found, epochs = {}, 0
  for _, path in ipairs(run.paths) do
    for _, text in ipairs(ticks.faults(path)) do
      if not (run.anew and judge.is_of_epochs(text)) then found[#found + 1] = text end
    end
  end
  add_in_two_slots(found, run.paths)
  for _, log in ipairs(run.heeded and run.logs or {}) do
    for _, text in ipairs(heard.went_back(log)) do found[#found + 1] = text end
  end
  for _, text in ipairs(found) do
    if judge.is_of_epochs(text) then epochs = epochs + 1 end
  end
  return found, epochs
end

-- The times without a leader of one election.
local function add_gaps(result, path, intervals, ended)
  local last
  for _, life in ipairs(ticks.lives(path)) do
    if last and life.first > last then
      result.gap = math.max(result.gap, life.first - last)
      result.unexplained = math.max(result.unexplained, uncovered(last, life.first, intervals))
    end
    last = math.max(last or 0, life.last)
  end
  if last and ended > last then result.unexplained = math.max(result.unexplained, uncovered(last, ended, intervals)) end
end

--- Judges a run.
-- @tparam table run `paths`: those of the ticks, one for each election; `intervals`: `{ from =, to = }` in which nobody need lead: a
-- fault and what it may cost afterwards; `ended`: when the run ended; `anew`: the store was made anew, and its epochs with it, as
-- its page says; `heeded`: nobody may win under an epoch below one that it has heard of, also then; `logs` of the candidates
-- @treturn table `{ wrong = { text… }, terms =, overlap = ms, epochs = shared or gone back, gap = seconds, unexplained = seconds }`
function judge.run(run)
  local wrong, epochs = wrong_of(run)
  local result = { wrong = wrong, terms = 0, overlap = 0, epochs = epochs, gap = 0, unexplained = 0 }
  table.sort(run.intervals, function(a, b) return a.from < b.from end)
  for _, path in ipairs(run.paths) do
    result.terms, result.overlap = result.terms + #ticks.terms(path), result.overlap + ticks.overlap(path) * 1000
    add_gaps(result, path, run.intervals, run.ended)
  end
  return result
end

return judge
