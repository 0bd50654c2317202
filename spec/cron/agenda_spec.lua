-- Which jobs are due, by a clock that moves as it likes.
local Agenda = require "crown.cron.agenda"
local crontab = require "crown.cron.crontab"

local BEGIN = 1795514700 -- 2026-11-24 10:05:00 UTC
local DAY = 86400

local function jobs_of(text)
  local jobs, problems = crontab.read(text, "UTC")
  assert.same({}, problems)
  return jobs
end

-- What is due at a time, as "NAME first-latest", in seconds from the beginning.
local function taken(agenda, time)
  local words = {}
  for _, one in ipairs(agenda:take(BEGIN + time)) do
    words[#words + 1] = ("%s %d-%d"):format(one.job.name, one.first - BEGIN, one.latest - BEGIN)
  end
  table.sort(words)
  return table.concat(words, ", ")
end

-- How often each job is due, by a clock that goes on by some seconds at a time.
local function counted(text, from, seconds, step)
  local agenda, counts = Agenda.new(jobs_of(text), from), {}
  for time = from + step, from + seconds, step do
    for _, one in ipairs(agenda:take(time)) do
      assert.equal(one.first, one.latest)
      counts[one.job.name] = (counts[one.job.name] or 0) + 1
    end
  end
  return counts
end

describe("an agenda", function()
  local agenda

  before_each(function() agenda = Agenda.new(jobs_of "*/10 * * * * ten\n30 * * * * half\n", BEGIN) end)

  it("tells each time once, and how long nothing is due", function()
    assert.equal("", taken(agenda, 299))
    assert.equal(1, agenda:wait(BEGIN + 299))
    assert.equal("ten 300-300", taken(agenda, 300))
    assert.equal("", taken(agenda, 300))
    assert.equal(5, agenda:wait(BEGIN + 300))
    assert.equal("half 1500-1500, ten 900-1500", taken(agenda, 1500))
  end)

  it("takes a wait that rounding has cut for a whole one", function()
    assert.equal("ten 300-300", taken(agenda, 299.9995))
    assert.equal("", taken(agenda, 300.0001))
  end)

  it("tells all at once that the clock has leapt over", function()
    assert.equal("half 1500-5100, ten 300-7500", taken(agenda, 7555))
    assert.equal("ten 8100-8100", taken(agenda, 8100))
  end)

  it("tells nothing again where the clock is set back", function()
    taken(agenda, 310)
    assert.equal("", taken(agenda, -20 * 3600))
    assert.equal("", taken(agenda, 300))
    assert.equal("ten 900-900", taken(agenda, 900))
  end)

  it("goes by a clock that was wrong by more than a day before, also where that is set back by steps", function()
    taken(agenda, 310)
    assert.equal("", taken(agenda, -20 * 3600))
    assert.equal("", taken(agenda, -40 * 3600))
    assert.equal("ten -143700--143700", taken(agenda, 300 - 40 * 3600))
  end)

  it("leaves no time out and tells none twice, while the clock is set back and forth", function()
    math.randomseed(5)
    local seen, clock, most = {}, 0, 0
    local daily = Agenda.new(jobs_of "0 * * * * hourly\n", BEGIN)
    for _ = 1, 4000 do
      clock = clock + 60 + (math.random(1, 20) == 1 and math.random(-7200, 7200) or 0)
      most = math.max(most, clock)
      for _, one in ipairs(daily:take(BEGIN + clock)) do
        for time = one.first, one.latest, 3600 do
          assert.is_nil(seen[time])
          seen[time] = true
        end
      end
    end
    for time = BEGIN + 3300, BEGIN + most, 3600 do assert.is_true(seen[time], time - BEGIN) end
  end)

  -- A week from the Wednesday before each change.
  for _, case in ipairs {
    { "Europe/Berlin", 1774425600, 1792569600 }, { "America/New_York", 1772611200, 1793174400 },
    { "Australia/Lord_Howe", 1775001600, 1790726400 },
  } do
    it("runs a daily job seven times in the week of each change, in " .. case[1], function()
      local text = ("CRON_TZ=%s\n#: name=night\n30 2 * * * x\n#: name=early\n15 1 * * * x\n#: name=noon\n0 12 * * * x\n"):format(case[1])
      for i = 2, 3 do assert.same({ night = 7, early = 7, noon = 7 }, counted(text, case[i], 7 * DAY, 300)) end
    end)
  end

  it("has room for ten thousand jobs, and finds each one's next time in less than a millisecond", function()
    collectgarbage()
    local before = collectgarbage "count"
    local lines = { "CRON_TZ=Europe/Berlin" }
    math.randomseed(3)
    for i = 1, 10000 do
      lines[#lines + 1] = ("#: name=job-%d retries=2"):format(i)
      lines[#lines + 1] = ("%d %d * * %s /usr/local/bin/work --number %d"):format(math.random(0, 59), math.random(0, 23),
        i % 3 == 0 and "mon-fri" or "*", i)
    end
    local jobs = jobs_of(table.concat(lines, "\n"))
    local many = Agenda.new(jobs, BEGIN)
    collectgarbage()
    assert.is_true(collectgarbage "count" - before < 40 * 1024, collectgarbage "count" - before)
    local began, count = os.clock(), 0
    for hour = 1, 24 do count = count + #many:take(BEGIN + hour * 3600) end
    assert.is_true((os.clock() - began) / count < 0.001, (os.clock() - began) / count)
    assert.is_true(count > 9900)
  end)
end)
