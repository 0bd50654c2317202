-- What a host that starts makes up for, by the marks of a job that is due every ten minutes.
local crontab = require "crown.cron.crontab"
local missed = require "crown.cron.missed"

local TEN = 600 -- seconds

local function mark(slot, tries)
  return { at = 1, took = 1, node = "ann", slot = slot * TEN, tries = tries }
end

-- The slots, in tens of minutes, at the forty-fifth minute.
local function made_up(options, marks)
  local jobs, problems = crontab.read(("#: name=x %s\n*/10 * * * * x\n"):format(options), "UTC")
  assert.same({}, problems)
  local first, latest = missed(jobs[1], marks, 4.5 * TEN)
  return { first and first / TEN, latest and latest / TEN }
end

describe("a host that starts", function()
  for _, case in ipairs {
    { "makes up for nothing of a job that is new", nil, {}, {}, {} },
    { "makes up for nothing where the latest time has succeeded", { done = mark(4), begun = mark(4) }, {}, {}, {} },
    { "makes up for what nobody has begun, as the job says", { done = mark(1), begun = mark(1) }, {}, { 4, 4 }, { 2, 4 } },
    { "begins again what was begun and has not ended, where it is the latest", { done = mark(1), begun = mark(4) }, { 4, 4 }, { 4, 4 },
      { 4, 4 } },
    { "begins again what is older where it is made up for", { done = mark(1), begun = mark(3) }, {}, { 4, 4 }, { 3, 4 } },
    { "tries again what has failed, while that is to be", { begun = mark(4), failed = mark(4, 1) }, { 4, 4 }, { 4, 4 }, { 4, 4 } },
    { "leaves what has failed too often", { begun = mark(4), failed = mark(4, 2) }, {}, {}, {} },
    { "waits where another host's clock is ahead", { done = mark(5), begun = mark(5) }, {}, {}, {} },
    { "makes up for nothing of runs without a slot", { done = { at = 1, node = "ann", took = 1 } }, {}, {}, {} },
  } do
    it(case[1], function()
      for i, kind in ipairs { "no", "once", "each" } do
        assert.same({ kind, case[2 + i] }, { kind, made_up("retries=1 catch-up=" .. kind, case[2]) })
      end
    end)
  end
end)
