--- From the fault to the successor's first tick, and how long two ticked at once: two candidates, a child that ticks each
-- millisecond.
local crown = require "crown"
local probe = require "probe"

local SPIN = [[
local crown = require "crown"
local command = { unpack(arg, 2) }
crown.elect { name = "spec", oracle = "file:" .. arg[1], child = command, handlers = {
  won = function() crown.watch_file(arg[1] .. "/spin", function()
    if crown.node == "one" then (("a"):rep(40)):find(("a?"):rep(40) .. ("a"):rep(40)) end
  end) end } }
]]

local function touch(_, cluster)
  assert(io.open(cluster.dir .. "/locks/spin", "w")):close()
  return crown.now()
end

return function(measure)
  local signal = probe.signal
  local file = probe.rows(measure, function() return { oracle = "file" } end)
  local lease = probe.rows(measure, function() return { oracle = "lease" } end)
  file("file, SIGTERM, beyond the child's last tick", "≤ 25", signal "TERM", true)
  file("file, runtime SIGKILL", "≤ 60", signal("KILL", "runtime"))
  file("file, supervisor, runtime, keeper SIGKILL", "≤ 25", signal("KILL", "supervise", "runtime", "keeper"))
  lease("lease 2 s (no release event), SIGTERM, beyond the child's last tick", "≤ 2000", signal "TERM", true)
  lease("lease 2 s, runtime SIGKILL", "≤ 60", signal("KILL", "runtime"))
  lease("lease 2 s, runtime SIGSTOP", "≤ 2100", signal("STOP", "runtime"))
  lease("lease 2 s, supervisor, runtime, keeper SIGKILL", "≤ 2100", signal("KILL", "supervise", "runtime", "keeper"))
  measure("file, runtime spins in C: until it leads again", "≤ 2100", function()
    return (probe.failover({ oracle = "file", app = SPIN }, touch))
  end, 3)
end
