-- What the specs beside this one say of a program that was held up, and of one on a machine that stood still.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local program = require "support.program"
local signals = require "support.signals"
local Victim = require "support.victim"

describe("a program that refreshes late", function()
  local victim

  -- Stops some processes for longer than a refresh may be late, less what the machine itself stood still meanwhile; the runtime may
  -- be silent for longer.
  local function stop(pids)
    local at = crown.now()
    signals.send_all(pids, "STOP")
    eventually(function() return crown.now() - at - victim.still:seconds(at) > 3 end, 30)
    signals.send_all(pids, "CONT")
    eventually(function() return victim:output():find "LATE" end, 10)
  end

  before_each(function()
    victim = Victim.start({}, { program, "--heartbeat", "60" })
    eventually(function() return victim:output():find "REFRESHED" end)
  end)

  it("is found where the machine went on", function()
    stop(victim.app:pids "runtime")
    local fine, problem = pcall(victim.finish, victim)
    victim.still:destroy()
    assert.is_false(fine)
    assert.matches("LATE %d", tostring(problem))
  end)

  it("is no fault where all of the machine stood still", function()
    stop { victim.app:pids("runtime")[1], victim.still.process.pid }
    eventually(function() return victim.still:seconds() > 2.9 end)
    victim:finish()
  end)
end)
