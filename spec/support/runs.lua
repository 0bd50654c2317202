--- Candidates of `crown-lua run` on one oracle, for a test of it.
local Candidate = require "support.candidate"
local eventually = require("crown.testing").eventually
local run = require "support.run"
local tempdir = require "support.tempdir"
local write_file = require "support.write_file"

local Runs = {}
Runs.__index = Runs

--- A script as one writes it for the signals.
Runs.TRAPS = [[
#!/bin/bash
LEADER=0
function won() {
  echo "Election won"; LEADER=1
}
function lost() {
  echo "Election lost"; LEADER=0
}
function int() {
  echo "Got interrupt signal"; exit
}
trap won USR1
trap lost USR2
trap int INT
while true
do
  if [ $LEADER == 1 ]
  then
    echo "Doing work...."
  fi
  sleep 0.1
done
]]

--- Writes a script that can be executed.
-- @treturn string its path
function Runs.script(text)
  local path = write_file(tempdir() .. "/script", text)
  assert(os.execute("chmod +x " .. path) == 0)
  return path
end

--- Waits until a candidate, or its command, says something.
function Runs.says(one, pattern, seconds)
  local fine = pcall(eventually, function() return one:output():find(pattern) end, seconds or 10)
  assert(fine, ("'%s' was not said:\n%s"):format(pattern, one:output()))
end

--- How often it was said.
function Runs.count(one, pattern)
  return select(2, one:output():gsub(pattern, ""))
end

--- Those of one test, on a new file oracle: `oracle`.
function Runs.new()
  return setmetatable({ oracle = "file:" .. tempdir(), started = {} }, Runs)
end

--- Ends something with the others.
function Runs:keep(one)
  self.started[#self.started + 1] = one
  return one
end

--- Starts a candidate.
function Runs:start(node, ...)
  return self:keep(Candidate.start { args = { "run", "--oracle", self.oracle, ... }, node = node, log = tempdir() .. "/log" })
end

--- Runs one to its end.
function Runs:finish(...)
  return run { "run", "--oracle", self.oracle, ... }
end

function Runs:destroy()
  for _, one in ipairs(self.started) do one:destroy() end
end

return Runs
