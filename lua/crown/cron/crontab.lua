--- Reads a crontab: jobs with their times, environment and options, and everything that is wrong with it.
-- @internal crown.cron.crontab

local Schedule = require "crown.cron.schedule"
local Zone = require "crown.election.zone"
local names = require "crown.check.names"
local options = require "crown.cron.options"

local crontab = {}

local Reader = {}
Reader.__index = Reader

function Reader:complain(column, message)
  self.problems[#self.problems + 1] = { line = self.line, column = column, message = message }
end

-- `NAME = value`, with quotes around either as crontab(5) has them.
local function assignment(text)
  local name, value = text:match "^%s*([%a_][%w_]*)%s*=%s*(.-)%s*$"
  if not name then name, value = text:match "^%s*\"([%a_][%w_]*)\"%s*=%s*(.-)%s*$" end
  if not name then return nil end
  return name, value:match "^\"(.*)\"$" or value:match "^'(.*)'$" or value
end

local MARK = "\239\187\191" -- UTF-8's byte order mark, which some editors write

function Reader:assign(name, value, column)
  if name:find "^CROWN_" then return self:complain(column, name .. " is crown-lua's to set: take the line out") end
  if name == "CRON_TZ" then
    local zone, problem = Zone.read(value)
    if not zone then return self:complain(column, "CRON_TZ: " .. problem) end
    self.zone, self.zone_name, self.is_hosts_zone = zone, value, false
    return nil
  end
  local copy = { [name] = value } -- the jobs above keep theirs
  for other, old in pairs(self.environment) do copy[other] = copy[other] or old end
  self.environment = copy
end

-- The first % ends the command, and what follows is its input, with each further % for a new line; \% is a percent sign.
local function split(text)
  local parts, part, at = {}, {}, 1
  while at <= #text do
    local letter = text:sub(at, at)
    if letter == "\\" and text:sub(at + 1, at + 1) == "%" then
      part[#part + 1], at = "%", at + 1
    elseif letter == "%" then
      parts[#parts + 1], part = table.concat(part), {}
    else
      part[#part + 1] = letter
    end
    at = at + 1
  end
  parts[#parts + 1] = table.concat(part)
  return parts[1]:gsub("%s+$", ""), #parts > 1 and table.concat(parts, "\n", 2) .. "\n" or nil
end

-- What a job is called that gives itself no name: its program.
local function name_of(command)
  local first = command:match "^(%S+)"
  return first:match "[^/]*$":gsub("[^%w._-]", "_"):gsub("^[.-]+", ""):sub(1, names.MOST)
end

-- The zone that counts where the file has not named one up to here.
function Reader:default_zone(column)
  if self.zone then return self.zone end
  local zone, problem = nil, "write CRON_TZ=Europe/Berlin above it: the time zone of this host has no name"
  if self.zone_name then
    zone, problem = Zone.read(self.zone_name)
    problem = problem and ("%s: %s; write CRON_TZ=Europe/Berlin above it"):format(self.zone_from, problem)
  end
  if not zone then -- told once, and the jobs are read all the same
    self:complain(column, problem)
    zone, self.zone_name, self.is_hosts_zone = Zone.read "UTC", "UTC", false
  end
  self.zone = zone
  return zone
end

function Reader:job(text)
  local given = self.given or {}
  self.given, self.given_line = nil, nil
  local zone = self:default_zone(text:find "%S")
  local schedule, behind, column = Schedule.read(text, zone)
  if not schedule then return self:complain(column, behind) end
  local at = text:match("^%s*()", behind)
  local command, input = split(text:sub(at))
  if command == "" then return self:complain(at, "the command is missing behind the five fields") end
  local job = { name = given.name or name_of(command), line = self.line, column = at, schedule = schedule, command = command,
    input = input, environment = self.environment, zone = self.zone_name, times = text:sub(1, behind - 1):match "^%s*(.-)%s*$",
    is_hosts_zone = self.is_hosts_zone, timeout = given.timeout, retries = given.retries or 0, catch_up = given.catch_up or "no",
    output = given.output or "log" }
  if job.name == "" then return self:complain(at, "this job needs a name: write '#: name=NAME' above it") end
  local other = self.by_name[job.name]
  if other then
    return self:complain(at, ("the job in line %d is called '%s' too: write '#: name=NAME' above one of them")
      :format(other.line, job.name))
  end
  self.by_name[job.name], self.jobs[#self.jobs + 1] = job, job
end

-- Options without a job would be missed where they are meant.
function Reader:refuse_stray()
  if self.given then
    self.problems[#self.problems + 1] = { line = self.given_line, column = 1, message = "no job follows these options" }
  end
end

function Reader:read_line(text)
  local nul = text:find("\0", 1, true)
  if nul then return self:complain(nul, "a byte NUL, which no command can have: take it out") end
  if text:find "^%s*#:" then
    self:refuse_stray()
    local found, problems = options.read(text:match "^%s*(.*)$")
    for _, one in ipairs(problems) do self:complain(one.column + #text:match "^%s*", one.message) end
    self.given, self.given_line = found, self.line
  elseif text:find "^%s*$" or text:find "^%s*#" then -- luacheck: ignore 542
  else
    local name, value = assignment(text)
    if name then return self:assign(name, value, text:find "%S") end
    self:job(text)
  end
end

--- Reads a crontab.
-- @string text of the file
-- @string[opt] zone_name whose clocks count where it has no CRON_TZ; nil: nobody knows
-- @string[opt] zone_from where that name stands, in words
-- @treturn table an array of jobs: `name`, `line`, `column` of the command, `schedule`, `times` as they are written, `zone`,
-- `is_hosts_zone` (it is `zone_name`), `command` of sh(1), `input` or nil, `environment`, `timeout` in seconds or nil, `retries`,
-- `catch_up`, `output`: "keep" where the store keeps its end too, else "log"
-- @treturn table an array of what is wrong: `line`, `column`, `message`; empty where all is well
function crontab.read(text, zone_name, zone_from)
  local reader = setmetatable({ jobs = {}, problems = {}, by_name = {}, environment = {}, zone_name = zone_name,
    zone_from = zone_from or "the time zone of this host",
    is_hosts_zone = true, line = 0 }, Reader)
  local has_mark = text:sub(1, #MARK) == MARK
  if has_mark then
    reader.line = 1
    reader:complain(1, "the file begins with a byte order mark, which cannot be seen: save it as UTF-8 without one")
    reader.line = 0
  end
  for line in (text:sub(has_mark and #MARK + 1 or 1):gsub("\r\n", "\n") .. "\n"):gmatch "(.-)\n" do
    reader.line = reader.line + 1
    reader:read_line(line)
  end
  reader:refuse_stray()
  return reader.jobs, reader.problems
end

return crontab
