--- The line of options in front of a job: `#: name=backup timeout=10m retries=3 catch-up=once`.
-- @internal crown.cron.options

local names = require "crown.check.names"
local seconds = require "crown.check.seconds"
local usage = require "crown.check.usage"

local options = {}

local MOST_RETRIES = 100

local read = {}

function read.name(text)
  local problem = names.problem(text)
  if problem then return nil, "name: " .. problem end
  return text
end

function read.timeout(text)
  local value = seconds.read(text)
  if not value then return nil, ("timeout=%s is no time span: write 90s, 10m or 2h"):format(text) end
  return value
end

function read.retries(text)
  local value = text:find "^%d+$" and tonumber(text)
  if not value or value > MOST_RETRIES then return nil, ("retries=%s is no number from 0 to %d"):format(text, MOST_RETRIES) end
  return value
end

local CATCH_UP = { no = "no", once = "once", each = "each", ["0"] = "no", ["1"] = "once" }

function read.catch_up(text)
  local value = CATCH_UP[text]
  if not value then return nil, ("catch-up=%s is none of no, once, each"):format(text) end
  return value
end

function read.overlap(text)
  if text ~= "no" then return nil, "overlap: a job never runs beside itself here; two jobs with two names do" end
  return false
end

function read.output(text)
  if text ~= "keep" and text ~= "log" then return nil, ("output=%s is none of log, keep"):format(text) end
  return text
end

local KNOWN = { "name", "timeout", "retries", "catch-up", "overlap", "output" }

-- One of them, into those that are found. @return what is wrong with it, or nil
local function take(found, word)
  local key, value = word:match "^([^=]+)=(.+)$"
  if not key then return ("'%s' is no option: write NAME=VALUE"):format(word) end
  local field = key:gsub("-", "_")
  if not read[field] then return ("there is no option '%s'%s"):format(key, usage.suggest(key, KNOWN)) end
  if found[field] ~= nil then return ("%s is given twice"):format(key) end
  local problem
  found[field], problem = read[field](value)
  return problem
end

--- Reads a line of options.
-- @string line with its `#:`
-- @treturn table `{ name =, timeout = seconds, retries =, catch_up = "no", "once" or "each", output = "log" or "keep" }`, of
-- those that are as they should be
-- @treturn table an array of what is wrong: `column` in the line, from 1, and `message`
function options.read(line)
  local found, problems = {}, {}
  for at, word in line:sub(3):gmatch "()(%S+)" do
    local problem = take(found, word)
    if problem then problems[#problems + 1] = { column = at + 2, message = problem } end
  end
  return found, problems
end

return options
