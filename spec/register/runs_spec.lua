-- Marks of runs: what they say, what the rule makes of them, and what candidates of a store that is played by hand write.
local modules = require "support.register_modules"()
local record, rule, runs = modules.record, modules.rule, modules.runs
local world = require "support.played_register"

local NOW = 1000 -- seconds since 1970

local function job(options) return runs.job(options) end

describe("a mark of a run", function()
  it("that succeeded bars who asks for its period, until that is over, and nobody else", function()
    local done = { at = 900, took = 50, node = "ann", ["until"] = 1050 } -- a period of 100 s
    local cases = {
      { { done_for = 100 }, NOW, true }, { { done_for = 49 }, NOW, false }, { { done_for = 100 }, 1049.9, true },
      { { done_for = 100 }, 1050, false }, { { at_least = 100 }, NOW, false }, { { elsewhere = true }, NOW, false },
      { nil, NOW, false },
      { { done_for = 100 }, 850, true }, -- a clock that is behind by less than the period
      { { done_for = 100 }, 849, false }, -- by more: one of the two is wrong by far, and the run must come
    }
    for i = 1, 9 do
      local options, time, is_barred = unpack(cases[i], 1, 3)
      assert.same({ i, is_barred }, { i, runs.ran({ done = done }, options and job(options), time) == done })
    end
  end)

  it("that succeeded for a slot bars that one, and those before it", function()
    local marks = { done = { at = 900, took = 50, node = "ann", slot = 900 } }
    assert.truthy(runs.ran(marks, job { slot = 900 }, NOW))
    assert.truthy(runs.ran(marks, job { slot = 899 }, NOW))
    assert.is_nil(runs.ran(marks, job { slot = 901 }, NOW))
    assert.truthy(runs.ran(marks, job { done_for = 3600 }, NOW))
    assert.is_nil(runs.ran(marks, job { done_for = 40 }, NOW))
  end)

  it("of a slot bars it when that has failed too often, and what is older when a later one was begun", function()
    local marks = { failed = { at = 990, node = "ann", slot = 960, code = 1, count = 9, tries = 2 } }
    for _, case in ipairs {
      { { slot = 960, retries = 1 }, true }, { { slot = 960, retries = 2 }, false }, { { slot = 960 }, false },
      { { slot = 900, retries = 5 }, true }, { { slot = 1020, retries = 0 }, false }, { { retries = 0 }, false },
    } do
      assert.same({ case[1], case[2] }, { case[1], runs.ran(marks, job(case[1]), NOW) == marks.failed })
    end
    local begun = { begun = { at = 990, node = "ann", slot = 960 } }
    assert.matches("^a later run was begun on ann at [%d:]+ [+-]%d%d%d%d$", (select(3, runs.ran(begun, job { slot = 900 }, NOW))))
    assert.is_nil(runs.ran(begun, job { slot = 960 }, NOW))
    assert.is_nil(runs.wait(begun, job { slot = 960 }, "bob", 0, NOW))
  end)

  it("of a slot that is more than a quarter of an hour ahead bars nothing, as of a clock that was wrong", function()
    local function ran(slot, time)
      return runs.ran({ done = { at = 1, took = 1, node = "ann", slot = slot } }, job { slot = 960 }, time) ~= nil
    end
    assert.same({ true, false }, { ran(NOW + 900, NOW), ran(NOW + 901, NOW) })
    assert.is_true(ran(960 + 900, 0)) -- what counts for a host whose clock is far behind is the slot
  end)

  it("of a slot tells which are over, and which one was begun and has not ended", function()
    local function slots(marks, retries) return { runs.slots(marks, retries, NOW) } end
    local function at(slot, more)
      local one = { at = 1, node = "ann", slot = slot }
      for name, value in pairs(more or {}) do one[name] = value end
      return one
    end
    assert.same({}, slots(nil, 0))
    assert.same({}, slots({ done = { at = 1, node = "ann" } }, 0))
    assert.same({ 900 }, slots({ done = at(900), begun = at(900) }, 0))
    assert.same({ 900, 960 }, slots({ done = at(900), begun = at(960) }, 0))
    assert.same({ 900, 960 }, slots({ done = at(900), begun = at(960), failed = at(960, { tries = 1 }) }, 1))
    assert.same({ 960 }, slots({ done = at(900), begun = at(960), failed = at(960, { tries = 2 }) }, 1))
    assert.same({ 900 }, slots({ done = at(900), begun = at(1e9) }, 0))
  end)

  it("of a slot counts how often that one has failed, and stays where its claim was given back", function()
    local one = job { slot = 960 }
    local marks = runs.claimed(nil, one, "ann", NOW)
    assert.same({ begun = { at = NOW, node = "ann", slot = 960 } }, marks)
    assert.same(marks, runs.after(marks, one, "ann"))
    one.started, one.result = true, { at = NOW, took = 1, code = 1 }
    marks = runs.after(runs.after(marks, one, "ann"), one, "bob")
    assert.same({ at = NOW, took = 1, count = 2, tries = 2, node = "bob", code = 1, slot = 960 }, marks.failed)
    assert.is_nil(runs.plan(marks))
    local plan = { times = "* * * * *", zone = "UTC" }
    local planned = runs.claimed(marks, job { slot = 960, plan = plan }, "ann", NOW)
    assert.same({ plan, plan }, { runs.plan(planned), runs.plan(runs.claimed(planned, job { at_least = 1 }, "bob", NOW)) })
    assert.same({}, { runs.plan { plan = { times = 1, zone = "UTC" } }, runs.plan { plan = 3 }, runs.plan(7) })
    one.slot = 1020
    assert.same({ at = NOW, took = 1, count = 3, tries = 1, node = "bob", code = 1, slot = 1020 }, runs.after(marks, one, "bob").failed)
  end)

  it("that has begun bars everybody for its time, and one of a clock far ahead nobody", function()
    local marks = { begun = { at = 990, ["until"] = 1050, node = "ann" } }
    assert.same({ 50, false }, { runs.wait(marks, nil, "bob", 0, NOW), (select(3, runs.wait(marks, nil, "bob", 0, NOW))) })
    assert.matches("^held until %d+:%d+:%d+ [+-]%d%d%d%d, as ann began it at %d+:%d+:%d+ [+-]%d%d%d%d$",
      (select(2, runs.wait(marks, nil, "bob", 0, NOW))))
    assert.is_nil(runs.wait(marks, nil, "bob", 0, 1050))
    assert.is_nil(runs.wait({ begun = { at = 1e9, ["until"] = 1e9 + 60, node = "ann" } }, nil, "bob", 0, NOW))
  end)

  it("that failed leaves the others the first turn, on its host, where that is asked for", function()
    local marks = { failed = { at = 990, node = "ann", code = 3, count = 2 } }
    local wait, why, defers = runs.wait(marks, job { elsewhere = true }, "ann", 2, NOW)
    assert.same({ 3, true }, { wait, defers })
    assert.matches("^failed 2 times, last on ann at [%d:]+ [+-]%d%d%d%d: exit code 3$", why)
    assert.is_nil(runs.wait(marks, job { elsewhere = true }, "ann", 5, NOW))
    assert.is_nil(runs.wait(marks, job { elsewhere = true }, "bob", 0, NOW))
    assert.is_nil(runs.wait(marks, job { done_for = 5 }, "ann", 0, NOW))
  end)

  it("is told in words, with the day where that is another one", function()
    local noon = os.time { year = 2026, month = 5, day = 4, hour = 12 }
    local marks = { done = { at = noon, took = 41.2, node = "ann" }, failed = { at = noon, node = "bob", signal = 9 },
      begun = { at = noon, ["until"] = noon + 60, node = "bob" } }
    local zone = os.date(" %z", noon) -- a reader may be elsewhere
    local function zoned(text) return (text:gsub(":%d%d:%d%d", "%0" .. zone)) end
    assert.equal(zoned "ran on ann at 12:00:00, took 41 s; failed on bob at 12:00:00: signal 9; held until 12:01:00, as bob began "
      .. zoned "it at 12:00:00", runs.words(marks, noon + 1))
    assert.equal(zoned "ran on ann on 2026-05-04 at 12:00:00, took 41 s; failed on bob on 2026-05-04 at 12:00:00: signal 9",
      runs.words(marks, noon + 86400))
    assert.is_nil(runs.words(nil, noon))
    assert.is_nil(runs.words({ other = {} }, noon))
  end)

  it("is none where its types are others", function()
    for _, text in ipairs { '"done"', "true", '{"done":3}', '{"done":{"at":"x","node":"a"}}', '{"done":{"at":1}}',
      '{"done":{"at":1,"node":"a","took":"x"}}' } do
      local one = record.parse(([[{"v":1,"serial":3,"memory":"m","epoch":4,"runs":%s}]]):format(text), "a")
      assert.same({ nil, nil, nil }, { runs.ran(one.runs, job { done_for = 1e9 }, NOW), runs.wait(one.runs, nil, "a", 0, NOW),
        runs.words(one.runs, NOW) }, text)
    end
  end)

  it("of a success takes the place of its failures, and counts from its end", function()
    local one = job { done_for = 100 }
    one.started, one.result = true, { at = NOW, took = 7.5, code = 1 }
    local first = runs.after({ other = { 1 } }, one, "ann")
    assert.same({ other = { 1 }, failed = { at = NOW, took = 7.5, count = 1, node = "ann", code = 1 } }, first)
    one.result = { at = NOW, took = 0, signal = 9 }
    local second = runs.after(first, one, "bob")
    assert.same({ at = NOW, took = 0, count = 2, node = "bob", signal = 9 }, second.failed)
    one.result = { at = NOW, took = 7.5, code = 0 }
    assert.same({ other = { 1 }, done = { at = NOW, took = 7.5, node = "ann", ["until"] = 1108 } }, runs.after(second, one, "ann"))
    local plain = job { elsewhere = true }
    plain.started, plain.result = true, { at = NOW, took = 1, code = 0 }
    assert.same({ done = { at = 3, node = "ann" } }, runs.after({ done = { at = 3, node = "ann" }, failed = first.failed }, plain, "bob"))
  end)

  it("of a claim that began nothing is taken back, and so is one that is forgotten", function()
    local one = job { at_least = 60 }
    local marks = runs.claimed(nil, one, "ann", NOW + 0.5)
    assert.same({ begun = { at = 1000, ["until"] = 1061, node = "ann" } }, marks)
    assert.is_true(runs.owes(one))
    assert.is_nil(runs.after(marks, one, "ann"))
    one.started = true
    assert.is_false(runs.owes(one))
    assert.same(marks, runs.after(marks, one, "ann"))
    assert.is_nil(runs.claimed(marks, nil, "bob", NOW + 90))
    assert.is_nil(runs.forgotten { done = {}, failed = {}, begun = {}, plan = {} })
  end)

  it("of two servers is the later one, each kind by itself", function()
    local function at(time) return { at = time, node = "a" } end
    local plan = { times = "* * * * *", zone = "Etc/UTC" }
    local behind = { done = at(1), failed = at(2), begun = at(9), plan = plan }
    for _, case in ipairs {
      { { done = at(1) }, { failed = at(2) }, { done = at(1), failed = at(2) } },
      { behind, { done = at(7), begun = at(6) }, { done = at(7), begun = at(9), plan = plan } },
      { behind, { done = at(2), failed = at(8) }, { done = at(2), failed = at(8), begun = at(9), plan = plan } },
      { behind, nil, behind },
    } do
      assert.same(case[3], runs.later(case[1], case[2]))
      assert.same(case[3], runs.later(case[2], case[1]))
    end
    assert.is_nil(runs.later(nil, nil))
  end)
end)

describe("a record with marks of runs (S16)", function()
  local function read(marks, more)
    return record.parse(([[{"v":1,"serial":3,"memory":"m","epoch":4,"runs":%s%s}]]):format(marks, more or ""), "a")
  end
  local function claim(one, wanted, more)
    local seen = { record = one, memory = "m", stood = 0, serial = 3, epoch = 4 }
    for name, value in pairs(more or {}) do seen[name] = value end
    return rule.claim({ session = "@t-12", at = 5, node = "me", time = NOW * 1000, longest = 12, floor = 0, job = wanted }, seen)
  end
  local DONE = '{"done":{"at":990,"took":1,"node":"ann","until":1091}}'

  it("is not claimed by who asks for it, also where somebody holds it; by others it is, and keeps them", function()
    local what, why = claim(read(DONE), job { done_for = 100 })
    assert.same({ "denied", 60, 4 }, { what, why.wait, why.epoch })
    assert.same({ "ann", "ran on ann at " .. os.date("%H:%M:%S %z", 990) .. ", took 1 s" }, { why.ran.node, why.ordered })
    assert.equal("denied", (claim(read(DONE, ',"by":"@other-12","at":3'), job { done_for = 100 })))
    assert.equal("denied", (claim(read(DONE), job { done_for = 100 }, { back = true })))
    local other, one = claim(read(DONE))
    assert.same({ "write", 990 }, { other, one.runs.done.at })
  end)

  it("keeps them over a pause, and a pause over them", function()
    local base = read(DONE, ',"orders":{"pause":true},"by":"@t-12","at":5')
    base.runs.other = { 0.1 }
    local seen = { record = base, memory = "m2", stood = 0, serial = 3, epoch = 4 }
    local me = { session = "@t-12", at = 5, node = "me", time = NOW * 1000, longest = 12, floor = 0 }
    for _, one in ipairs { rule.free(base, 4, "m"), rule.doubt(me, seen), rule.vouch(base, "m2"), rule.direct(base, "evict"),
      rule.order(base, { pause = true }), rule.mark(base, base.runs) } do
      local found = record.parse(record.text(one, "x"), "a")
      assert.same({ 990, { 0.1 }, true }, { found.runs.done.at, found.runs.other, found.orders.pause })
    end
    assert.equal("paused", (select(2, claim(read(DONE, ',"orders":{"pause":true}'), job { at_least = 100 }))).ordered)
  end)

  it("is held for a run by its claim", function()
    local what, one = claim(read "{}", job { at_least = 100 })
    assert.same({ "write", { begun = { at = NOW, ["until"] = 1100, node = "me" } } }, { what, one.runs })
    local after, why = claim(rule.free(one, 5, "m"))
    assert.same({ "denied", 60 }, { after, why.wait })
  end)
end)

describe("a candidate of the register", function()
  local here, one

  before_each(function()
    here = world()
    one = here.member "a"
  end)

  local function works(result, options)
    one.job = here.modules.runs.job(options or { done_for = 100 })
    assert.is_true((one.claim()))
    one.job.started, one.job.result = true, result
  end

  local function marks() return here.record("a").runs end

  it("writes what became of its run in the write that gives the election back", function()
    works { at = here.now(), took = 2, code = 0 }
    local writes, held = 0, nil
    function here.on_swap(list)
      for _, write in ipairs(list) do
        if write.name == "a" then writes, held = writes + 1, here.record("a").by end
      end
    end
    one.release()
    assert.same({ 1, "@t-12" }, { writes, held })
    assert.same({ nil, { done = { at = 100, took = 2, node = "n", ["until"] = 202 } } }, { here.record("a").by, marks() })
    local granted, why = one.claim()
    assert.same({ false, "ran on n at " .. os.date("%H:%M:%S %z", 100) .. ", took 2 s" }, { granted, why.ordered })
    assert.equal(100, one.job.ran.at)
  end)

  it("writes it over an order that came meanwhile, and keeps that", function()
    works { at = here.now(), took = 2, code = 0 }
    local text = here.modules.record.text(here.modules.rule.order(here.record "a", { pause = true }), here.env.nonce())
    here.rows.a = { text = text, version = text }
    one.release()
    assert.same({ nil, true, 100 }, { here.record("a").by, here.record("a").orders.pause, marks().done.at })
  end)

  it("owes what became of it until the store answers, whatever its job does next", function()
    works { at = here.now(), took = 2, code = 0 }
    here.closed = true
    one.release()
    one.job.started, one.job.result = nil, nil
    here.closed = false
    here.pass(5)
    assert.same({ nil, 100 }, { here.record("a").by, marks().done.at })
  end)

  it("writes nothing of a run that was stopped, nor over another one's record", function()
    works(nil)
    one.release()
    assert.is_nil(marks())
    works { at = here.now(), took = 2, code = 0 }
    local found = here.record "a"
    found.epoch, found.by = found.epoch + 1, "@other-12"
    local text = here.modules.record.text(found, here.env.nonce())
    here.rows.a = { text = text, version = text }
    one.release()
    assert.same({ nil, "@other-12" }, { marks(), here.record("a").by })
  end)

  it("gives back each for itself where a run has to be marked, however many end", function()
    here = world(nil, 1)
    one = here.member "a"
    works { at = here.now(), took = 2, code = 0 }
    one.release()
    here.pass(2)
    assert.same({ nil, 100 }, { here.record("a").by, marks().done.at })
  end)
end)
