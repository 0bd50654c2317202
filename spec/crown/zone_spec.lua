-- Time zones, held against the system's own date(1) at hundreds of instants, also behind the last change that a file lists.
local calendar = require "crown.text.calendar"
local crown = require "crown"
local Zone = require "crown.election.zone"

local FIRST, LAST = 631152000, 4102444800 -- 1990 and 2100
local MANY = 300 -- instants of each zone

-- Whose summer is in the north, in the south, negative (Dublin), of half an hour (Lord_Howe), gone, moved with the moon
-- (Casablanca), or told by one of the rare forms; and none.
local ZONES = { "Europe/Berlin", "Europe/London", "Europe/Dublin", "Europe/Lisbon", "Europe/Moscow", "Europe/Istanbul",
  "America/New_York", "America/Los_Angeles", "America/St_Johns", "America/Sao_Paulo", "America/Nuuk", "America/Santiago",
  "America/Havana", "America/Asuncion", "America/Caracas", "Africa/Casablanca", "Africa/Cairo", "Africa/Lagos",
  "Asia/Kathmandu", "Asia/Kolkata", "Asia/Gaza", "Asia/Jerusalem", "Asia/Beirut", "Asia/Tokyo", "Asia/Tehran",
  "Australia/Sydney", "Australia/Lord_Howe", "Australia/Adelaide", "Pacific/Apia", "Pacific/Auckland", "Pacific/Chatham",
  "Pacific/Kiritimati", "Antarctica/Troll", "Etc/GMT+7", "UTC" }

-- What date(1) says of a zone: by how many seconds its clocks are ahead.
local function by_date(zone, times)
  local lines = {}
  for i, time in ipairs(times) do lines[i] = "@" .. time end
  local result = assert(crown.exec({ "date", "-f", "-", "+%:z" }, { stdin = table.concat(lines, "\n") .. "\n",
    env = { TZ = zone }, timeout = 60 }))
  assert.equal(0, result.code, result.stderr)
  local offsets = {}
  for sign, hours, minutes in result.stdout:gmatch "([+-])(%d%d):(%d%d)\n" do
    offsets[#offsets + 1] = (sign == "-" and -1 or 1) * (hours * 3600 + minutes * 60)
  end
  assert.equal(#times, #offsets)
  return offsets
end

describe("a time zone", function()
  it("says what the system's date says, from 1990 to 2100, also around each change", function()
    math.randomseed(7)
    for _, name in ipairs(ZONES) do
      local zone = assert(Zone.read(name))
      local times = {}
      for i = 1, MANY do times[i] = math.random(FIRST, LAST) end
      for i = 2, MANY do -- each of these is followed by the instants around a change between it and another
        local low, high = math.min(times[i - 1], times[i]), math.max(times[i - 1], times[i])
        local before = zone:offset(low)
        if before ~= zone:offset(high) then
          while high - low > 1 do
            local middle = math.floor((low + high) / 2)
            if zone:offset(middle) == before then low = middle else high = middle end
          end
          times[#times + 1], times[#times + 2] = low, high
        end
      end
      local theirs = by_date(name, times)
      for i, time in ipairs(times) do
        assert.equal(theirs[i], zone:offset(time), ("%s at %.0f"):format(name, time))
      end
    end
  end)

  it("has one instant for a time of day, also where its clocks skip it, or show it twice", function()
    local berlin = assert(Zone.read "Europe/Berlin")
    local function at(...)
      local year, month, day, hour, minute = ...
      return calendar.days(year, month, day) * 86400 + hour * 3600 + minute * 60
    end
    local spring, autumn = at(2027, 3, 28, 1, 0), at(2027, 10, 31, 1, 0) -- UTC
    assert.equal(spring - 1800, berlin:instant(at(2027, 3, 28, 1, 30)))
    assert.equal(spring, berlin:instant(at(2027, 3, 28, 2, 30))) -- skipped
    assert.equal(spring, berlin:instant(at(2027, 3, 28, 3, 0)))
    assert.equal(spring + 1800, berlin:instant(at(2027, 3, 28, 3, 30)))
    assert.equal(autumn - 5400, berlin:instant(at(2027, 10, 31, 1, 30)))
    assert.equal(autumn - 1800, berlin:instant(at(2027, 10, 31, 2, 30))) -- the first of two
    assert.equal(autumn + 3600, berlin:instant(at(2027, 10, 31, 3, 0)))
    for day = 0, 400 do -- on each day of a year, and at each half hour
      for half = 0, 47 do
        local wall = at(2027, 1, 1, 0, 0) + day * 86400 + half * 1800
        local instant = berlin:instant(wall)
        assert.is_true(instant + berlin:offset(instant) >= wall)
        assert.is_true(instant - 1 + berlin:offset(instant - 1) < wall)
      end
    end
  end)

  it("is refused with why, where there is none of the name", function()
    assert.same({ nil, "there is no time zone 'Europe/Berlinn' in /usr/share/zoneinfo" }, { Zone.read "Europe/Berlinn" })
    for _, name in ipairs { "../../etc/passwd", "/etc/localtime", "Europe//Berlin", "a b", "" } do
      assert.same({ nil, ("'%s' is no time zone"):format(name) }, { Zone.read(name) })
    end
    assert.matches("leapseconds is no file of a time zone", select(2, Zone.read "leapseconds"))
  end)
end)
