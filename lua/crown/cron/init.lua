--- When a line of crontab(5) is due, for apps that run jobs by the clock on the one candidate that leads.
-- See docs/how-to/cron.md.
-- @module crown.cron

local core = require "crown.core"
local Schedule = require "crown.cron.schedule"
local usage = require "crown.check.usage"
local Zone = require "crown.election.zone"

local cron = {}

local LOOK = 30     -- seconds at most: somebody may set the wall clock
local DAY = 86400   -- a clock that is set back by less runs no job twice
local EARLY = 0.001 -- seconds: what rounding leaves of a wait is no wait

local function wall() return core.now() + core.wall_offset() end

--- The times of a job.
-- @type Times
local Times = {}
Times.__index = Times

--- The next time that it is due.
-- @number[opt] after seconds since 1970, UTC (now)
-- @treturn number seconds since 1970, UTC, later than `after`; nil where there is none in the next eight years
function Times:next(after)
  return self.schedule:next(after or wall())
end

--- Waits until it is due, by this host's wall clock. Where that is set forward over several times, it is due once; where it is
-- set back, by a day at most, none of the times before comes again. Inside a term it ends with the term.
-- @treturn number when it was due, in seconds since 1970, UTC; or nil and "cancelled": its task was cancelled
function Times:wait()
  local now = wall()
  local past = self.past and now > self.past - DAY and math.max(self.past, now) or now
  local due = assert(self:next(past), "it is never due again")
  while due - now > EARLY do
    local _, problem = core.sleep(math.min(due - now, LOOK))
    if problem then return nil, problem end
    now = wall()
    if now < past - DAY then past, due = now, self:next(now) end
  end
  self.past = math.max(due, now)
  return due
end

--- @section end

--- Reads the times of a job.
-- @string times five fields as of crontab(5), such as "15 3 * * mon-fri"; or @hourly, @daily, @weekly, @monthly, @yearly
-- @string zone whose clocks count, such as "Europe/Berlin" or "UTC"
-- @treturn Times
-- @raise a usage error that names what is wrong, and where in the text
function cron.read(times, zone)
  if type(times) ~= "string" or type(zone) ~= "string" then
    usage.error "cron.read(times, zone): both are texts, such as \"15 3 * * *\" and \"UTC\""
  end
  local where, problem = Zone.read(zone)
  if not where then usage.error("cron.read: %s", problem) end
  local schedule, behind, at = Schedule.read(times, where)
  if not schedule then usage.error("cron.read: '%s', column %d: %s", times, at, behind) end
  if times:find("%S", behind) then
    usage.error("cron.read: '%s', column %d: nothing follows the five fields", times, (times:find("%S", behind)))
  end
  return setmetatable({ schedule = schedule }, Times)
end

return cron
