--- Ticks from Lua, in the lines of spec/support/ticker.c: for apps whose handlers are the work.
local crown = require "crown"
local ffi = require "ffi"

ffi.cdef [[
struct timespec_of_ticks { long seconds, nanoseconds; };
int clock_gettime(int clock, struct timespec_of_ticks *now);
int getpid(void);
]]

local CLOCK_BOOTTIME = 7

-- The kernel's clock: the loop's own stands still while a task computes.
local function boottime_ns()
  local now = ffi.new "struct timespec_of_ticks"
  assert(ffi.C.clock_gettime(CLOCK_BOOTTIME, now) == 0)
  return tonumber(now.seconds) * 1e9 + tonumber(now.nanoseconds)
end

local lua_ticker = { boottime_ns = boottime_ns }

--- Makes a function that ticks.
-- @string path of the file that all candidates share
-- @number epoch
function lua_ticker.open(path, epoch)
  local file, life = assert(io.open(path, "a")), boottime_ns()
  file:setvbuf "no" -- a line, a write
  return function()
    assert(file:write(("%d %s %d leader %d %d\n"):format(boottime_ns(), crown.node, epoch, ffi.C.getpid(), life)))
  end
end

return lua_ticker
