--- Which occurrence of a job a host works on, from the one that is due to the last one that is open: one after the other, and by
-- one election each. Without input or output.
-- @internal crown.cron.course

local Course = {}
Course.__index = Course

-- The next occurrence that is open. Of several that came due, only the last one counts, but where each is to be made up for.
local function wanted(self)
  local over = self.over
  local slot = self.latest
  if self.job.catch_up == "each" then slot = over and over >= self.first and self.job.schedule:next(over) or self.first end
  if not slot or slot > self.latest or over and slot <= over then return nil end
  return slot
end

local function go_on(self)
  self.slot = wanted(self)
  if self.slot then self.hands.begin(self, self.slot) else self.hands.finish(self) end
end

--- Makes one.
-- @tparam table job
-- @number first the first occurrence that is due
-- @number latest the last one
-- @tparam table hands what it has done: `begin(course, slot)` begins the election for an occurrence, `stop(course)` ends it,
-- `leads(course)` says whether the occurrence runs here, `finish(course)`: nothing is open any more
function Course.new(job, first, latest, hands)
  return setmetatable({ job = job, first = first, latest = latest, hands = hands }, Course)
end

--- Begins with the first occurrence that is open.
function Course:begin()
  go_on(self)
end

--- The job is due again. An occurrence that waits for its turn is left for the later one; one that runs here ends first.
-- @number latest
function Course:due(latest)
  self.latest = math.max(self.latest, latest)
  if self.slot and wanted(self) ~= self.slot and not self.hands.leads(self) then self.hands.stop(self) end
end

--- Occurrences are over: they have succeeded, or were tried often enough.
-- @number slot the last one of them
function Course:pass(slot)
  self.over = math.max(self.over or slot, slot)
end

--- The election for an occurrence has ended.
function Course:ended()
  go_on(self)
end

return Course
