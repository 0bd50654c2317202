--- What is left of `crown.core` on a plain LuaJIT: enough for the modules that neither wait nor lead, such as
-- `crown.register.session`, `crown.text.*`, `crown.check.*` and `crown.testing.oracle`. On crown-lua itself its own
-- `crown.core` is found first.
-- @module crown.core

local ffi = require "ffi"

ffi.cdef [[
  struct crown_timespec { long sec, nsec; };
  int clock_gettime(int clock, struct crown_timespec *at);
]]

local CLOCK_BOOTTIME = 7

local core = { json = require "cjson", token = ("plain-%.0f"):format(os.time()) }

--- Seconds of CLOCK_BOOTTIME.
-- @treturn number
function core.now()
  local at = ffi.new "struct crown_timespec"
  assert(ffi.C.clock_gettime(CLOCK_BOOTTIME, at) == 0)
  return tonumber(at.sec) + tonumber(at.nsec) / 1e9
end

--- The log: standard error.
-- @string level
-- @string text
function core.log(level, text)
  io.stderr:write(level, " ", text, "\n")
end

return core
