-- Dates and days are what the C library says they are.
local calendar = require "crown.text.calendar"

describe("the calendar", function()
  it("knows the date of each day, over all kinds of years", function()
    for day = calendar.days(1896, 1, 1), calendar.days(2104, 12, 31), 3 do
      local date = os.date("!*t", day * 86400)
      local year, month, of_its_month = calendar.date(day)
      if date.year ~= year or date.month ~= month or date.day ~= of_its_month then
        error(("day %d is %d-%d-%d, not %d-%d-%d"):format(day, date.year, date.month, date.day, year, month, of_its_month))
      end
      assert(calendar.days(year, month, of_its_month) == day, day)
    end
  end)

  it("knows the ends of years and of Februaries", function()
    assert.same({ 2000, 2, 29 }, { calendar.date(calendar.days(2000, 2, 29)) })
    assert.same({ 2100, 3, 1 }, { calendar.date(calendar.days(2100, 2, 28) + 1) })
    assert.same({ 1999, 12, 31 }, { calendar.date(calendar.days(2000, 1, 1) - 1) })
    assert.same({ 1970, 1, 1 }, { calendar.date(0) })
  end)
end)
