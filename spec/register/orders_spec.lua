-- Operators' orders: what they say, what the rule makes of them, and how candidates of a store that is played by hand obey them.
local modules = require "support.register_modules"()
local orders, record, rule = modules.orders, modules.record, modules.rule
local world = require "support.played_register"

local NOW = 1000 -- seconds

describe("an order", function()
  it("pauses for everybody, without an end or until its end, and not for who leads where it says so", function()
    local bars = {
      { { pause = true, by = "ann", why = "a new disk" }, false, "paused", "paused by ann: a new disk" },
      { { pause = true }, true, "paused", "paused" },
      { { pause = true, keep = true }, true },
      { { pause = true, keep = true }, false, "paused", "paused; a leader may go on" },
      { { pause = true, ["until"] = NOW }, true },
      { { pause = true, keep = true, ["until"] = NOW - 1 }, false },
      { { to = "bob" }, false },
      { { to = "bob", by = "ann" }, true, "handover", "handed over to bob by ann" },
      { { to = "me" }, true },
      { { done = { at = 3 } }, true },
      { nil, true },
    }
    for i = 1, 11 do
      local case = bars[i]
      assert.same({ i, case[3], case[4] }, { i, orders.bar(case[1], "me", case[2], NOW) })
    end
    assert.matches("^paused until %d+%-%d+%-%d+ %d+:%d+:%d+ [+-]%d%d%d%d by ann$",
      (select(2, orders.bar({ pause = true, ["until"] = NOW + 1, by = "ann" }, "me", true, NOW))))
  end)

  it("has a candidate wait for its end, and for another one's hand-over only so long", function()
    local waits = {
      { { pause = true }, 60 }, { { pause = true, ["until"] = NOW + 5 }, 5 }, { { pause = true, ["until"] = NOW + 500 }, 60 },
      { { pause = true, ["until"] = NOW } }, { { to = "me", within = 9 } }, { { to = "bob", within = 9 }, 6 },
      { { to = "bob", within = 3 } }, { { to = "bob" } }, { { done = {} } }, {},
    }
    for i, case in ipairs(waits) do assert.same({ i, case[2] }, { i, orders.wait(case[1], "me", 3, NOW) }) end
  end)

  it("takes the place of the one before, and nothing of what else is ordered", function()
    local one = assert(orders.with({ to = "bob", within = 3, by = "ann", done = { at = 3 } }, { pause = true, by = "joe" }))
    assert.same({ pause = true, by = "joe", done = { at = 3 } }, one)
    assert.same({ done = { at = 3 } }, orders.without(one))
    assert.is_nil(orders.without { pause = true, by = "joe" })
    assert.is_nil(orders.without(nil))
    local long, problem = orders.with(nil, { pause = true, why = ("x"):rep(1024) })
    assert.same({ nil, "it has 1047 bytes with all that stands beside it, more than 1024: say why in fewer words" },
      { long, problem })
  end)
end)

describe("a record with orders (S15)", function()
  local TEXT = '{"v":1,"serial":3,"memory":"m","epoch":4,"orders":%s,"nonce":"n"}'
  local me = { session = "@t-12", at = 5, node = "me", time = NOW * 1000, longest = 12, floor = 0 }

  local function read(text) return record.parse(TEXT:format(text), "a") end
  local function claim(text, stood)
    return rule.claim(me, { record = read(text), memory = "m", stood = stood or 0, serial = 3, epoch = 4 })
  end

  it("is none where they are of no known form", function()
    for _, text in ipairs { '"evict"', '{"pause":1}', '{"until":"x","pause":true}', '{"to":3}', "true" } do
      assert.is_nil(read(text), text)
    end
    assert.same({ pause = true, more = { 1 } }, read('{"pause":true,"more":[1]}').orders)
  end)

  it("is not claimed while it is paused, and afterwards without that order", function()
    assert.same({ "denied", { epoch = 4, wait = 60, ordered = "paused" } }, { claim '{"pause":true}' })
    local what, one = claim '{"pause":true,"until":1000,"by":"ann","done":{"at":3}}'
    assert.same({ "write", { done = { at = 3 } }, 5 }, { what, one.orders, one.epoch })
  end)

  it("is claimed by the node that it is handed to, and by others when that has not come", function()
    assert.same({ "denied", { epoch = 4, wait = 7, ordered = "handed over to bob" } }, { claim('{"to":"bob","within":10}', 3) })
    for stood, text in pairs { [10] = '{"to":"bob","within":10}', [0] = '{"to":"me","within":10}' } do
      local what, one = claim(text, stood)
      assert.same({ "write", nil }, { what, one.orders })
    end
  end)

  it("keeps them over releases, doubts and a store's restart", function()
    local base = read '{"pause":true,"done":{"at":0.1}}'
    base.by, base.at, base.node = "@t-12", 5, "me"
    local seen = { record = base, memory = "m2", stood = 0, serial = 3, epoch = 4 }
    for _, one in ipairs { rule.free(base, 4, "m"), rule.doubt(me, seen), rule.vouch(base, "m2"), rule.direct(base, "evict") } do
      assert.same({ pause = true, done = { at = 0.1 } }, record.parse(record.text(one, "x"), "a").orders)
    end
    assert.same({ nil, "me", 4 }, { rule.order(base, nil).orders, rule.order(base, nil).node, rule.order(base, nil).epoch })
  end)
end)

describe("a candidate obeys", function()
  local here, one

  before_each(function()
    here = world()
    one = here.member "a"
    assert.is_true((one.claim()))
  end)

  local function order(wanted)
    local text = here.modules.record.text(here.modules.rule.order(here.record "a", wanted), here.env.nonce())
    here.rows.a = { text = text, version = text }
  end

  it("a pause, as a leader at its next look, and nobody claims before its end", function()
    order { pause = true, by = "ann" }
    here.pass(4)
    assert.is_true((one.refresh()))
    here.pass(0)
    assert.equal("paused: paused by ann", one.barred)
    one.release()
    here.pass(2)
    assert.same({ nil, { pause = true, by = "ann" } }, { here.record("a").by, here.record("a").orders })
    local granted, why = one.claim()
    assert.same({ false, "paused by ann" }, { granted, why.ordered })
    here.pass(0)
    order(nil)
    here.pass(1)
    assert.is_nil(one.barred)
    assert.is_true((one.claim()))
  end)

  it("a pause that lets the leader go on, until it leads no more", function()
    order { pause = true, keep = true }
    here.pass(4)
    assert.is_true((one.refresh()))
    here.pass(1)
    assert.is_nil(one.barred)
    one.release()
    here.pass(2)
    assert.equal("paused: paused; a leader may go on", one.barred)
    assert.is_false((one.claim()))
  end)

  it("a pause, as a follower that hears of it at its claim", function()
    one.release()
    here.pass(2)
    order { pause = true, ["until"] = here.now() + 30 }
    assert.is_false((one.claim()))
    here.pass(0)
    assert.matches("paused until", one.barred)
    here.pass(28)
    assert.is_truthy(one.barred)
    here.pass(2)
    assert.is_nil(one.barred)
    assert.is_true((one.claim()))
    assert.is_nil(here.record("a").orders)
  end)

  it("a hand-over, and leads again when nobody has come within its time", function()
    order { to = "other", within = 6 }
    here.pass(4)
    assert.is_true((one.refresh()))
    here.pass(0)
    assert.equal("handover: handed over to other", one.barred)
    one.release()
    here.pass(2)
    assert.is_nil(one.barred)
    local granted, why = one.claim()
    assert.same({ false, "handed over to other" }, { granted, why.ordered })
    assert.is_true(why.wait > 3 and why.wait <= 6, why.wait)
    here.pass(why.wait)
    assert.is_true((one.claim()))
    assert.is_nil(here.record("a").orders)
    here.pass(2)
    assert.is_nil(one.barred) -- by what it ordered of the term before
  end)

  it("what a record says that stands over its claim when that is found to be won (S1)", function()
    one.release()
    here.pass(2)
    function here.on_swap(writes)
      if writes[1].name ~= "a" then return end
      here.on_swap = nil
      here.rows.a = { text = writes[1].text:gsub("^{", '{"orders":{"pause":true},'), version = "paused" }
    end
    assert.is_true((one.claim()))
    here.pass(4)
    assert.is_true((one.refresh()))
    here.pass(0)
    assert.equal("paused: paused", one.barred)
  end)

  it("and says each hour in the log that there is no end to a pause", function()
    one.release()
    here.pass(2)
    order { pause = true }
    assert.is_false((one.claim()))
    here.pass(3599)
    assert.is_nil(one.reminded_of)
    here.pass(3)
    assert.equal("paused", one.reminded_of)
    one.reminded_of = nil
    here.pass(3590)
    assert.is_nil(one.reminded_of)
  end)

  it("at the cost of no look where nothing is ordered", function()
    one.release()
    here.pass(2)
    local looks = here.looks
    here.pass(60)
    assert.equal(looks, here.looks)
  end)
end)
