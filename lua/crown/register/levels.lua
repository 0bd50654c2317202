--- Which host is to run an occurrence of a job first, where hosts have levels: 0 unless their options say another one. The marks
-- of a job (crown.register.runs) have the level of the host that began last, and its `node`, in their field `prefers`. A level of
-- 0 is not written.
--
-- A host that finds a higher level there leaves the occurrence to others for a bounded time, counted from its own begin with it.
-- So a preferred host that is gone delays one occurrence: the host that runs that writes its own level. A host that finds an
-- occurrence over, and a level below its own, has lost it to a host that comes after it: it writes its level too, and is left the
-- next one. None of this permits a claim. It is pure data here: no clock, no store.
-- @internal crown.register.levels

local printable = require "crown.text.printable"

local levels = {}

--- The level that others are to leave the next occurrence to.
-- @tparam[opt] table found the marks of the record
-- @treturn number
-- @treturn string its node, or nil
function levels.of(found)
  local one = type(found) == "table" and found.prefers
  if type(one) ~= "table" or type(one.level) ~= "number" or type(one.node) ~= "string" then return 0 end
  return one.level, one.node
end

--- Says to whom an occurrence is left.
-- @string[opt] node
-- @number level
-- @treturn string
function levels.words(node, level)
  return ("left to %s first, of preference %d"):format(node and printable(node) or "hosts", level)
end

--- For how long a candidate leaves its occurrence to others.
-- @tparam[opt] table found the marks of the record
-- @tparam[opt] Job job of crown.register.runs: its `level`, or nil; `yields`, for how many seconds it leaves others theirs;
-- `from`, the instant at which it began with the occurrence
-- @number now on the clock of `from`
-- @treturn number seconds; or nil: it may claim
-- @treturn string why
function levels.wait(found, job, now)
  if not job or not job.level then return nil end
  local level, node = levels.of(found)
  local left = job.from + job.yields - now
  if level <= job.level or left <= 0 then return nil end
  return left, levels.words(node, level)
end

--- Whether a candidate's level is higher than the one that is noted.
-- @tparam[opt] table found the marks of the record
-- @tparam[opt] Job job
-- @treturn boolean
function levels.is_above(found, job)
  return job ~= nil and job.level ~= nil and job.level > levels.of(found)
end

--- Notes a candidate's level.
-- @tparam table marks of a record that is to be written
-- @tparam[opt] Job job without a level it changes nothing
-- @string node the candidate's
function levels.note(marks, job, node)
  if not job or not job.level then return end
  marks.prefers = job.level ~= 0 and { level = job.level, node = node } or nil
end

return levels
