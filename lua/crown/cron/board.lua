--- What a host that runs the jobs of a crontab tells of them over HTTP: what the store knows of each, and how often it ran here.
-- @internal crown.cron.board

local cells = require "crown.cron.cells"
local core = require "crown.core"
local promise = require "crown.core.promise"
local view = require "crown.cron.view"

local Board = {}
Board.__index = Board

local KEPT = 5     -- seconds that an answer of the store lasts: however many ask here, it is asked no more often
local PATIENCE = 1 -- seconds that those who ask here wait for the store; then they get what was known before

--- Makes one.
-- @tparam table jobs of crown.cron.crontab
-- @tparam function list asks the store for its elections: an array, or nil and a message
-- @number now the wall clock: what was due before counts as overdue only where the store knows of it
-- @treturn Board
function Board.new(jobs, list, now)
  for _, job in ipairs(jobs) do job.since = now end
  return setmetatable({ jobs = jobs, list = list, elections = {}, runs = {}, failures = {} }, Board)
end

--- A job's command was started here.
-- @string name
function Board:ran(name)
  self.runs[name] = (self.runs[name] or 0) + 1
end

--- A job's command has failed here.
-- @string name
function Board:failed(name)
  self.failures[name] = (self.failures[name] or 0) + 1
end

local function ask(self)
  local fine, found, problem = pcall(self.list)
  if fine and found then self.elections = found end
  self.problem = (not fine or not found) and core.redact(tostring(fine and problem or found)) or nil
  local waiting = self.waiting
  self.asked, self.waiting = core.now(), nil
  for _, one in ipairs(waiting) do one:resolve(true) end
end

local function refresh(self)
  if not self.waiting and self.asked and core.now() - self.asked < KEPT then return end
  if not self.waiting then
    self.waiting = {}
    core.detach(ask, self)
  end
  local one = promise()
  self.waiting[#self.waiting + 1] = one
  one:wait(PATIENCE)
end

--- Looks at all jobs.
-- @number now the wall clock
-- @treturn table an array in the order of the crontab, each as of crown.cron.view with `runs` and `failures` of this
-- runtime, `cells` and `now`; their `heading`; `problem`, why the store has given no answer, or nil
function Board:look(now)
  refresh(self)
  local found = view.all(self.elections, now, self.jobs)
  for _, one in ipairs(found) do
    one.runs, one.failures = self.runs[one.name] or 0, self.failures[one.name] or 0
    one.cells, one.now = cells.of(one, now), now
  end
  found.heading, found.problem = cells.HEADING, self.problem
  return found
end

return Board
