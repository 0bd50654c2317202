--- An election whose candidates are real processes, and an operator who gives them orders.
local assert = require "luassert"
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local run = require "support.run"
local tempdir = require "support.tempdir"

local Election = {}
Election.__index = Election

local serial = 0

--- @string url of the store
-- @string dir of the candidates' sockets
-- @tparam[opt] table env more of the environment of all that it runs
-- @treturn Election with a `name` of its own
function Election.new(url, dir, env)
  serial = serial + 1
  return setmetatable({ url = url, dir = dir, env = env or {}, name = "job-" .. serial, started = {} }, Election)
end

local function environment(self, more)
  for key, value in pairs(self.env) do more[key] = value end
  return more
end

Election.SOON = 30 -- seconds, on a busy machine

--- Starts a candidate.
-- @string node
-- @param ... words of its command line; without any it runs a command
function Election:start(node, ...)
  local args = { "--log-level", "info", ... }
  if select("#", ...) == 0 then args = { "run", "--oracle", self.url, "--log-level", "info", self.name, "sleep", "600" } end
  local one = Candidate.start { args = args, node = node, log = tempdir() .. "/log",
    env = environment(self, { CROWN_DIRECTORY = self.dir }) }
  self.started[#self.started + 1] = one
  return one
end

-- What all of them have said, without the denials that a follower hears again and again.
local function said(self)
  local all = {}
  for i, one in ipairs(self.started) do all[i] = one.node .. "\n" .. one:output():gsub("[^\n]*leadership.rejected[^\n]*\n", "") end
  return table.concat(all, "\n")
end

local function await(self, is_so)
  assert(pcall(eventually, is_so, Election.SOON), said(self))
end

--- How many children of some candidates run.
function Election.count(_, ...)
  local sum = 0
  for _, one in ipairs { ... } do sum = sum + #one:pids "child" end
  return sum
end

--- Waits until a candidate leads.
function Election:leads(one)
  await(self, function() return self:count(one) == 1 end)
end

--- Waits until just one of some candidates leads.
function Election:is_led_by_one_of(...)
  local some = { ... }
  await(self, function() return self:count(unpack(some)) == 1 end)
end

--- Waits until a candidate has said something.
function Election:says(one, pattern)
  await(self, function() return one:output():find(pattern) end)
end

--- Starts a candidate that leads.
function Election:leader(node)
  local one = self:start(node)
  self:leads(one)
  return one
end

--- Starts a candidate that follows.
function Election:follower(node)
  local one = self:start(node)
  await(self, function() return one:is_told() end)
  return one
end

--- Runs a verb of the operator's.
-- @number[opt] code that it has to exit with
-- @param ... words
-- @treturn string what it says
function Election:command(code, ...)
  local words = { ... }
  for i, word in ipairs(words) do words[i] = tostring(word) end
  local result = run(words, { env = environment(self, { CROWN_DIRECTORY = self.dir, CROWN_ORACLE = self.url, USER = "ann",
    SUDO_USER = "" }) })
  if code then assert.same({ code, result.stderr }, { result.code, code == 0 and "" or result.stderr }) end
  return result.stdout .. result.stderr
end

--- Ends all candidates.
function Election:destroy()
  for _, one in ipairs(self.started) do one:destroy() end
end

return Election
