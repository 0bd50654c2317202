-- A term whose store was put back to an older state (S9), where sessions and elections have one memory.
local world = require "support.played_register"

local TTL = 12
local DELAY = TTL / 3

-- The session is seen there, the election is not.
local function hide_elections(here)
  here.on_look = function(names) here.deaf = names[1]:sub(1, 1) ~= "@" end
end

describe("a term in another memory than its session (S9)", function()
  local here, one, ends

  before_each(function()
    here = world()
    here.store.whole = true
    one = here.member "a"
    assert.is_true(one.claim())
    ends = here.now() + TTL
    hide_elections(here)
  end)

  local function move(memory)
    here.memory = memory
    here.pass(DELAY)
    local granted, _, grant = one.refresh()
    assert.is_true(granted)
    return here.now() + grant.ttl
  end

  it("lasts for as long as the renewals in its own give it", function()
    assert.near(ends, move "another", 1e-9)
    assert.is_nil(one.session.renewals.sent) -- no renewal counts by itself
  end)

  it("lasts no longer where the memory changes more than once", function()
    move "another"
    assert.near(ends, move "a third", 1e-9)
  end)

  it("lasts by all renewals again when it is written there", function()
    move "another"
    here.on_look, here.deaf = nil, false
    here.pass(DELAY)
    local granted, _, grant = one.refresh()
    assert.same({ true, TTL }, { granted, grant.ttl })
    assert.equal("another", here.record("a").memory)
  end)

  it("is written there also after a write that failed", function()
    here.on_look = nil
    here.on_swap = function(writes) writes[1].memory = writes[1].name == "a" and "none" or writes[1].memory end
    move "another"
    assert.equal("m", here.record("a").memory)
    here.on_swap = nil
    here.pass(DELAY)
    assert.is_true((one.refresh()))
    assert.equal("another", here.record("a").memory)
  end)

  it("lasts by each renewal where sessions and elections have memories of their own", function()
    here.store.whole = false
    assert.near(here.now() + DELAY + TTL, move "another", 1e-9)
  end)

  it("that was given back is waited for as one that the store may have lost, and is not said to be missing", function()
    here.on_look = nil
    one.release()
    here.memory = "another"
    here.begin "u"
    local granted, why = here.member("a").claim()
    assert.same({ false, true, true }, { granted, why.amnesia, why.back })
  end)

  it("is claimed by others when the last renewal there has run out, and no doubt is written", function()
    here.on_look = nil
    here.memory = "another"
    here.begin "u"
    local other = here.member "a"
    local granted, why = other.claim()
    assert.same({ false, true }, { granted, why.unsure })
    assert.near(TTL * 1.01 + 0.25, why.wait, 1e-9)
    here.pass(why.wait)
    assert.is_true(other.claim())
    assert.equal(other.session.name, here.record("a").by)
  end)
end)
