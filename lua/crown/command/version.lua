--- Which version the program is, and what it is made of.
-- @module crown.command.version

local build = require "crown.core.build"
local core = require "crown.core"
local output = require "crown.command.output"

local version = {}

-- What is done without, where the kernel or the place does not give it.
local KERNEL = {
  { "real_time", "real-time", "no: margins are wider; RLIMIT_RTPRIO or CAP_SYS_NICE give it" },
  { "locked_memory", "locked memory", "no: a host that swaps is a slower one; RLIMIT_MEMLOCK gives it" },
  { "pidfd", "pidfd", "no: processes are killed by their numbers" },
  { "pid_namespaces", "PID namespaces", "no: isolation 'pidns' is refused" },
}

local function line(name, text)
  output.line(("  %-14s %s"):format(name, text))
end

--- Prints it.
-- @tparam boolean verbose also the compiler, the machine, and each library with its version
-- @treturn number the exit code
function version.run(verbose)
  output.line("crown-lua " .. core.version)
  if not verbose then return 0 end
  line("built by", ("%s, for %s"):format(build.compiler, jit.arch))
  line("LuaJIT", (jit.version:gsub("^LuaJIT ", "")))
  line("lua-cjson", core.json._VERSION)
  for _, library in ipairs(build.libraries()) do
    line(library[1], library[2] or ("not to be had: %s"):format(library[3]))
  end
  local kernel = build.kernel()
  for _, feature in ipairs(KERNEL) do line(feature[2], kernel[feature[1]] and "yes" or feature[3]) end
  return 0
end

return version
