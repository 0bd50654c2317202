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

--- Reads a line of options.
-- @string line with its `#:`
-- @treturn table `{ name =, timeout = seconds, retries =, catch_up = "no", "once" or "each", output = "log" or "keep" }`;
-- nil where it is none
-- @treturn string what is wrong
-- @treturn number where in the line that stands, from 1
function options.read(line)
  local found = {}
  for at, word in line:sub(3):gmatch "()(%S+)" do
    local key, value = word:match "^([^=]+)=(.+)$"
    local one = key and read[key:gsub("-", "_")]
    if not key then return nil, ("'%s' is no option: write NAME=VALUE"):format(word), at + 2 end
    if not one then return nil, ("there is no option '%s'%s"):format(key, usage.suggest(key, KNOWN)), at + 2 end
    local problem
    found[key:gsub("-", "_")], problem = one(value)
    if problem then return nil, problem, at + 2 end
  end
  return found
end

return options
