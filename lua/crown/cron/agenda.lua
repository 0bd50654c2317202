--- Which jobs are due, of thousands, by a wall clock that somebody may set: no time comes twice, and where the clock leaps over
-- several times of a job, they are due at once.
-- @internal crown.cron.agenda

local Agenda = {}
Agenda.__index = Agenda

local LOOK = 5      -- seconds at most from one look at the clock to the next
local DAY = 86400   -- a clock that is set back by less runs no job twice; by more, it was wrong before
local EARLY = 0.001 -- seconds: what rounding leaves of a wait is no wait

-- Restores the order of a heap whose first entry is later than it was.
local function sink(heap)
  local entry, i = heap[1], 1
  while true do
    local child = 2 * i
    if heap[child + 1] and heap[child + 1].at < heap[child].at then child = child + 1 end
    if not heap[child] or heap[child].at >= entry.at then break end
    heap[i], i = heap[child], child
  end
  heap[i] = entry
end

local function arrange(self, now)
  local heap = {}
  for _, job in ipairs(self.jobs) do heap[#heap + 1] = { job = job, at = job.schedule:next(now) or math.huge } end
  table.sort(heap, function(a, b) return a.at < b.at end)
  self.heap, self.seen = heap, now
end

--- Makes one.
-- @tparam table jobs an array, each with its `schedule`
-- @number now the wall clock, in seconds; what was due up to now is left out
function Agenda.new(jobs, now)
  local self = setmetatable({ jobs = jobs }, Agenda)
  arrange(self, now)
  return self
end

--- The jobs that are due, each once.
-- @number now the wall clock
-- @treturn table an array of `{ job =, first =, latest = }`, the times that it was due since the last call
function Agenda:take(now)
  if now < self.seen - DAY then arrange(self, now) end
  self.seen = math.max(self.seen, now)
  local heap, found = self.heap, {}
  while heap[1] and heap[1].at <= now + EARLY do
    local entry = heap[1]
    local job, first = entry.job, entry.at
    local latest, next_one = job.schedule:latest(now + EARLY, first)
    found[#found + 1] = { job = job, first = first, latest = latest }
    entry.at = next_one or math.huge
    sink(heap)
  end
  return found
end

--- How long nothing is due.
-- @number now the wall clock
-- @treturn number seconds after which to look again
function Agenda:wait(now)
  local first = self.heap[1]
  return first and math.max(0, math.min(LOOK, first.at - now)) or LOOK
end

return Agenda
