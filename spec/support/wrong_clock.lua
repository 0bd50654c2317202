--- A wall clock that is wrong, and jumps, for one program and all that it starts.
local ffi = require "ffi"
local tempdir = require "support.tempdir"

local WrongClock = {}
WrongClock.__index = WrongClock

local library = (os.getenv "CROWN_TICKER" or "build/ticker"):gsub("ticker$", "wrong_clock.so")

--- Makes one.
-- @number seconds how far it is ahead
function WrongClock.new(seconds)
  local dir = tempdir()
  local self = setmetatable({ path = dir .. "/clock", library = dir .. "/wrong_clock.so" }, WrongClock)
  assert(os.execute(("install -m 755 %s %s"):format(library, self.library)) == 0) -- a server may be another user's
  self:set(seconds)
  return self
end

--- Makes several that are right.
-- @number count
-- @treturn table
function WrongClock.several(count)
  local clocks = {}
  for i = 1, count do clocks[i] = WrongClock.new(0) end
  return clocks
end

--- Lets it jump.
-- @number seconds how far it is ahead of the right one now
function WrongClock:set(seconds)
  self.seconds = seconds
  local file = assert(io.open(self.path, io.open(self.path) and "r+b" or "wb"))
  file:write(ffi.string(ffi.new("int64_t[1]", seconds * 1e9), 8))
  file:close()
end

--- What a program's environment needs to go by it.
-- @bool[opt] in_go whether it is written in Go
function WrongClock:environment(in_go)
  return { LD_PRELOAD = self.library, WRONG_CLOCK = self.path, WRONG_CLOCK_GO = in_go and "1" or nil }
end

--- Whether the last line of a log was written by this clock.
function WrongClock:has_written(log)
  local hour, minute, second
  for line in log:gmatch "[^\n]+" do
    local h, m, s = line:match "^%S+T(%d%d):(%d%d):(%d%d)%."
    hour, minute, second = h or hour, m or minute, s or second
  end
  if not hour then return false end
  local right = os.date("!*t", os.time() + self.seconds)
  local apart = (right.hour - hour) * 3600 + (right.min - minute) * 60 + right.sec - second
  return math.abs((apart + 43200) % 86400 - 43200) < 600
end

return WrongClock
