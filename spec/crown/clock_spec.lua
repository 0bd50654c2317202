-- crown.testing under a frozen clock.
local crown = require "crown"
local files = require "crown.core.files"
local read_file = require "crown.text.read_file"
local tempdir = require "support.tempdir"
local testing = require "crown.testing"

describe("a frozen clock", function()
  local clock

  before_each(function() clock = testing.fake_clock() end)
  after_each(function() clock:restore() end)

  it("lets eventually wait for what other tasks do", function()
    local done
    crown.spawn(function()
      for _ = 1, 3 do crown.sleep(0) end
      done = true
    end)
    assert.is_true(testing.eventually(function() return done end))
  end)

  it("lets eventually give up in real time", function()
    local before = clock.now()
    local fine, problem = pcall(testing.eventually, function() return false end, 0.05)
    assert.is_false(fine)
    assert.matches("still not true after %S+ s", problem)
    assert.equal(before, clock.now())
  end)

  it("does not hold up a sleep of no time", function()
    crown.sleep(0)
    assert.is_nil((crown.sleep(0)))
  end)

  it("leaves the keepers of commands their own clock, also after it was let go ahead of time", function()
    clock:advance(3600)
    clock:restore()
    local at = crown.now()
    assert.equal("timeout", select(3, crown.exec({ "sleep", "30" }, { timeout = 0.3 })))
    assert.is_true(crown.now() - at < 20)
    clock = testing.fake_clock()
  end)

  it("tells a keeper the kill instant of its child in the keeper's own time", function()
    local path = tempdir() .. "/pid"
    clock:advance(3600)
    clock:restore()
    local election = crown.elect { name = "clock-spec-kill", oracle = { "memory", path = "clock-spec-kill", ttl = 30 },
      stop_timeout = 0.3, child = { "sh", "-c", "trap '' TERM; echo $$ > " .. path .. "; while :; do sleep 0.02; done" } }
    local pid = testing.eventually(function() return (read_file(path) or ""):match "%d+" end, 10)
    election:stop()
    testing.eventually(function() return not files.kind("/proc/" .. pid) end, 10)
    clock = testing.fake_clock()
  end)
end)
