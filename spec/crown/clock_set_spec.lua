-- The wall clock is set: a virtual machine that was paused may learn by that alone that time has passed.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local ffi = require "ffi"

ffi.cdef [[
struct crown_timex { unsigned modes; long offset, freq, maxerror, esterror; int status; long constant, precision, tolerance,
  seconds, nanoseconds, tick; char rest[128]; };
int clock_adjtime(int clock, struct crown_timex *change);
]]

local CLOCK_REALTIME, ADJ_SETOFFSET, ADJ_NANO = 0, 0x0100, 0x2000

-- By a nanosecond, which nobody else notices. @return whether this user may
local function set_clock()
  local change = ffi.new("struct crown_timex", { modes = ADJ_SETOFFSET + ADJ_NANO, nanoseconds = 1 })
  return ffi.C.clock_adjtime(CLOCK_REALTIME, change) >= 0
end

local COUNT = 300 -- more than are told in one turn of the loop

describe("a wall clock that is set", function()
  local asked, answered, elections

  local function start(i, answer_takes)
    elections[#elections + 1] = crown.elect { name = "paused-" .. i, oracle = {
      init = function() return {} end,
      claim = function() return true, 3600, { epoch = 1, ttl = 14400 } end,
      refresh = function()
        asked[i] = (asked[i] or 0) + 1
        if answer_takes then crown.sleep(answer_takes) end
        answered = answered + 1
        return true, 3600, { epoch = 1, ttl = 14400 }
      end,
      abdicate = function() end,
      handle_info = function() end,
    } }
  end

  local function all_asked(times)
    for i = 1, COUNT do
      if (asked[i] or 0) < times then return false end
    end
    return true
  end

  before_each(function() asked, answered, elections = {}, 0, {} end)
  after_each(function()
    for _, one in ipairs(elections) do one:stop() end
    eventually(function()
      for _, one in ipairs(elections) do
        if not one.handle:finished() then return false end
      end
      return true
    end)
  end)

  local function all_lead()
    for _, one in ipairs(elections) do
      if not one:is_leader() then return false end
    end
    return true
  end

  it("has every leader ask its store at once, each time", function()
    for i = 1, COUNT do start(i) end
    eventually(all_lead)
    if not set_clock() then return pending "this user may not set the clock" end
    eventually(function() return all_asked(1) end)
    assert.is_true(set_clock())
    eventually(function() return all_asked(2) end)
  end)

  it("lets the store answer, however often it is set", function()
    start(COUNT + 1, 0.1)
    eventually(all_lead)
    if not set_clock() then return pending "this user may not set the clock" end
    eventually(function()
      assert.is_true(set_clock())
      return answered >= 2
    end)
  end)
end)
