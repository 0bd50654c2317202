-- What a session's own record has to say, over a store that a spec plays by hand, at the instants at which one says something else.
local held = require "support.held_register"
local world = require "support.played_register"

local TTL, MARGIN, SESSION, used = held.TTL, held.MARGIN, held.SESSION, held.used

describe("a renewal without an answer (S3)", function()
  it("counts from its sending when a look finds it", function()
    local here, one = used()
    here.pass(4)
    here.mute = true
    assert.is_nil((one.refresh()))
    here.mute = false
    here.pass(1)
    local granted, _, grant = one.refresh()
    assert.same({ true, TTL - 1, 1 }, { granted, grant.ttl, grant.past })
  end)

  it("that was not carried out is made again", function()
    local here, one = used()
    here.pass(4)
    here.closed = true
    assert.is_nil((one.refresh()))
    here.closed = false
    here.pass(1)
    local granted, _, grant = one.refresh()
    assert.same({ true, TTL, nil }, { granted, grant.ttl, grant.past })
  end)

  it("that begins a life counts when a look finds it before its deadline", function()
    local here = world()
    local one = here.member "a"
    here.mute = true
    assert.is_nil((one.claim()))
    local version = here.rows[SESSION].version
    here.mute = false
    here.pass(5)
    local granted, _, grant = one.claim()
    assert.same({ true, TTL - 5, 5 }, { granted, grant.ttl, grant.past })
    assert.equal(version, here.rows[SESSION].version)
  end)

  it("that begins a life is made again after its deadline, in that life", function()
    local here = world()
    local one = here.member "a"
    here.mute = true
    assert.is_nil((one.claim()))
    local life = here.life()
    here.mute = false
    here.pass(TTL - MARGIN)
    local granted, _, grant = one.claim()
    assert.same({ true, TTL, nil }, { granted, grant.ttl, grant.past })
    assert.equal(life, here.life())
  end)

  it("leads no longer than the one before", function()
    local here, one = used()
    here.pass(4)
    here.mute = true
    assert.is_nil((one.refresh()))
    here.mute = false
    here.pass(TTL - MARGIN - 4)
    local granted, why = one.refresh()
    assert.same({ false, "the session was not renewed in time" }, { granted, why.error })
  end)
end)

describe("a session's record", function()
  it("that another runtime has written ends all terms", function()
    local here, one, two = used { "a", "b" }
    here.rows[SESSION] = { text = here.rows[SESSION].text:gsub('"serial":%d+', '"serial":99'):gsub('"nonce":"%d+"', '"nonce":"z"'),
      version = "another" }
    here.pass(4)
    local granted, why = one.refresh()
    assert.same({ false, "another runtime writes the record of this session" }, { granted, why.error })
    assert.is_nil(why.amnesia)
    granted, why = two.refresh()
    assert.same({ false, "another runtime writes the record of this session" }, { granted, why.error })
  end)

  it("that is older than what the store has confirmed ends all terms, as with a store that forgot", function()
    local here, one = used()
    local before = here.rows[SESSION]
    here.pass(4)
    assert.is_true((one.refresh()))
    here.rows[SESSION] = before
    here.pass(4)
    local granted, why = one.refresh()
    assert.same({ false, true, "the store has gone back: its record of this session is older than the last one" },
      { granted, why.amnesia, why.error })
  end)

  it("that is missing ends all terms, as with a store that forgot", function()
    local here, one = used()
    here.rows[SESSION] = nil
    here.pass(4)
    local granted, why = one.refresh()
    assert.same({ false, true, "the store has no record of this session any more" }, { granted, why.amnesia, why.error })
  end)

  it("has the number of a life above the last one that stands there, and above the time", function()
    local here = world()
    here.rows[SESSION] = { version = "old", text = '{"v":1,"serial":1,"memory":"m","ttl":12,"at":999999999,"node":"n","nonce":"o"}' }
    assert.is_true(here.member("a").claim())
    assert.equal(1000000000, here.life())
    here = world()
    assert.is_true(here.member("a").claim())
    assert.equal(100000, here.life())
  end)

  it("of a later version is left alone", function()
    local here = world()
    here.rows[SESSION] = { version = "new", text = '{"v":2}' }
    local granted, problem, code = here.member("a").claim()
    assert.same({ n = 3, nil, "a newer version of crown-lua wrote the record of '@t-12'", "store" },
      { n = 3, granted, problem, code })
  end)

  it("is not written again by a claim while much of it is left", function()
    local here, one, two = used { "a", "b" }
    local version = here.rows[SESSION].version
    two.release()
    here.pass(TTL / 2 - 0.01)
    local granted, _, grant = two.claim()
    assert.is_true(granted)
    assert.near(TTL / 2 + 0.01, grant.ttl, 1e-9)
    assert.equal(version, here.rows[SESSION].version)
    two.release()
    here.pass(0.01)
    granted, _, grant = two.claim()
    assert.same({ true, TTL }, { granted, grant.ttl })
    assert.is_true((one.refresh()))
  end)

  it("is renewed in the memory of a store that was restarted, and so are its terms (S9)", function()
    local here, one, two = used { "a", "b" }
    local epoch = here.record("a").epoch
    here.memory = "another"
    here.pass(4)
    assert.is_true((one.refresh()))
    assert.is_true((two.refresh()))
    for _, name in ipairs { "a", "b", SESSION } do assert.equal("another", here.record(name).memory) end
    assert.same({ epoch, SESSION }, { here.record("a").epoch, here.record("a").by })
  end)

  it("waits to begin another life until the trees of the last one have passed their deadlines", function()
    local here, one, two = used { "a", "b" }
    here.rows[SESSION] = nil
    here.pass(4)
    assert.is_false((one.refresh()))
    local granted, why = one.claim() -- its own tree has gone, that of the other one may last
    assert.is_false(granted)
    assert.near(TTL - 4, why.wait, 1e-9)
    assert.is_nil(here.rows[SESSION])
    here.pass(why.wait)
    assert.is_nil(here.rows[SESSION])
    assert.is_true((one.claim()))
    assert.is_false((two.refresh()))
  end)

  it("waits for the last of those trees", function()
    local here, names = world(), { "a", "b", "c", "d", "e", "f" }
    local members = {}
    for i, name in ipairs(names) do members[i] = here.member(name) end
    for _, one in ipairs(members) do
      assert.is_true((one.claim()))
      here.pass(0.1)
    end
    here.pass(3.4)
    assert.is_true((members[3].refresh())) -- its tree lives longest
    here.rows[SESSION] = nil
    here.pass(4)
    assert.is_false((members[3].refresh()))
    local granted, why = members[1].claim()
    assert.is_false(granted)
    assert.near(TTL - 4, why.wait, 1e-9)
  end)

  it("begins another life at once when the trees of the last one have gone", function()
    local here, one, two = used { "a", "b" }
    local life = here.life()
    here.rows[SESSION] = nil
    here.pass(4)
    assert.is_false((one.refresh()))
    two.release()
    here.pass(0.001)
    assert.is_true((one.claim()))
    assert.is_true(here.life() > life)
  end)
end)
