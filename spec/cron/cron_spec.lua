-- What an app reads and waits for.
local core = require "crown.core"
local cron = require "crown.cron"
local crown = require "crown"
local testing = require "crown.testing"

describe("crown.cron", function()
  it("says when a job is due next", function()
    local times = cron.read("0 12 * * *", "Asia/Tokyo")
    assert.equal(3 * 3600, times:next(0))
    assert.is_true(times:next() > os.time())
  end)

  for _, case in ipairs {
    { "0 25 * * *", "UTC", "cron.read: '0 25 * * *', column 3: hour 25 is not between 0 and 23" },
    { "0 0 * * * ./job", "UTC", "cron.read: '0 0 * * * ./job', column 11: nothing follows the five fields" },
    { "@daily", "Mars/Base", "cron.read: there is no time zone 'Mars/Base' in /usr/share/zoneinfo" },
    { "@daily", nil, 'cron.read(times, zone): both are texts, such as "15 3 * * *" and "UTC"' },
  } do
    it("refuses " .. case[1] .. " by the clocks of " .. tostring(case[2]), function()
      local fine, problem = pcall(cron.read, case[1], case[2])
      assert.is_false(fine)
      assert.truthy(tostring(problem):find(case[3], 1, true), tostring(problem))
    end)
  end

  it("waits by the wall clock", function()
    local clock, due = testing.fake_clock(), nil
    finally(function() clock:restore() end)
    crown.spawn(function() due = cron.read("*/10 * * * *", "UTC"):wait() end)
    clock:advance(0)
    assert.is_nil(due)
    clock:advance(600)
    assert.equal(0, due % 600)
  end)

  describe("waits where somebody sets the wall clock", function()
    local clock, due, set, task
    local right = core.wall_offset

    before_each(function()
      clock, due, set = testing.fake_clock(), {}, 0
      core.wall_offset = function() return right() + set end -- luacheck: no global
      task = crown.spawn(function()
        local times = cron.read("*/10 * * * *", "UTC")
        for i = 1, 9 do due[i] = times:wait() end
      end)
      clock:advance(600)
    end)

    after_each(function()
      task:cancel()
      core.wall_offset = right -- luacheck: no global
      clock:restore()
    end)

    it("back: no time comes again", function()
      assert.equal(1, #due)
      set = -3600
      clock:advance(3600)
      assert.equal(1, #due)
      clock:advance(600)
      assert.same({ due[1], due[1] + 600 }, due)
    end)

    it("back by more than a day, as where it was wrong: it goes on by what it shows", function()
      set = -30 * 86400
      clock:advance(600)
      assert.equal(2, #due)
      assert.is_true(due[2] < due[1])
    end)

    it("forward, over many times: it is due once, and goes on", function()
      set = 7200
      clock:advance(30)
      assert.same({ due[1], due[1] + 600 }, due)
      clock:advance(600)
      assert.equal(due[1] + 7800, due[3])
    end)
  end)
end)
