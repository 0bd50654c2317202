-- The hours of a candidate: when they are open by the clocks of a place, on each day and over both changes of the clocks.
local calendar = require "crown.text.calendar"
local crown = require "crown"
local Elections = require "support.elections"
local testing = require "crown.testing"
local window = require "crown.election.window"

local function utc(year, month, day, hour, minute)
  return calendar.days(year, month, day) * 86400 + hour * 3600 + minute * 60
end

local function read(...)
  local list = {}
  for i, text in ipairs { ... } do list[i] = assert(window.read(text)) end
  return list
end

-- From when to when windows are open within some days, in minutes since then.
local function spans(list, from, days)
  local found, time, open_since = {}, from, nil
  while time < from + days * 86400 do
    local open, soonest = window.look(list, time)
    local minute = (time - from) / 60
    if open and not open_since then open_since = minute end
    if not open and open_since then
      found[#found + 1] = ("%d-%d"):format(open_since, minute)
      open_since = nil
    end
    assert.is_true(soonest > time)
    time = soonest
  end
  if open_since then found[#found + 1] = ("%d-"):format(open_since) end
  return table.concat(found, " ")
end

local MONDAY = utc(2027, 1, 4, 0, 0)
local SPRING, AUTUMN = utc(2027, 3, 28, 0, 0), utc(2027, 10, 31, 0, 0) -- Sundays; Berlin's clocks change at 1:00 UTC

describe("hours", function()
  it("are open on their days, from the one time to the other", function()
    for text, expected in pairs {
      ["Mon-Fri 08:00-18:00 UTC"] = "480-1080 1920-2520 3360-3960 4800-5400 6240-6840",
      ["mon,WED 8:00-9:30 UTC"] = "480-570 3360-3450",
      ["Sat-Mon 00:00-24:00 UTC"] = "0-1440 7200-",
      ["Fri 22:00-06:00 UTC"] = "7080-7560",
      ["Sun 23:00-01:00 UTC"] = "0-60 10020-",
      ["12:00-13:00 UTC"] = "720-780 2160-2220 3600-3660 5040-5100 6480-6540 7920-7980 9360-9420",
      ["Mon 08:00-18:00 America/New_York"] = "780-1380",
    } do
      assert.equal(expected, spans(read(text), MONDAY, 7), text)
    end
  end)

  it("are several together: one that is open is enough", function()
    assert.equal("480-1080 7200-7320", spans(read("Mon 08:00-12:00 UTC", "Mon 11:00-18:00 UTC", "Sat 00:00-02:00 UTC"), MONDAY, 7))
  end)

  it("go by the clocks of their place, also when these are put forward", function()
    for text, expected in pairs { -- in minutes since 0:00 UTC; the clocks go from 2:00 to 3:00 after 60
      ["Sun 08:00-10:00 Europe/Berlin"] = "360-480",
      ["Sun 01:30-03:30 Europe/Berlin"] = "30-90",
      ["Sun 02:30-04:00 Europe/Berlin"] = "60-120", -- its beginning is skipped
      ["Sun 01:30-02:30 Europe/Berlin"] = "30-60", -- its end is
      ["Sun 02:10-02:50 Europe/Berlin"] = "", -- all of it is
      ["Sun 01:00-24:00 Europe/Berlin"] = "0-1320",
    } do
      assert.equal(expected, spans(read(text), SPRING, 1), text)
    end
    assert.equal("420-540", spans(read "Sun 08:00-10:00 Europe/Berlin", SPRING - 7 * 86400, 1))
  end)

  it("and put back: a time that comes twice counts as it comes first", function()
    for text, expected in pairs { -- the clocks go from 3:00 to 2:00 after 60
      ["Sun 08:00-10:00 Europe/Berlin"] = "420-540",
      ["Sun 02:15-02:45 Europe/Berlin"] = "15-45",
      ["Sun 02:30-03:30 Europe/Berlin"] = "30-150", -- an hour longer
      ["Sun 02:00-03:00 Europe/Berlin"] = "0-120",
    } do
      assert.equal(expected, spans(read(text), AUTUMN, 1), text)
    end
  end)

  it("are refused with why, where they are none", function()
    for text, why in pairs {
      ["08:00-18:00"] = "a window is DAYS FROM-TO ZONE, as in 'Mon-Fri 08:00-18:00 Europe/Berlin'",
      ["Mon-Fry 08:00-18:00 UTC"] = "the days 'Mon-Fry' are not like Mon-Fri or Sat,Sun",
      ["Mon 08:00-18:00"] = "its zone is missing: a window is DAYS FROM-TO ZONE, as in 'Mon-Fri 08:00-18:00 Europe/Berlin'",
      ["Mon 8-18 UTC"] = "the hours '8-18' are not like 08:00-18:00",
      ["Mon 08:00-24:01 UTC"] = "the hours '08:00-24:01' are not like 08:00-18:00",
      ["Mon 08:61-10:00 UTC"] = "the hours '08:61-10:00' are not like 08:00-18:00",
      ["Mon 08:00-08:00 UTC"] = "the hours '08:00-08:00' hold no time",
      ["Mon 08:00-10:00 Europe/Berlinn"] = "there is no time zone 'Europe/Berlinn' in /usr/share/zoneinfo",
    } do
      assert.same({ nil, ("'%s': %s"):format(text, why) }, { window.read(text) })
    end
    for _, given in ipairs { {}, { 5 }, "Mon" } do
      local fine, problem = pcall(crown.elect, { name = Elections.unique(), window = given })
      assert.is_false(fine)
      assert.matches("elect '[^']*': window: .*a window is DAYS FROM%-TO ZONE", problem.message)
    end
  end)

  describe("of a candidate", function()
    local mine, clock = Elections.new(), nil

    after_each(function()
      mine:stop()
      clock:restore()
    end)

    it("let it claim when they open, and step down when they close, each day", function()
      local fake, lost = testing.fake_oracle(), {}
      fake:grant(3600, { ttl = 3600 * 48 })
      local hours = os.date("!%H:%M", os.time() + 600) .. "-" .. os.date("!%H:%M", os.time() + 1800)
      clock = testing.fake_clock()
      local election = mine:elect { node = "self", oracle = fake, window = hours .. " UTC",
        handlers = { lost = function(reason) lost[#lost + 1] = reason end } }
      clock:advance(1)
      for day = 1, 2 do
        assert.equal(day - 1, fake:count "claim")
        local barred = election:status().barred
        assert.same({ 1, "window", ("outside of %s UTC"):format(hours) }, { #barred, barred[1].reason, barred[1].why })
        clock:advance(900)
        assert.is_true(election:is_leader())
        assert.is_nil(election:status().barred)
        clock:advance(1200)
        assert.is_false(election:is_leader())
        assert.equal(day, #lost)
        assert.equal("window", lost[day])
        clock:advance(86400 - 2100)
      end
    end)
  end)
end)
