-- What is known of a job by its marks.
local calendar = require "crown.text.calendar"
local cells = require "crown.cron.cells"
local view = require "crown.cron.view"
local Schedule = require "crown.cron.schedule"
local Zone = require "crown.election.zone"

local HOUR, DAY = 3600, 86400
local NOON = calendar.days(2026, 5, 4) * DAY + 12 * HOUR
local THREE = NOON - 9 * HOUR -- when a daily job was due, by UTC
local PLAN = { times = "0 3 * * *", zone = "UTC" }

local function at(slot, more)
  local one = { at = slot, node = "ann", slot = slot, took = 41 }
  for name, value in pairs(more or {}) do one[name] = value end
  return one
end

local function election(marks, more)
  local one = { name = "nightly", runs = marks }
  for name, value in pairs(more or {}) do one[name] = value end
  return one
end

describe("what is known of a job", function()
  it("is nothing where no run is marked", function()
    assert.is_nil(view.of(election(nil), NOON))
    assert.is_nil(view.of(election { plan = PLAN }, NOON))
    assert.same({}, view.all({ election(nil) }, NOON))
  end)

  it("is its last run, when it is due, and how often it has failed since it succeeded", function()
    local one = view.of(election { done = at(THREE), begun = at(THREE), plan = PLAN }, NOON)
    assert.same({ at = THREE, node = "ann", took = 41, slot = THREE, code = 0, fine = true }, one.last)
    assert.same({ THREE + DAY, 0, "0 3 * * *", "UTC" }, { one.next, one.failed, one.times, one.zone })
    assert.same({}, { one.overdue, one.running, one.paused, one.held })
    one = view.of(election { done = at(THREE - DAY), failed = at(THREE, { count = 3, code = 7 }), plan = PLAN }, NOON)
    assert.same({ 3, 7, false, THREE - DAY }, { one.failed, one.last.code, one.last.fine, one.succeeded.at })
  end)

  it("is which host is preferred, where one is", function()
    local marks = { done = at(THREE), plan = PLAN }
    assert.is_nil(view.of(election(marks), NOON).preferred)
    marks.prefers = { level = 10, node = "ann" }
    local one = view.of(election(marks), NOON)
    assert.same({ node = "ann", level = 10 }, one.preferred)
    assert.equal("left to ann first, of preference 10", cells.of(one, NOON)[8])
    marks.prefers.level = -1
    assert.is_nil(view.of(election(marks), NOON).preferred)
  end)

  it("is of a run without a plan until when nobody begins it", function()
    local one = view.of(election { done = { at = NOON - 60, took = 1, node = "bob", ["until"] = NOON + HOUR } }, NOON)
    assert.same({ NOON + HOUR }, { one.held, one.next, one.overdue })
    assert.is_nil(view.of(election { done = { at = NOON - 60, took = 1, node = "bob", ["until"] = NOON } }, NOON).held)
    local begun = election { begun = { at = NOON - 60, node = "bob", ["until"] = NOON + 3 * HOUR } }
    assert.equal(NOON + 3 * HOUR, view.of(begun, NOON).held)
    assert.matches("^not before ", cells.of(view.of(begun, NOON), NOON)[7])
    begun.runs.plan = { times = "0 * * * *", zone = "Etc/UTC" }
    assert.matches("^not before ", cells.of(view.of(begun, NOON), NOON)[8])
  end)

  it("is since when it is overdue: due for a minute, not done, not running and not paused", function()
    local marks = { done = at(THREE - DAY), plan = PLAN }
    assert.equal(THREE, view.of(election(marks), NOON).overdue)
    assert.equal(THREE, view.of(election(marks), THREE + 60).overdue)
    assert.is_nil(view.of(election(marks), THREE + 59).overdue)
    assert.is_nil(view.of(election(marks, { orders = { pause = true } }), NOON).overdue)
    assert.matches("^paused", view.of(election(marks, { orders = { pause = true } }), NOON).paused)
    marks.begun = at(THREE)
    assert.equal(THREE, view.of(election(marks), NOON).overdue)
    local runs = election(marks, { node = "ann" })
    assert.same({ nil, { at = THREE, node = "ann", slot = THREE } }, { view.of(runs, NOON).overdue, view.of(runs, NOON).running })
    assert.equal(THREE, view.of(election(marks, { node = "ann", over = true }), NOON).overdue)
    assert.equal(THREE, view.of(election { failed = at(THREE, { code = 1 }), begun = at(THREE), plan = PLAN }, NOON).overdue)
    assert.is_nil(view.of(election { done = at(NOON + 9 * DAY), plan = PLAN }, NOON).overdue)
  end)

  it("is by the file where there is one, also of a job that has never run", function()
    local job = { name = "nightly", times = "0 * * * *", zone = "UTC", schedule = (Schedule.read("0 * * * *", Zone.read "UTC")),
      since = NOON - 10 }
    local one = view.all({}, NOON + 61, { job })[1]
    assert.same({ NOON, NOON + HOUR, 0 }, { one.overdue, one.next, one.failed })
    job.since = NOON + 1
    assert.is_nil(view.all({}, NOON + 61, { job })[1].overdue)
    local marks = { done = at(NOON - 2 * HOUR), plan = { times = "0 * * * *", zone = "UTC" } }
    assert.equal(NOON - HOUR, view.of(election(marks), NOON + 61, job).overdue)
    marks.plan = PLAN -- when the times were others
    assert.is_nil(view.of(election(marks), NOON + 61, job).overdue)
  end)

  it("is shown by the clocks of its zone", function()
    assert.equal("2026-05-04 14:00:00 +0200", view.instant(NOON, "Europe/Berlin"))
    assert.equal("2026-05-04 09:30:00 -0230", view.instant(NOON, "America/St_Johns"))
    assert.matches("^2026%-05%-0%d %d%d:00:00 [+-]%d%d%d%d$", view.instant(NOON))
  end)
end)
