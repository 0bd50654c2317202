--- What the kernel, or the place where the program runs, may refuse, and what is done without it.
-- @internal crown.election.kernel

local build = require "crown.core.build"
local core = require "crown.core"

local kernel = {}

--- Each feature: its key in what `crown.core.build.kernel` returns, its name, and what its lack means.
kernel.FEATURES = {
  { "real_time", "real-time", "margins are wider; RLIMIT_RTPRIO or CAP_SYS_NICE give it" },
  { "locked_memory", "locked memory", "a host that swaps is a slower one; RLIMIT_MEMLOCK gives it" },
  { "pidfd", "pidfd", "processes are killed by their numbers" },
}

local said

--- Logs what is missing, in one line of level debug, when it is called first. Nothing is tried where nobody would read it.
function kernel.say_missing()
  if said then return end
  said = true
  if not core.log_enabled("debug", "no ") then return end
  local given, missing = build.kernel(), {}
  for _, feature in ipairs(kernel.FEATURES) do
    if not given[feature[1]] then missing[#missing + 1] = ("no %s: %s"):format(feature[2], feature[3]) end
  end
  if #missing > 0 then core.log("debug", table.concat(missing, ". ")) end
end

return kernel
