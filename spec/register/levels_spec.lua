-- Levels of hosts in the marks of a job: what the rule makes of them, and what candidates of a store that is played by hand write.
local modules = require "support.register_modules"()
local levels, runs = modules.levels, modules.runs
local outcome = require "crown.election.outcome"
local world = require "support.played_register"

local NOW = 1000 -- seconds since 1970

local function preferred(level) return { prefers = { level = level, node = "ann" } } end

describe("a level in the marks of a job", function()
  it("has lower ones wait, for a time that counts from their begin, and nobody else", function()
    for i, case in ipairs {
      { preferred(5), { level = 0 }, 0, 2 }, { preferred(5), { level = 0 }, 1.5, 0.5 }, { preferred(5), { level = 0 }, 2 },
      { preferred(5), { level = 4 }, 0, 2 }, { preferred(5), { level = 5 }, 0 }, { preferred(5), { level = 6 }, 0 },
      { preferred(5), {}, 0 }, { preferred(5), nil, 0 }, { nil, { level = 0 }, 0 }, { nil, { level = -1 }, 0, 2 },
      { preferred(-5), { level = -5 }, 0 }, { preferred "high", { level = 0 }, 0 }, { { prefers = 7 }, { level = 0 }, 0 },
    } do
      local found, options, passed, left = unpack(case, 1, 4)
      local one = options and runs.job { level = options.level, yields = 2, from = 300 }
      assert.same({ i, left }, { i, (levels.wait(found, one, 300 + passed)) })
    end
    assert.equal("left to ann first, of preference 5",
      (select(2, levels.wait(preferred(5), runs.job { level = 0, yields = 2, from = 0 }, 0))))
  end)

  it("counts from that begin also while the command runs, and after its end", function()
    local one = runs.job { level = 0, yields = 2, from = 300 }
    for _, event in ipairs { "child.started", "child.exited" } do
      outcome.hear(one, { event = event, code = 137 })
      assert.equal(1.5, (levels.wait(preferred(5), one, 300.5)))
    end
  end)

  it("goes beside a failure: the longer wait of the two counts", function()
    local marks = preferred(5)
    marks.failed = { at = 990, node = "bob", code = 1 }
    local function wait(node, stood, passed)
      local one = runs.job { elsewhere = true, level = 0, yields = 2, from = 0 }
      return runs.wait(marks, one, node, stood, NOW, passed)
    end
    assert.same({ 5, true }, { wait("bob", 0, 0), (select(3, wait("bob", 0, 0))) })
    assert.same({ 1, "left to ann first, of preference 5", true }, { wait("bob", 4.5, 1) })
    assert.equal(2, (wait("cid", 0, 0)))
    assert.is_nil(wait("cid", 0, 2))
  end)
end)

describe("a candidate with a level", function()
  local here, slot

  before_each(function() here, slot = world(), 960 end)

  local function host(node, level)
    here.begin(node)
    local one = here.member "a"
    one.session.node, one.session.own.node = node, node
    one.job = runs.job { slot = slot, retries = 0, level = level, yields = 2, from = here.now() }
    return one
  end

  local function next_slot(one)
    slot = slot + 60
    one.job = runs.job { slot = slot, retries = 0, level = one.job.level, yields = 2, from = here.now() }
  end

  local function ends(one)
    one.job.started, one.job.result = true, { at = NOW, took = 0, code = 0 }
    one.release()
  end

  local function level() return here.record("a").runs.prefers end

  it("says it with its claim, and leaves an occurrence to a higher one for a while", function()
    local high, low = host("high", 5), host("low", 0)
    assert.is_true((high.claim()))
    assert.same({ level = 5, node = "high" }, level())
    ends(high)
    next_slot(low)
    local granted, why = low.claim()
    assert.same({ false, 2, "left to high first, of preference 5" }, { granted, why.wait, why.ordered })
    here.pass(1.9)
    assert.is_false((low.claim()))
    here.pass(0.1)
    assert.is_true((low.claim()))
    assert.is_nil(level()) -- that one is gone: nobody waits for it again
    ends(low)
    next_slot(low)
    assert.is_true((low.claim()))
  end)

  it("says its level where it has lost to a lower one, once, and is left the next occurrence", function()
    local low, high = host("low", -3), host("high", 5)
    here.pass(2)
    assert.is_true((low.claim()))
    assert.is_false((high.claim()))
    assert.same({ level = -3, node = "low" }, level()) -- not while that runs: it may fail
    ends(low)
    assert.is_false((high.claim()))
    assert.same({ { level = 5, node = "high" }, NOW }, { level(), here.record("a").runs.done.at })
    local serial = here.record("a").serial
    assert.is_false((high.claim()))
    assert.equal(serial, here.record("a").serial)
    assert.is_false((low.claim()))
    assert.equal(serial, here.record("a").serial)
    next_slot(low)
    assert.is_false((low.claim()))
    next_slot(high)
    assert.is_true((high.claim()))
  end)

  it("says it over what others write meanwhile", function()
    local low, high = host("low", 0), host("high", 5)
    assert.is_true((low.claim()))
    ends(low)
    here.on_swap = function(writes)
      if writes[1].name ~= "a" then return end
      here.on_swap = nil
      local text = modules.record.text(modules.rule.order(here.record "a", { pause = true }), "between")
      here.rows.a = { text = text, version = text }
    end
    assert.is_false((high.claim()))
    assert.same({ { level = 5, node = "high" }, true }, { level(), here.record("a").orders.pause })
    here.closed = true
    next_slot(low)
    high.job.level = 6
    assert.is_false((high.claim()))
    here.closed = nil
    assert.equal(5, level().level)
  end)
end)
