-- The life of a session over a store that a spec plays by hand: when its renewal counts for all terms, when they are refreshed,
-- and what it leaves behind.
local world = require "support.played_register"

local TTL = 12
local SESSION = "@t-12"

local function led(here, ...)
  local members, refresher = {}, nil
  for i, name in ipairs { ... } do
    members[i] = here.member(name)
    local granted, _, grant = members[i].claim()
    assert.is_true(granted)
    refresher = grant.refresher
  end
  return refresher, unpack(members)
end

describe("a renewal that counts for all terms", function()
  it("is told with its sending, the clocks then, and the life's beginning", function()
    local here = world()
    local refresher, one = led(here, "a")
    assert.same({ 100, 0, 100 }, { refresher.sent, refresher.offset, refresher.first })
    here.pass(4)
    here.lasts, here.offset = 0.5, 7
    assert.is_true((one.refresh()))
    assert.same({ 104, 7, 100 }, { refresher.sent, refresher.offset, refresher.first })
  end)

  it("has the times of its session", function()
    local refresher = led(world(), "a")
    local options = refresher.options
    assert.same({ 12, 4, 1, 0.4, 12, 0.05 }, { options.ttl, options.delay, options.fresh, options.apart, options.patience,
      options.clock_set })
  end)

  it("is made for those who wait for it, and told to them", function()
    local here = world()
    local refresher = led(here, "a")
    here.pass(4)
    refresher.options.renew()
    assert.equal(104, refresher.sent)
    here.pass(4)
    here.closed = true
    local problem
    refresher.waiting[1] = function(why) problem = why end
    refresher.options.renew()
    assert.equal("no answer", problem)
    assert.equal(104, refresher.sent)
  end)

  it("counts for no term after the session is over", function()
    local here = world()
    local refresher, one = led(here, "a")
    here.rows[SESSION] = nil
    here.pass(4)
    assert.is_false((one.refresh()))
    assert.is_nil(refresher.sent)
  end)

  it("counts no more when no look has shown a term for too long (S6), and again after one that has", function()
    local here = world()
    local refresher, one = led(here, "a")
    here.deaf = true
    local last
    for _ = 1, 4 do
      here.pass(4)
      one.refresh()
      last = refresher.sent or last
    end
    assert.is_nil(refresher.sent)
    assert.equal(108, last) -- 100 + 2 * 12 - 0.37 is before 112 + 12
    here.deaf = false
    here.pass(0.1)
    one.refresh()
    here.pass(1.1)
    assert.is_true((one.refresh()))
    assert.equal(here.now(), refresher.sent)
  end)
end)

describe("the next refresh", function()
  it("comes in a round of all terms, whenever each was granted", function()
    local here = world()
    local _, one = led(here, "a")
    local two = here.member "b"
    here.pass(1)
    local _, delay = two.claim()
    assert.near(3.6 + 0.2 - 1, delay, 1e-9) -- the first round is 0.9 delays after the beginning, half of 0.4 s apart
    here.pass(3)
    _, delay = one.refresh()
    assert.near(7.2 + 0.2 - 4, delay, 1e-9)
    here.pass(3.4)
    _, delay = one.refresh()
    assert.near(10.8 + 0.2 - 7.4, delay, 1e-9)
  end)

  it("comes no later than a delay after the last renewal, or soon", function()
    local here = world()
    local _, one = led(here, "a")
    here.pass(3.3) -- the round after the next
    one.release()
    local _, delay = one.claim()
    assert.near(0.7, delay, 1e-9)
    one.release()
    here.pass(2)
    _, delay = one.claim()
    assert.near(0.4, delay, 1e-9)
  end)

  it("has a whole TTL with what is past of it, whatever was rounded", function()
    local here = world()
    local _, one = led(here, "a")
    for _ = 1, 50 do
      here.pass(0.1)
      one.release()
      local _, _, grant = one.claim()
      assert.equal(TTL, grant.ttl + (grant.past or 0))
    end
  end)

  it("needs no renewal of its own for as long as the last one is new", function()
    local here = world()
    local _, one, two = led(here, "a", "b")
    here.pass(4)
    assert.is_true((one.refresh()))
    local version = here.rows[SESSION].version
    here.pass(1)
    assert.is_true((two.refresh()))
    assert.equal(version, here.rows[SESSION].version)
    assert.is_true((two.refresh())) -- the same renewal does not refresh it twice
    assert.are_not.equal(version, here.rows[SESSION].version)
    version = here.rows[SESSION].version
    here.pass(1.01)
    assert.is_true((one.refresh()))
    assert.are_not.equal(version, here.rows[SESSION].version)
  end)

  it("needs one when the wall clock was set by more than a moment", function()
    for offset, is_renewed in pairs { [0.04] = false, [-0.04] = false, [0.06] = true, [-0.06] = true } do
      local here = world()
      local _, one, two = led(here, "a", "b")
      here.pass(4)
      assert.is_true((one.refresh()))
      local version = here.rows[SESSION].version
      here.offset = offset
      assert.is_true((two.refresh()))
      assert.equal(is_renewed, version ~= here.rows[SESSION].version)
    end
  end)
end)

describe("a look at the place", function()
  it("is made where the store was restarted and keeps marks, and not else", function()
    for _, case in ipairs { { true, "m", 0 }, { true, "another", 1 }, { false, "another", 0 }, { false, "m", 0 } } do
      local here = world(case[1])
      local _, one = led(here, "a")
      local asked = 0
      here.on_look = function(names) asked = asked + (names[1] == "@store" and 1 or 0) end
      here.memory = case[2]
      here.pass(4)
      assert.is_true((one.refresh()))
      assert.equal(case[3] > 0, asked > 0)
    end
  end)
end)

describe("a look at the terms", function()
  it("is at all of them with each renewal, and at most at a part where they are many", function()
    for count, most in pairs { [64] = 64, [65] = 0 } do
      local here, names = world(), {}
      for i = 1, count do names[i] = "a" .. i end
      local members = { select(2, led(here, unpack(names))) }
      local looked = 0
      here.on_look = function(asked) looked = looked + #asked end
      here.pass(4)
      assert.is_true((members[1].refresh()))
      assert.equal(most, looked)
      here.pass(1.9)
      looked = 0
      assert.is_true((members[1].refresh()))
      assert.equal(most, looked)
      here.pass(0.1) -- one and a half delays after the last look at the part
      looked = 0
      assert.is_true((members[1].refresh()))
      assert.equal(count, looked)
    end
  end)

  it("is at all of them where the store was restarted", function()
    local here, names = world(), {}
    for i = 1, 65 do names[i] = "a" .. i end
    local members = { select(2, led(here, unpack(names))) }
    here.memory = "another"
    here.pass(4)
    assert.is_true((members[1].refresh()))
    for _, name in ipairs(names) do assert.equal("another", here.record(name).memory) end
    for _, one in ipairs(members) do assert.is_true(one.stands) end
  end)

  it("is at so many together that their answers take little memory", function()
    local here, members = world(), {}
    for i = 1, 1500 do members[i] = here.member("a" .. i) assert.is_true((members[i].claim())) end
    local asked = {}
    here.on_look = function(names) asked[#asked + 1] = #names end
    here.pass(6)
    assert.is_true((members[1].refresh()))
    assert.same({ 1024, 476 }, asked)
  end)

  it("is only at those that the store does not confirm to stand as they were written", function()
    local here = world()
    local _, one = led(here, "a", "b")
    local asked, looked, stand = {}, {}, { true }
    function here.store.same(_, names, versions, memory)
      for i, name in ipairs(names) do asked[i] = { name, versions[i] == here.rows[name].version, memory } end
      return stand
    end
    here.on_look = function(names) looked[#looked + 1] = table.concat(names, " ") end
    here.pass(4)
    assert.is_true((one.refresh()))
    table.sort(asked, function(x, y) return x[1] < y[1] end)
    assert.same({ { "a", true, "m" }, { "b", true, "m" } }, asked)
    assert.equal(1, #looked)
    here.store.same = function() return nil, "no answer", "timeout" end
    here.pass(4)
    assert.is_true((one.refresh()))
    assert.equal(1, #looked)
    stand = { true, true }
    here.store.same = function() return stand end
    for _ = 1, 20 do
      here.pass(4)
      assert.is_true((one.refresh()))
    end
    assert.equal(1, #looked)
  end)

  it("is confirmed by no answer to an earlier question", function()
    local here = world()
    local _, one = led(here, "a")
    function here.store.same()
      one.slot.version = "another" -- a look has seen it meanwhile
      return { true }
    end
    here.deaf = true
    local patrol = one.slot.term.patrol
    here.pass(4)
    one.session:renew()
    assert.equal(patrol, one.slot.term.patrol)
  end)

  it("is at none where the store loses nothing and tells all, and each goes on", function()
    local here = world()
    here.store.tells_all = true
    local refresher, one = led(here, "a")
    here.deaf = true
    for _ = 1, 20 do
      here.pass(4)
      local granted, _, grant = one.refresh()
      assert.same({ true, TTL }, { granted, grant.ttl })
      assert.equal(here.now(), refresher.sent)
    end
  end)
end)

describe("a session that ends", function()
  it("says by one write that its lives are over, where it gives back many (S5)", function()
    local here = world(false, 3)
    local _, one, two, three = led(here, "a", "b", "c")
    here.closed = true
    one.release()
    two.release()
    here.closed = false
    here.pass(0.001)
    three.release()
    assert.equal(here.life(), here.record(SESSION).over)
    local strange = world(false)
    strange.begin "u"
    for _, name in ipairs { "a", "b", "c", SESSION } do strange.rows[name] = here.rows[name] end
    for _, name in ipairs { "a", "b", "c" } do assert.is_true((strange.member(name).claim())) end
  end)

  it("begins another life then", function()
    local here = world(false, 1)
    local _, one = led(here, "a")
    local life = here.life()
    one.release()
    here.pass(0.1)
    assert.equal(life, here.record(SESSION).over)
    assert.is_true((one.claim()))
    assert.is_true(here.life() > life)
    assert.is_nil(here.record(SESSION).over)
  end)

  it("gives back one by one what it has led few of", function()
    local here = world(false, 3)
    local _, one, two = led(here, "a", "b")
    one.release()
    two.release()
    assert.same({ nil, nil, nil }, { here.record(SESSION).over, here.record("a").by, here.record("b").by })
  end)

  it("goes on where it leads something else, and gives back the others one by one", function()
    local here = world(false, 2)
    local _, one, two, three = led(here, "a", "b", "c")
    one.release()
    two.release()
    assert.same({ nil, nil, nil, SESSION }, { here.record(SESSION).over, here.record("a").by, here.record("b").by,
      here.record("c").by })
    assert.is_true((three.refresh()))
  end)

  it("goes on where a tree of a term that is over may live", function()
    local here = world(false, 2)
    local _, one, two, three = led(here, "a", "b", "c")
    here.rows.c = { version = "x1", text = '{"v":1,"serial":20,"memory":"m","epoch":900000,"nonce":"x"}' }
    here.pass(4)
    assert.is_false((three.refresh()))
    here.closed = true
    one.release()
    here.closed = false
    two.release()
    assert.is_nil(here.record(SESSION).over)
  end)

  it("deletes its record when nothing names it, where the store can", function()
    for _, deletes in ipairs { true, false } do
      local here = world()
      here.store.deletes = deletes
      local _, one, two = led(here, "a", "b")
      one.release()
      assert.is_truthy(here.rows[SESSION])
      two.release()
      assert.equal(deletes, here.rows[SESSION] == nil)
      assert.is_nil(here.record("b").by)
      assert.is_true((one.claim()))
    end
  end)

  it("keeps its record where an election may still name it", function()
    local here = world()
    here.store.deletes = true
    local _, one, two = led(here, "a", "b")
    here.rows.a = { version = "x1", text = '{"v":1,"serial":20,"memory":"m","epoch":900000,"nonce":"x"}' }
    here.pass(4)
    assert.is_false((one.refresh()))
    one.release()
    two.release()
    assert.is_truthy(here.rows[SESSION])
  end)

  it("keeps its record while something is owed", function()
    local here = world()
    here.store.deletes = true
    local _, one, two = led(here, "a", "b")
    here.closed = true
    one.release()
    here.closed = false
    here.on_swap = function(writes) here.mute = writes[1].name == "a" end
    two.release()
    here.on_swap, here.mute = nil, false
    assert.is_truthy(here.rows[SESSION])
  end)

  it("leaves a will with each renewal, over the version that stands", function()
    local here, wills = world(), {}
    function here.store.will(_, write) wills[#wills + 1] = write end
    local _, one = led(here, "a")
    here.pass(4)
    assert.is_true((one.refresh()))
    assert.equal(2, #wills)
    local will = wills[2]
    assert.same({ SESSION, here.rows[SESSION].version, "m" }, { will.name, will.version, will.memory })
    local over = here.modules.record.parse(will.text, SESSION)
    assert.same({ here.life(), here.life(), 12 }, { over.over, over.at, over.ttl })
  end)
end)
