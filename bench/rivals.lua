--- How peers are put to the same test.
local Candidate = require "support.candidate"
local crown = require "crown"
local ticks = require "support.ticks"

local rivals = {}

--- Whether a program is on the machine.
function rivals.have(program)
  local result = crown.exec { "sh", "-c", "command -v " .. program }
  return result and result.code == 0
end

--- Two holders with a ticking child each. The first one's own process is killed, not its child: what a crash of the tool
-- does. They are started as they are: under crown-lua the child would die with its holder.
-- @string dir for their files
-- @string program
-- @tparam function arguments makes them of the ticks' file
-- @treturn number milliseconds to the second one's first tick
-- @treturn number milliseconds in which two ticked
function rivals.takeover(dir, program, arguments)
  local file = ("%s/ticks-%.6f"):format(dir, crown.now())
  local members = {}
  for i, node in ipairs { "one", "two" } do
    members[i] = Candidate.start { program = program, args = arguments(file), node = node, log = dir .. "/log",
      env = { CROWN_EPOCH = tostring(i), CROWN_ROLE = "leader" } }
    if i == 1 then ticks.await(file, 0, 10) end
  end
  crown.sleep(0.3)
  local at = members[1]:signal "KILL"
  local fine, term = pcall(ticks.await, file, 1, 10)
  crown.sleep(0.5)
  local overlap = ticks.overlap(file)
  crown.exec { "pkill", "-KILL", "-f", file }
  for _, member in ipairs(members) do member:destroy() end
  return fine and (term.first - at) * 1000 or math.huge, overlap * 1000
end

return rivals
