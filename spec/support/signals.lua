--- Signals by name, and sending them to processes that may be gone.
local ffi = require "ffi"

ffi.cdef "int kill(int pid, int signal);"

local signals = { number = { HUP = 1, INT = 2, QUIT = 3, KILL = 9, USR1 = 10, USR2 = 12, ALRM = 14, TERM = 15, CONT = 18, STOP = 19 } }

--- Sends a signal.
-- @number pid of a process, or minus that of a process group
-- @string name such as "KILL"
function signals.send(pid, name)
  local number = assert(signals.number[name], name)
  ffi.C.kill(pid, number)
end

--- Sends a signal to several processes, in their order.
-- @tparam table pids
-- @string name
function signals.send_all(pids, name)
  for _, pid in ipairs(pids) do signals.send(pid, name) end
end

return signals
