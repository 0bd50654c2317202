-- A session and its elections over a store that a spec plays by hand: what chance finds too seldom.
local world = require "support.played_register"

local TTL = 12

describe("a session", function()
  it("that was renewed too late is over: another life begins, with another number (S3)", function()
    local here = world()
    local one = here.member "a"
    assert.is_true(one.claim())
    local life = here.life()
    here.pass(TTL / 2)
    here.lasts = TTL / 2
    assert.is_false((one.refresh()))
    here.lasts = 0
    assert.is_true(one.claim())
    assert.is_true(here.life() > life)
  end)

  it("counts from before its renewal was sent, also for those who ask afterwards (S3)", function()
    local here = world()
    local one, two = here.member "a", here.member "b"
    assert.is_true(one.claim())
    assert.is_true(two.claim())
    here.pass(4)
    here.lasts = 0.25
    assert.is_true(one.refresh())
    here.lasts = 0
    here.pass(0.25)
    local granted, _, grant = two.refresh()
    assert.same({ true, TTL - 0.75, 0.75 }, { granted, grant.ttl, grant.past }) -- the renewal, the look at its terms, and the pause
  end)

  it("is renewed again by a refresh that comes long after the last renewal", function()
    local here = world()
    local one, two = here.member "a", here.member "b"
    assert.is_true(one.claim())
    assert.is_true(two.claim())
    here.pass(4)
    assert.is_true(one.refresh())
    local version = here.rows["@t-12"].version
    here.pass(2)
    assert.is_true(two.refresh())
    assert.is_true(here.rows["@t-12"].version > version)
  end)

  it("is renewed again when the wall clock was set since the last renewal (R15)", function()
    local here = world()
    local one, two = here.member "a", here.member "b"
    assert.is_true(one.claim())
    assert.is_true(two.claim())
    here.pass(4)
    assert.is_true(one.refresh())
    local version = here.rows["@t-12"].version
    here.offset = 0.2
    assert.is_true(two.refresh())
    assert.is_true(here.rows["@t-12"].version > version)
  end)

  -- Another runtime leads and gives back.
  local function given_back(here)
    local one = here.member "a"
    assert.is_true(one.claim())
    one.release()
    local freed = here.rows.a
    here.begin "u"
    assert.is_true(here.member("b").claim()) -- its session is there
    return freed, here.looks
  end

  it("claims without a look what the store has told that it is free (S1)", function()
    local here = world()
    local freed, looks = given_back(here)
    here.hear("a", freed.text, freed.version)
    assert.is_true(here.member("a").claim())
    assert.equal(looks, here.looks)
  end)

  it("looks where what the store has told does not stand any more (S1)", function()
    local here = world()
    local freed = given_back(here)
    here.begin "v"
    local other = here.member "a"
    assert.is_true(other.claim())
    here.begin "u"
    here.hear("a", freed.text, freed.version)
    local granted, why = here.member("a").claim()
    assert.same({ false, "n" }, { granted, why.node })
    assert.is_true(here.looks > 0)
  end)

  it("claims nothing by news that says less than it has seen, or that somebody leads (S1, S2)", function()
    local here = world()
    local freed = given_back(here)
    local one = here.member "a"
    assert.is_true(one.claim())
    local led = here.rows.a
    one.release()
    local looks = here.looks
    for _, news in ipairs { freed, led } do
      here.rows.a = { text = news.text, version = news.version } -- it went back
      here.hear("a", news.text, news.version)
      assert.is_false((one.claim()))
      assert.is_true(here.looks > looks)
      looks = here.looks
    end
  end)

  it("refreshes a term again before it ends, where looks at it fail (S6)", function()
    local here = world()
    local one = here.member "a"
    assert.is_true(one.claim())
    here.deaf = true
    local left, halves = TTL, 0
    for _ = 1, 10 do
      local granted, delay, grant = one.refresh()
      assert.is_true(granted and delay < grant.ttl, ("a delay of %s s within %s s"):format(delay, grant and grant.ttl))
      if math.abs(delay - grant.ttl / 2) < 1e-9 then halves = halves + 1 end
      left = grant.ttl
      here.pass(delay)
    end
    assert.is_true(left < TTL and halves >= 3, halves .. " times when half of it was over")
    here.deaf = false
    assert.is_true(one.refresh())
    local _, _, grant = one.refresh()
    assert.is_true(grant.ttl > TTL / 2)
  end)

  it("is written for nobody who only follows", function()
    local here = world()
    assert.is_true(here.member("a").claim())
    here.begin "u"
    assert.is_false((here.member("a").claim()))
    assert.is_nil(here.rows["@u-12"])
    assert.is_true(here.member("b").claim())
    assert.is_table(here.rows["@u-12"])
  end)

  it("that has died is deleted an hour after somebody has taken over from it, unless it lives again", function()
    for _, lives_again in ipairs { false, true } do
      local here = world()
      here.store.deletes = true
      assert.is_true(here.member("a").claim())
      here.begin "u"
      local successor = here.member "a"
      assert.is_false((successor.claim()))
      here.pass(TTL + 1)
      assert.is_true(successor.claim())
      if lives_again then here.rows["@t-12"].version = "another" end
      for _ = 1, 898 do
        here.pass(TTL / 3)
        assert.is_true((successor.refresh()))
      end
      assert.is_table(here.rows["@t-12"])
      for _ = 1, 3 do
        here.pass(TTL / 3)
        assert.is_true((successor.refresh()))
      end
      assert.equal(lives_again, here.rows["@t-12"] ~= nil)
      assert.is_table(here.rows["@u-12"])
    end
  end)

  it("is over where its record stands in another version, also with the same text (S3)", function()
    local here = world()
    local one = here.member "a"
    assert.is_true(one.claim())
    local life = here.life()
    here.rows["@t-12"].version = 1000 -- somebody wrote it a second time
    here.pass(4)
    assert.is_false((one.refresh()))
    assert.is_true(one.claim())
    assert.is_true(here.life() > life)
  end)

  it("looks at terms of which one ends meanwhile", function()
    local here = world()
    local one, two = here.member "a", here.member "b"
    assert.is_true(one.claim())
    assert.is_true(two.claim())
    here.pass(4)
    function here.on_look()
      here.on_look = nil
      one.release()
    end
    assert.is_true((two.refresh()))
    assert.is_nil(here.on_look)
    assert.is_nil(here.record("a").by)
    assert.is_truthy(here.record("b").by)
  end)

  it("knows what it has given back: a record from before that is older (S8)", function()
    local here = world()
    local one, two = here.member "a", here.member "b"
    assert.is_true(two.claim())
    assert.is_true(one.claim())
    local led = here.rows.a.text
    one.release()
    assert.is_true((two.refresh())) -- all is settled
    here.rows.a = { text = led:gsub('"by":"[^"]*",?', ""):gsub('"at":%d+,?', ""):gsub(",}", "}"), version = 1000 }
    assert.is_nil(here.record("a").by)
    local granted, why = one.claim()
    assert.same({ false, true }, { granted, why.amnesia })
  end)

  it("gives back a term that its candidate does not refresh (S7)", function()
    local here = world()
    local one, two = here.member "a", here.member "b"
    assert.is_true(one.claim())
    assert.is_true(two.claim())
    for _ = 1, 4 do
      here.pass(4)
      assert.is_true(one.refresh())
    end
    two.release() -- what is owed is written with the next question
    assert.is_nil(here.rows.b.text:find '"by"')
    assert.is_truthy(here.rows.a.text:find '"by"')
    assert.is_false((two.refresh()))
  end)

  it("waits out a doubt of its own once: from when that was written (S8)", function()
    local here = world()
    here.trusts = false
    local one = here.member "a"
    local verdict, denial = one.claim()
    assert.same({ false, true }, { verdict, denial.amnesia })
    here.pass(denial.wait + 0.01)
    assert.is_true(one.claim())
  end)

  it("waits for a peer that writes no records until its lease is over by the store's clock, and no longer", function()
    local here = world()
    local one, other = here.member "a", here.member "b"
    assert.is_true(other.claim())
    local text = '{"v":1,"serial":5,"memory":"m","epoch":3,"by":"@other-12","at":1,"node":"o","nonce":"n"}'
    here.rows.a = { text = text, version = 1000, peer = { node = "peer", epoch = 8, wait = 5 } }
    here.rows["@other-12"] = { text = '{"v":1,"serial":1,"memory":"m","ttl":12,"at":1,"node":"o","nonce":"o"}', version = 1001 }
    local verdict, holder = one.claim()
    assert.is_false(verdict)
    assert.same({ "peer", 5 }, { holder.node, holder.wait })
    here.rows.a.peer.wait = 0
    here.rows["@other-12"].version = 1002 -- that session goes on, but does not hold this any more
    local granted, _, grant = one.claim()
    assert.is_true(granted)
    assert.equal(9, grant.epoch)
  end)

  it("has lost a term that a peer has written over", function()
    local here = world()
    local one, other = here.member "a", here.member "b"
    assert.is_true(one.claim())
    assert.is_true(other.claim())
    here.rows.a.peer, here.rows.a.version = { node = "peer", epoch = 0, wait = 5 }, 1000
    here.pass(4)
    local verdict, why = one.refresh()
    assert.is_false(verdict)
    assert.equal("peer", why.node)
    assert.is_true(other.refresh())
  end)
end)
