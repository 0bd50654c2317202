-- Levels of candidates: what they say, what the rule makes of them, and how candidates on a store that is played by hand go by them.
local modules = require "support.register_modules"()
local ranks, record, rule = modules.ranks, modules.record, modules.rule
local world = require "support.played_register"

local NOW = 1000 -- seconds

describe("a level", function()
  it("keeps those below it from claiming for a bounded time, but for that of who led and of oneself", function()
    local waits = {
      { { a = 5 }, 0, nil, 0, 2, "left to a first, of preference 5" }, { { a = 5 }, 0, nil, 1.5, 0.5, "left to a first, of preference 5" },
      { { a = 5 }, 0, nil, 2 }, { { a = 5 }, 5, nil, 0 }, { { a = 5 }, 0, "a", 0 }, { { me = 5 }, 0, nil, 0 }, { { a = -1 }, 0, nil, 0 },
      { { c = 7, b = 7, a = 5 }, 0, nil, 0, 2, "left to b first, of preference 7" }, { { a = "high" }, 0, nil, 0 }, { "a", 0, nil, 0 },
      { nil, 0, nil, 0 },
    }
    for i = 1, 11 do
      local case = waits[i]
      local me = { node = "me", rank = case[2] ~= 0 and { level = case[2] } or nil }
      assert.same({ i, case[5], case[6] }, { i, ranks.wait({ ranks = case[1] }, me, case[3], case[4]) })
    end
    assert.equal(6, (ranks.wait({ ranks = { a = 1 } }, { node = "me", retry = 3 }, nil, 0)))
    assert.equal(9, (ranks.wait({ ranks = { a = 1 } }, { node = "me", retry = 3, rank = { level = 0, wait = 9 } }, nil, 0)))
  end)

  it("of the last resort is below all, and waits also where nobody else is known", function()
    local last = { node = "me", rank = { level = 9, is_last = true } }
    assert.same({ 2, "left to candidates that are healthy first" }, { ranks.wait(nil, last, nil, 0) })
    assert.is_nil(ranks.wait(nil, last, nil, 2))
    assert.same({ ranks = { me = ranks.LAST } }, ranks.claimed(nil, last))
    assert.equal("a 3, b last resort", ranks.words { ranks = { b = ranks.LAST, a = 3, c = "?" } })
    assert.is_nil(ranks.words { pause = true })
  end)

  it("is written by who claims, who waits, and no more by who gives back; what has not come is removed", function()
    assert.same({ to = "x", ranks = { a = 5, me = 5 } },
      ranks.claimed({ to = "x", ranks = { a = 5, b = 6 } }, { node = "me", rank = { level = 5 } }))
    assert.is_nil(ranks.claimed({ ranks = { a = 5 } }, { node = "me" }))
    assert.is_nil(ranks.with({ ranks = { me = 5 } }, "me", 0))
    local same = { ranks = { me = 5 } }
    assert.equal(same, ranks.with(same, "me", 5))
  end)

  it("asks a leader to go only when it has waited, and not asked, for so long, and nothing else is ordered", function()
    local cases = { -- waited, asked_ago, what is ordered, what comes of it
      { 20, math.huge, {}, true }, { 19, math.huge, {}, false, 1 }, { 99, 15, {}, false, 5 }, { 99, 20, {}, true },
      { 99, 99, { pause = true }, false }, { 99, 99, { to = "x" }, false }, { 99, 99, { to = "leader" }, true },
      { 99, 99, { ranks = { leader = 7 } }, false }, { 99, 99, { ranks = { leader = 6 } }, true },
    }
    for i, case in ipairs(cases) do
      local me = { node = "me", rank = { level = 7, preempt = 20 }, time = NOW * 1000, waited = case[1], asked_ago = case[2], within = 12 }
      local wanted, asks, left = ranks.asked(case[3], me, "leader")
      assert.same({ i, case[4], case[5], case[4] and "me" or case[3].to }, { i, asks, left, wanted.to })
    end
  end)

  it("has room of its own beside orders, which the lowest do not get", function()
    local found
    for i = 1, 99 do found = ranks.with(found, ("node-%02d"):format(i), i) end
    found = ranks.with(found, "me", 1)
    assert.same({ 99, 1, 0 }, { ranks.of(found, "node-99"), ranks.of(found, "me"), ranks.of(found, "node-02") })
    assert.is_truthy(modules.orders.with(found, { pause = true, why = ("x"):rep(900) }))
  end)
end)

describe("a record with levels (S17)", function()
  local TEXT = '{"v":1,"serial":3,"memory":"m","epoch":4,"orders":%s,"nonce":"n"}'
  local me = { session = "@t-12", at = 5, node = "me", time = NOW * 1000, longest = 12, floor = 0 }

  local function claim(text, stood, free)
    return rule.claim(me, { record = record.parse(TEXT:format(text), "a"), memory = "m", stood = stood or 0, serial = 3, epoch = 4,
      free = free })
  end

  it("is left to who has a higher one for a time, counted since it is free, and not where it is handed over", function()
    assert.same({ "denied", { epoch = 4, wait = 1, ordered = "left to a first, of preference 5", is_free = true } },
      { claim('{"ranks":{"a":5}}', 1) })
    assert.equal("write", (claim('{"ranks":{"a":5}}', 1, 2)))
    local counted = { -- orders, for how long it has stood, for how long it waits
      { '{"ranks":{"a":5},"to":"x","within":9}', 10, 1 }, { '{"ranks":{"a":5},"to":"x","within":9}', 11 },
      { ('{"ranks":{"a":5},"pause":true,"until":%d}'):format(NOW - 1), 99, 1 },
      { ('{"ranks":{"a":5},"pause":true,"until":%d}'):format(NOW - 2), 99 }, { '{"ranks":{"a":5},"pause":true}', 0.5, math.huge },
    }
    for i, case in ipairs(counted) do
      local verdict, why = claim(case[1], case[2])
      assert.same({ i, case[3] ~= nil }, { i, verdict == "denied" })
      if case[3] and case[3] < math.huge then assert.equal(case[3], why.wait) end
    end
    local what, one = claim '{"ranks":{"a":5,"b":-1},"to":"me","within":9}'
    assert.same({ "write", { ranks = { b = -1 } } }, { what, one.orders })
  end)
end)

describe("a candidate with a preference", function()
  local here, one

  before_each(function()
    here = world()
    one = here.member "a"
    assert.is_true((one.claim()))
  end)

  -- Another runtime, of another node.
  local function another(rank, node)
    node = node or "o"
    here.begin(node)
    local other = here.member "a"
    other.session.node, other.session.own.node, other.rank = node, node, rank
    return other
  end

  it("says so while it waits, once, and no more when it has given back", function()
    local other = another { level = 7 }
    assert.is_false((other.claim()))
    assert.same({ ranks = { o = 7 } }, here.record("a").orders)
    local serial = here.record("a").serial
    assert.is_false((other.claim()))
    assert.equal(serial, here.record("a").serial)
    assert.is_true((one.refresh()))
    one.release()
    assert.is_true((other.claim()))
    assert.same({ ranks = { o = 7 } }, here.record("a").orders)
    other.release()
    assert.is_nil(here.record("a").orders)
  end)

  it("is left the first claim by others, no longer than bounded, and then does not count", function()
    local other = another { level = 7 }
    other.claim()
    one.release()
    local third = another(nil, "p")
    local granted, why = third.claim()
    assert.same({ false, 2, "left to o first, of preference 7" }, { granted, why.wait, why.ordered })
    here.pass(1.9)
    assert.is_false((third.claim()))
    here.pass(0.1)
    assert.is_true((third.claim()))
    assert.is_nil(here.record("a").orders)
  end)

  it("is left the first claim also where the leader's session is over", function()
    local other = another { level = 7 }
    other.claim()
    local third = another(nil, "p")
    third.claim()
    here.pass(30)
    local granted, why = third.claim()
    assert.same({ false, 2 }, { granted, why.wait })
    other.claim()
    assert.same({ "o", { ranks = { o = 7 } } }, { here.record("a").node, here.record("a").orders })
  end)

  it("asks a leader of a lower one to go when it has waited for so long, and not again before that", function()
    local other = another { level = 7, preempt = 20 }
    local _, why = other.claim()
    assert.equal(20, why.asks_in)
    local function go_on(seconds)
      for _ = 1, seconds / 2 do
        here.pass(2)
        one.refresh()
        one.look()
      end
    end
    go_on(18)
    other.claim()
    assert.is_nil(here.record("a").orders.to)
    go_on(2)
    other.claim()
    local orders = here.record("a").orders
    assert.same({ "o", 12, "o", "preference 7 over preference 0" }, { orders.to, orders.within, orders.by, orders.why })
    go_on(2)
    here.pass(0)
    assert.matches("^handover: handed over to o since .* by o: preference 7 over preference 0$", one.barred)
    one.release()
    assert.is_true((other.claim()))
    assert.same({ ranks = { o = 7 } }, here.record("a").orders)
    local third = another({ level = 7, preempt = 1 }, "p")
    third.claim()
    assert.is_nil(select(2, third.claim()).asks_in)
  end)

  it("asks one of the last resort to go when it has waited for a second, whatever its own level", function()
    one.release()
    one.rank = { level = 0, is_last = true }
    assert.is_false((one.claim()))
    here.pass(2)
    assert.is_true((one.claim()))
    assert.same({ ranks = { n = ranks.LAST } }, here.record("a").orders)
    local other = another(nil)
    assert.equal(1, select(2, other.claim()).asks_in)
    assert.is_nil(here.record("a").orders.to)
    here.pass(1)
    other.claim()
    assert.same({ "o", "preference 0 over the last resort" }, { here.record("a").orders.to, here.record("a").orders.why })
  end)

  it("says it no more than once in a TTL where another one of its node's name has written over it", function()
    local other, same = another { level = 7 }, another { level = 5 }
    other.claim()
    same.claim()
    local serial = here.record("a").serial
    for _ = 1, 5 do
      other.claim()
      same.claim()
    end
    assert.equal(serial, here.record("a").serial)
    for _ = 1, 6 do
      here.pass(2)
      one.refresh()
      one.look()
    end
    other.claim()
    assert.same({ ranks = { o = 7 } }, here.record("a").orders)
  end)

  it("looks again where another one has written first, and goes on where nobody knows", function()
    local other = another { level = 7 }
    here.on_swap = function(writes)
      if writes[1].name ~= "a" then return end
      here.on_swap = nil
      local text = record.text(rule.order(here.record "a", { pause = true }), "between")
      here.rows.a = { text = text, version = text }
    end
    assert.is_false((other.claim()))
    assert.same({ pause = true, ranks = { o = 7 } }, here.record("a").orders)
    other.rank.level = 8
    here.closed = true
    assert.is_false((other.claim()))
    here.closed = nil
    assert.equal(7, here.record("a").orders.ranks.o)
  end)
end)
