--- Holds a process up as a debugger does: SIGCONT does not wake it, and SIGKILL ends it.
local eventually = require "crown.testing.eventually"
local ffi = require "ffi"

ffi.cdef [[
long ptrace(int request, int pid, void *address, void *data);
int waitpid(int pid, int *status, int options);
]]

local PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
local WNOHANG, WALL = 1, 0x40000000

--- @number pid of one of our descendants; a thread of its own it has not
-- @treturn function whether it is dead: to be called until it is, since its parent learns it only then
return function(pid)
  local status = ffi.new "int[1]"
  local function changed() return ffi.C.waitpid(pid, status, bit.bor(WNOHANG, WALL)) == pid end
  assert(ffi.C.ptrace(PTRACE_SEIZE, pid, nil, nil) == 0, "it may not be traced")
  assert(ffi.C.ptrace(PTRACE_INTERRUPT, pid, nil, nil) == 0)
  eventually(changed, 5)
  return function() return changed() and bit.band(status[0], 0xff) ~= 0x7f end -- 0x7f: stopped
end
