-- Terms, and how they are given back, over a store that a spec plays by hand, at the instants at which one says something else.
local held = require "support.held_register"

local TTL, EPOCH, SESSION, used, strange = held.TTL, held.EPOCH, held.SESSION, held.used, held.strange

describe("a term", function()
  it("is over when its record is another one of the same version", function()
    local here, one = used()
    local version = here.rows.a.version
    strange(here, "a")
    here.rows.a.version = version
    here.pass(4)
    local granted, why = one.refresh()
    assert.same({ false, "o" }, { granted, why.node })
  end)

  it("is over when another session holds its election", function()
    local here, one = used()
    strange(here, "a")
    here.pass(4)
    local granted, why = one.refresh()
    assert.same({ false, { node = "o", epoch = EPOCH } }, { granted, why })
    assert.is_false(one.stands)
    assert.is_true(one.told > 0)
    assert.equal("x1", here.rows.a.version)
  end)

  it("is over when its election is doubted", function()
    local here, one = used()
    here.rows.a = { text = '{"v":1,"serial":20,"memory":"m","epoch":900000,"doubt":24,"nonce":"x"}', version = "x1" }
    here.pass(4)
    local granted, why = one.refresh()
    assert.same({ false, { epoch = EPOCH, amnesia = true } }, { granted, why })
  end)

  it("is over when its record is missing, which is doubted (S8)", function()
    local here, one = used()
    here.rows.a = nil
    here.pass(4)
    local granted, why = one.refresh()
    assert.same({ false, true, "the store has no record of this term any more" }, { granted, why.amnesia, why.error })
    assert.equal(2 * TTL, here.record("a").doubt)
    assert.equal(here.record("a").epoch, why.epoch)
  end)

  it("goes on when what was missing is back before it is written over", function()
    local here, one = used()
    local row = here.rows.a
    here.rows.a = nil
    here.pass(4)
    here.on_swap = function(writes)
      if writes[1].name == "a" then here.rows.a = row end
    end
    assert.is_true((one.refresh()))
    assert.equal(row, here.rows.a)
  end)

  it("has its candidate asked to go once, and goes on until it is given back (S10)", function()
    local here, one = used()
    local record = here.record "a"
    here.rows.a = { text = here.rows.a.text:gsub("^{", '{"directive":"evict",'), version = "evict" }
    here.pass(4)
    local granted, why = one.refresh()
    assert.same({ false, { evicted = true } }, { granted, why })
    assert.same({ false, 1 }, { one.stands, one.told })
    assert.is_true((one.refresh()))
    one.release()
    here.pass(2)
    assert.same({ nil, nil, record.epoch }, { here.record("a").by, here.record("a").directive, here.record("a").epoch })
  end)

  it("has no other wish for its end", function()
    local here, one = used()
    here.rows.a = { text = here.rows.a.text:gsub("^{", '{"directive":"another",'), version = "wish" }
    here.pass(4)
    assert.is_true((one.refresh()))
    assert.is_true(one.stands)
  end)

  it("is looked at at once where its record has changed", function()
    local here, one, two = used { "a", "b" }
    assert.is_nil((one.look()))
    strange(here, "a")
    assert.same({ false, { node = "o", epoch = EPOCH } }, { one.look() })
    assert.is_nil((two.look()))
    here.deaf = true
    assert.same({ n = 3, nil, "no answer", "timeout" }, { n = 3, two.look() })
    here.deaf = false
    here.rows.b = { text = here.rows.b.text:gsub("^{", '{"directive":"evict",'), version = "evict" }
    assert.same({ false, { evicted = true } }, { two.look() })
  end)

  it("is nobody's after its end", function()
    local here, one = used()
    one.release()
    here.pass(2)
    local granted, why = one.refresh()
    assert.same({ false, "the lease in the store is not this term's" }, { granted, why.error })
    assert.is_nil(here.record("a").by)
  end)

  it("keeps another candidate of its runtime off", function()
    local here, one = used()
    local two = here.member "a"
    here.pass(4)
    local granted, why = two.claim()
    assert.same({ false, "n", here.record("a").epoch, TTL - 4 }, { granted, why.node, why.epoch, why.wait })
    two.release()
    assert.equal(SESSION, here.record("a").by)
    assert.is_true((one.refresh()))
  end)

  it("keeps another candidate of its runtime off until its tree has passed its deadline", function()
    local here, one = used()
    local two = here.member "a"
    strange(here, "a")
    here.pass(4)
    assert.is_false((one.refresh()))
    local granted, why = two.claim()
    assert.same({ false, "n", nil, TTL - 4 }, { granted, why.node, why.epoch, why.wait })
    here.pass(TTL - 4)
    granted, why = two.claim()
    assert.same({ false, "o" }, { granted, why.node })
  end)

  it("ends at its deadline where its candidate refreshes it too late", function()
    local here, one, two = used { "a", "b" }
    for _ = 1, 2 do
      here.pass(5)
      assert.is_true((two.refresh()))
    end
    here.pass(2)
    local granted, why = one.refresh()
    assert.same({ false, "the lease was not refreshed in time" }, { granted, why.error })
    here.pass(2)
    assert.is_nil(here.record("a").by)
    assert.equal(SESSION, here.record("b").by)
  end)

  it("is given back after its deadline where its candidate asks nothing more (S7)", function()
    local here, _, two = used { "a", "b" }
    for _ = 1, 3 do
      here.pass(3.9)
      assert.is_true((two.refresh()))
    end
    assert.equal(SESSION, here.record("a").by)
    here.pass(3.9)
    assert.is_true((two.refresh()))
    here.pass(1)
    assert.is_nil(here.record("a").by)
  end)

  it("goes on past what its oracle has said where its core has a later deadline", function()
    local here, one, two = used { "a", "b" }
    for _ = 1, 2 do
      here.pass(5)
      assert.is_true((two.refresh()))
    end
    local deadline = here.now() + 6
    function one.deadline() return deadline end -- by renewals that count for all terms
    here.pass(2)
    assert.is_true((one.refresh()))
    assert.equal(SESSION, here.record("a").by)
  end)
end)

describe("a release without an answer (S5)", function()
  it("is repeated until it is answered", function()
    local here, one = used()
    here.closed = true
    one.release()
    here.pass(3)
    assert.equal(SESSION, here.record("a").by)
    here.closed = false
    here.pass(1)
    assert.is_nil(here.record("a").by)
  end)

  it("finds out that it was carried out", function()
    local here, one = used()
    local epoch = here.record("a").epoch
    here.mute = true
    one.release()
    here.mute = false
    local version = here.rows.a.version
    here.pass(2)
    assert.same({ version, epoch }, { here.rows.a.version, here.record("a").epoch })
    assert.is_true((one.claim()))
  end)

  it("is given over a wish that came meanwhile", function()
    local here, one = used()
    here.rows.a = { text = here.rows.a.text:gsub("^{", '{"directive":"evict",'), version = "evict" }
    one.release()
    assert.same({ nil, nil }, { here.record("a").by, here.record("a").directive })
  end)

  it("is not given in another memory", function()
    local here, one = used()
    here.memory = "another"
    local version = here.rows.a.version
    one.release()
    here.pass(2)
    assert.equal(version, here.rows.a.version)
  end)

  it("frees nothing in a store that went back, while a later term lasts (S9)", function()
    local here, one = used()
    local backup = { a = here.rows.a, [SESSION] = here.rows[SESSION] }
    here.mute = true
    one.release()
    here.mute = false
    here.begin "later"
    assert.is_true((here.member("a").claim()))
    here.rows.a, here.rows[SESSION], here.rows["@later-12"], here.memory = backup.a, backup[SESSION], nil, "another"
    here.pass(2) -- the first runtime looks whether its release was carried out
    here.begin "third"
    local granted, why = here.member("a").claim()
    assert.is_false(granted)
    assert.is_true(why.wait >= TTL)
  end)
end)
