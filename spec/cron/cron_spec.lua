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

  describe("waits", function()
    local BEGIN = 1795514700 -- 2026-11-24 10:05:00
    local clock, due, set, task, times
    local real = core.wall_offset

    before_each(function()
      clock, due, set = testing.fake_clock(), {}, 0
      local first = BEGIN - core.now()
      core.wall_offset = function() return first + set end -- luacheck: no global
      times = cron.read("*/10 * * * *", "UTC")
      task = crown.spawn(function()
        for i = 1, 9 do
          local time, problem = times:wait()
          due[i] = problem or time - BEGIN
        end
      end)
      clock:advance(0)
    end)

    after_each(function()
      task:cancel()
      clock:advance(0)
      clock:restore()
      core.wall_offset = real -- luacheck: no global
    end)

    it("by the wall clock", function()
      clock:advance(299)
      assert.same({}, due)
      clock:advance(1)
      assert.same({ 300 }, due)
      clock:advance(1200)
      assert.same({ 300, 900, 1500 }, due)
    end)

    it("until its task is cancelled", function()
      task:cancel()
      clock:advance(0)
      assert.equal("cancelled", due[1])
    end)

    it("where the clock is set back, until it shows a time that was not there before", function()
      clock:advance(300)
      set = -3600
      clock:advance(3600)
      assert.same({ 300 }, due)
      clock:advance(600)
      assert.same({ 300, 900 }, due)
    end)

    it("where it is set back between two waits, for the same", function()
      task:cancel()
      clock:advance(0)
      due = {}
      crown.spawn(function()
        due[1] = times:wait() - BEGIN
        set = -3600
        due[2] = times:wait() - BEGIN
      end)
      clock:advance(300 + 3599)
      assert.same({ 300 }, due)
      clock:advance(601)
      assert.same({ 300, 900 }, due)
    end)

    it("where it was wrong by more than a day, by what it shows", function()
      clock:advance(300)
      set = -30 * 86400
      clock:advance(600)
      assert.same({ 300, 900 - 30 * 86400 }, due)
    end)

    it("once, where it is set forward over many times", function()
      set = 7200
      clock:advance(30)
      assert.same({ 300 }, due)
      clock:advance(600)
      assert.same({ 300, 7500 }, due)
    end)
  end)
end)
