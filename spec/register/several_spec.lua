-- One election on three registers that a spec plays by hand.
local world = require "support.played_register"

local TTL = 12
local OTHER = "@other-12"
local EPOCH = 900000

-- @return the worlds, and a candidate that asks all of them
local function registers(count)
  local worlds, members, clock = {}, { { parts = {} } }, { now = 100, sleepers = {} }
  for i = 1, count do
    worlds[i] = world(false, nil, clock)
    members[1].parts[i] = worlds[i].member "a"
  end
  local all = { worlds = worlds, env = worlds[1].env }
  all.pass, all.now = worlds[1].pass, worlds[1].now
  for _, fn in ipairs { "claim", "refresh", "release", "look" } do
    all[fn] = function(member) return worlds[1].modules.several[fn](all.env, member or members[1]) end
  end
  return all, members
end

local function three() return registers(3) end

local function strange(here, more)
  here.rows[OTHER] = { text = '{"v":1,"serial":1,"memory":"m","ttl":12,"at":1,"node":"o","nonce":"o"}', version = "o1" }
  here.rows.a = { version = "x1",
    text = ('{"v":1,"serial":20,"memory":"m","epoch":%d,"by":"%s","at":1,"node":"o","nonce":"x"%s}'):format(EPOCH, OTHER, more or "") }
end

local function doubted(here)
  here.rows.a = { version = "d1", text = '{"v":1,"serial":20,"memory":"m","epoch":7,"doubt":24,"nonce":"d"}' }
end

describe("a claim on three registers (S11)", function()
  it("is granted by most of them, in the highest epoch that they granted", function()
    local all = three()
    all.worlds[2].rows.a = { version = "f", text = '{"v":1,"serial":1,"memory":"m","epoch":500000,"nonce":"f"}' }
    all.worlds[3].closed, all.worlds[1].slow = true, 0.1
    local granted, _, grant = all.claim()
    all.worlds[1].slow = nil
    assert.same({ true, 500001, TTL }, { granted, grant.epoch, grant.ttl })
    assert.equal(500001, all.worlds[1].record("a").epoch) -- claimed again: it did not know of that
    assert.is_nil(all.worlds[3].rows.a)
  end)

  it("has the highest epoch of those that hold it, also where others led while it was brought level", function()
    local all = three()
    local first, second = all.worlds[1], all.worlds[2]
    second.rows.a = { version = "f", text = '{"v":1,"serial":1,"memory":"m","epoch":500000,"nonce":"f"}' }
    all.worlds[3].closed, first.slow = true, 0.1
    function first.on_look()
      if first.rows.a and not first.record("a").by then -- given back, to be claimed in the other's epoch
        first.rows.a = { version = "g", text = '{"v":1,"serial":9,"memory":"m","epoch":600000,"nonce":"g"}' }
        first.on_look = nil
      end
    end
    local granted, _, grant = all.claim()
    assert.same({ true, 600001 }, { granted, grant.epoch })
    assert.same({ 600001, 600001 }, { first.record("a").epoch, second.record("a").epoch })
  end)

  it("is given up where it cannot be brought level", function()
    local all = three()
    local higher, first, second = 500000, all.worlds[1], all.worlds[2]
    all.worlds[3].closed, first.slow, second.slow = true, 0.1, 0.1
    for _, here in ipairs { first, second } do
      function here.on_look()
        if here.rows.a and here.record("a").by then return end
        higher = higher + 1000
        here.rows.a = { version = "g" .. higher,
          text = ('{"v":1,"serial":9,"memory":"m","epoch":%d,"nonce":"%d"}'):format(higher, higher) }
      end
    end
    local granted, why = all.claim()
    assert.is_false(granted)
    assert.is_true(why.wait > 0)
    all.pass(5)
    assert.is_nil(first.record("a").by or second.record("a").by)
  end)

  it("is granted by three of five, and not by two", function()
    local all = registers(5)
    for i = 4, 5 do all.worlds[i].closed = true end
    assert.is_true((all.claim()))
    all = registers(5)
    for i = 3, 5 do all.worlds[i].closed = true end
    assert.is_nil((all.claim()))
  end)

  it("waits for no register when most of them have answered", function()
    local all = three()
    local began = all.now()
    all.worlds[3].slow = 5
    assert.is_true((all.claim()))
    assert.equal(began, all.now())
    all = three()
    all.worlds[3].slow = 5
    for i = 1, 2 do strange(all.worlds[i]) end
    began = all.now()
    local granted, why = all.claim()
    assert.same({ false, "o", began }, { granted, why.node, all.now() })
  end)

  it("gives back what a register grants too late", function()
    local all = three()
    all.worlds[3].slow = 1
    for i = 1, 2 do strange(all.worlds[i]) end
    assert.is_false((all.claim()))
    all.worlds[3].pass(20)
    assert.is_nil(all.worlds[3].rows.a and all.worlds[3].record("a").by)
  end)

  it("is not granted by one of them, and given back there", function()
    local all = three()
    all.worlds[2].closed, all.worlds[3].deaf = true, true
    local granted, problem, code = all.claim()
    assert.same({ n = 3, nil, "1 of 3 servers granted, 2 are needed: no answer", "timeout" }, { n = 3, granted, problem, code })
    assert.is_nil(all.worlds[1].record("a").by)
  end)

  it("is denied where another one has most of them, who is told", function()
    local all = three()
    for i = 2, 3 do strange(all.worlds[i]) end
    local granted, why = all.claim()
    assert.same({ false, "o", EPOCH, true, true, nil, false },
      { granted, why.node, why.epoch, why.stands, why.unsure, why.amnesia, why.back })
    assert.near(TTL * 1.01 + 0.25, why.wait, 1e-9)
    assert.is_nil(all.worlds[1].record("a").by)
  end)

  it("tells until when it waits to ask one who leads to go, on all of them", function()
    local all, members = three()
    for _, here in ipairs(all.worlds) do strange(here) end
    for i, part in ipairs(members[1].parts) do part.rank = { level = 5, preempt = 18 + i } end
    local _, why = all.claim()
    assert.equal(21, why.asks_in)
    all.pass(0)
    for _, here in ipairs(all.worlds) do assert.same({ ranks = { n = 5 } }, here.record("a").orders) end
  end)

  it("is denied until most of them may be claimed", function()
    local all = three()
    strange(all.worlds[2])
    all.claim()
    all.pass(5)
    strange(all.worlds[3])
    all.claim()
    all.pass(2)
    strange(all.worlds[1])
    local granted, why = all.claim()
    assert.is_false(granted)
    assert.near(TTL * 1.01 + 0.25 - 2, why.wait, 1e-9) -- the first one is free 5 s earlier, the last one 2 s later
  end)

  it("is tried again soon where one has a part of them", function()
    local all = three()
    strange(all.worlds[2])
    all.worlds[3].closed = true
    local granted, why = all.claim()
    assert.same({ false, 0.175, nil, nil }, { granted, why.wait, why.node, why.stands })
  end)

  it("waits for a doubt on most of them", function()
    local all = three()
    doubted(all.worlds[1])
    doubted(all.worlds[2])
    all.worlds[3].closed = true
    local granted, why = all.claim()
    assert.same({ false, true, nil }, { granted, why.amnesia, why.node })
    assert.near(24 * 1.01 + 0.25, why.wait, 1e-9)
  end)

  it("says of a doubt nothing that is said of others", function()
    local all, members = three()
    for _, here in ipairs(all.worlds) do doubted(here) end
    all.worlds[3].rows.a = { version = "p1",
      text = '{"v":1,"serial":20,"memory":"m","epoch":7,"nonce":"p","runs":{"prefers":{"level":10,"node":"ann"}}}' }
    for i, part in ipairs(members[1].parts) do part.job = all.worlds[i].modules.runs.job { level = 0, yields = 2, from = all.now() } end
    local granted, why = all.claim()
    assert.same({ false, true, nil }, { granted, why.amnesia, why.ordered })
  end)

  it("asks again soon where one of them is doubted and another one does not answer", function()
    local all = three()
    doubted(all.worlds[1])
    all.worlds[2].deaf, all.worlds[2].closed = true, true
    local granted, why = all.claim()
    assert.same({ false, nil, 0.875 }, { granted, why.amnesia, why.wait })
    assert.equal("not to be led yet: of its servers 1 of 3 may have lost records, and 1 gave no answer", why.ordered)
    all.worlds[2].deaf, all.worlds[2].closed = nil, nil
    all.worlds[1].pass(1)
    assert.is_true((all.claim()))
  end)

  it("does not speak of a doubt where most of them do not answer", function()
    local all = three()
    doubted(all.worlds[1])
    for i = 2, 3 do all.worlds[i].deaf, all.worlds[i].closed = true, true end
    local granted = all.claim()
    assert.is_nil(granted)
  end)

  it("does not speak of a doubt where another one leads", function()
    local all = three()
    strange(all.worlds[1])
    strange(all.worlds[2])
    doubted(all.worlds[3])
    assert.is_nil((select(2, all.claim())).amnesia)
  end)

  it("does not wait for a doubt on one of them where two others lead", function()
    local all = three()
    strange(all.worlds[1])
    strange(all.worlds[2])
    all.worlds[2].rows.a.text = all.worlds[2].rows.a.text:gsub('"node":"o"', '"node":"p"')
    doubted(all.worlds[3])
    local granted, why = all.claim()
    assert.same({ false, nil, nil }, { granted, why.amnesia, why.node })
  end)

  it("tells whether most of the stores have no record, or may have gone back", function()
    local all = three()
    for _, here in ipairs(all.worlds) do here.trusts = false end
    local members = {}
    for i, here in ipairs(all.worlds) do members[i] = here.member "b" end
    local granted, why = all.claim { parts = members }
    assert.same({ false, true, nil }, { granted, why.amnesia, why.back or nil })
    all.worlds[2].rows.a = { text = '{"v":1,"serial":1,"memory":"l","epoch":3,"nonce":"f"}', version = "f" }
    all.worlds[3].rows.a = all.worlds[2].rows.a
    granted, why = all.claim()
    assert.same({ false, true, true }, { granted, why.amnesia, why.back })
  end)

  it("goes on with a higher epoch than any of them knew", function()
    local all = three()
    local _, _, grant = all.claim()
    all.release()
    all.worlds[1].rows.a = { version = "f", text = ('{"v":1,"serial":9,"memory":"m","epoch":%d,"nonce":"f"}'):format(grant.epoch + 50) }
    all.claim()
    for _, here in ipairs(all.worlds) do assert.equal(grant.epoch + 51, here.record("a").epoch) end
  end)
end)

describe("a term on three registers (S11)", function()
  local function led()
    local all, members = three()
    assert.is_true((all.claim()))
    return all, members[1]
  end

  it("goes on while most of them hold it", function()
    local all = led()
    strange(all.worlds[1])
    all.pass(4)
    assert.is_true((all.refresh()))
    strange(all.worlds[2])
    all.pass(4)
    local granted, why = all.refresh()
    assert.same({ false, "o", EPOCH }, { granted, why.node, why.epoch })
  end)

  it("goes on while most of them answer, and ends with what they said last", function()
    local all = led()
    all.worlds[1].closed = true
    all.pass(4)
    assert.is_true((all.refresh()))
    all.worlds[2].closed = true
    all.pass(4)
    local granted, problem, code = all.refresh()
    assert.same({ n = 3, nil, "1 of 3 servers granted, 2 are needed: no answer", "timeout" }, { n = 3, granted, problem, code })
    all.pass(4)
    granted, problem = all.refresh()
    assert.is_falsy(granted)
    assert.is_truthy(problem)
  end)

  it("lasts as long as the second longest of them says", function()
    local all = led()
    all.pass(4)
    all.worlds[1].closed = true
    local granted, _, grant = all.refresh()
    assert.same({ true, TTL }, { granted, grant.ttl })
    all.pass(4)
    all.worlds[1].closed, all.worlds[2].lasts = false, 1
    granted, _, grant = all.refresh()
    assert.is_true(granted)
    assert.is_true(grant.ttl >= TTL - 3 and grant.ttl <= TTL, grant.ttl)
  end)

  it("is given to one that was away, in an epoch that is no lower", function()
    local all = three()
    all.worlds[3].closed = true
    local _, _, grant = all.claim()
    all.worlds[3].closed = false
    all.pass(4)
    assert.is_true((all.refresh()))
    assert.is_true(all.worlds[3].record("a").epoch >= grant.epoch)
    assert.equal("@t-12", all.worlds[3].record("a").by)
  end)

  it("ends when one of them has a wish that it ends", function()
    local all = led()
    local row = all.worlds[2].rows.a
    all.worlds[2].rows.a = { text = row.text:gsub("^{", '{"directive":"evict",'), version = "evict" }
    assert.same({ false, { evicted = true } }, { all.look() })
    all.pass(4)
    assert.is_true((all.refresh()))
  end)

  it("is looked at at once on all of them", function()
    local all = led()
    strange(all.worlds[1])
    assert.is_nil((all.look()))
    strange(all.worlds[3])
    local verdict, why = all.look()
    assert.same({ false, "o" }, { verdict, why.node })
  end)

  it("waits for no register when most of them have answered, or have lost it", function()
    local all = led()
    all.worlds[3].slow = 5
    all.pass(4)
    local began = all.now()
    assert.is_true((all.refresh()))
    assert.equal(began, all.now())
    for _, ask in ipairs { "refresh", "look" } do
      all = led()
      all.pass(4)
      all.worlds[3].slow = 5
      for i = 1, 2 do strange(all.worlds[i]) end
      began = all.now()
      local granted, why = all[ask]()
      assert.same({ false, "o", began }, { granted, why.node, all.now() })
    end
  end)

  it("is nobody's after its release on all of them", function()
    local all = led()
    all.release()
    for _, here in ipairs(all.worlds) do assert.is_nil(here.record("a").by) end
    local granted, why = all.refresh()
    assert.same({ false, "the lease in the store is not this term's" }, { granted, why.error })
  end)

  it("is given back on all of them when its release is over", function()
    local all = led()
    all.worlds[2].slow = 0.1
    all.release()
    assert.is_nil(all.worlds[2].record("a").by)
  end)

  it("is given back without waiting for long for one of them that hangs", function()
    local all = led()
    local began = all.now()
    all.worlds[2].slow = 5
    all.release()
    assert.near(0.25, all.now() - began, 1e-9)
    for _, i in ipairs { 1, 3 } do assert.is_nil(all.worlds[i].record("a").by) end
    all.worlds[2].pass(20)
    assert.is_nil(all.worlds[2].record("a").by)
  end)

  it("is not that of another candidate of the same runtime", function()
    local all, one = led()
    local two = { parts = {} }
    for i, here in ipairs(all.worlds) do
      two.parts[i] = here.member "a"
      here.rows.a = { version = "f", text = ('{"v":1,"serial":20,"memory":"m","epoch":%d,"nonce":"f"}'):format(EPOCH) }
    end
    assert.is_false((all.look(one)))
    all.pass(TTL)
    assert.is_true((all.claim(two)))
    local granted, why = all.refresh(one)
    assert.same({ false, "most servers do not hold this term any more" }, { granted, why.error })
  end)

  it("is refreshed by a renewal that another election has asked for, and counts from that", function()
    local all = led()
    local other = { parts = {} }
    for i, here in ipairs(all.worlds) do other.parts[i] = here.member "b" end
    assert.is_true((all.claim(other)))
    all.pass(4)
    local _, _, grant = all.refresh()
    assert.same({ TTL, nil }, { grant.ttl, grant.past })
    all.pass(0.5)
    _, _, grant = all.refresh(other)
    assert.same({ TTL - 0.5, 0.5 }, { grant.ttl, grant.past })
  end)

  it("is none where its candidate has none", function()
    local all = three()
    local granted, why = all.refresh()
    assert.same({ false, "the lease in the store is not this term's" }, { granted, why.error })
  end)
end)
