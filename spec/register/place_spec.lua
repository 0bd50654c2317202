-- Names that are missing in a store that keeps a mark of what is deleted: the store's own record says when they are new.
local world = require "support.played_register"

local TTL = 12
local DOUBT = 2 * TTL * 1.01 + 0.25

local function stranger(here, token, name)
  here.begin(token)
  return here.member(name)
end

describe("a register that marks what is deleted", function()
  local function used()
    local here = world(true)
    local one = here.member "a"
    assert.is_true(one.claim())
    here.trusts = false
    return here, one
  end

  it("gives a new name at once, also to a runtime that has never been there", function()
    local here = used()
    assert.is_true(stranger(here, "u", "b").claim())
  end)

  it("waits where a record was deleted", function()
    local here = used()
    here.rows.a = { text = false, version = "gone" }
    local granted, why = stranger(here, "u", "a").claim()
    assert.same({ false, true }, { granted, why.amnesia })
  end)

  it("waits where the record of the store is missing, and somebody has seen it or does not trust", function()
    local here = world(true)
    here.trusts = false
    local granted, why = here.member("a").claim()
    assert.same({ false, true }, { granted, why.amnesia })
    here.pass(DOUBT)
    assert.is_true(here.member("a").claim())
    here.rows["@store"] = { text = false, version = "gone" }
    here.trusts = true
    assert.is_false((stranger(here, "u", "b").claim()))
  end)

  it("waits in another memory, for what is missing there", function()
    local here = used()
    here.memory = "another"
    local granted, why = stranger(here, "u", "b").claim()
    assert.same({ false, true }, { granted, why.back })
    here.pass(DOUBT)
    assert.is_true(here.member("b").claim())
  end)

  it("is looked at four times at most while it changes", function()
    local here, looks = world(true), 0
    here.on_look = function(names) looks = looks + (names[1] == "@store" and 1 or 0) end
    here.on_swap = function(writes)
      if writes[1].name ~= "@store" then return end
      here.rows["@store"] = { text = writes[1].text:gsub('"longest":12', '"longest":1'), version = "another's " .. looks }
    end
    assert.same({ n = 3, nil, "the record of the store changes faster than it can be written", "store" },
      { n = 3, here.member("a").claim() })
    assert.equal(4, looks)
  end)

  it("has the doubt of a store that was restarted end before a new election comes", function()
    local here, one = used()
    here.memory = "another"
    for _ = 1, math.ceil(DOUBT / 4) + 1 do
      here.pass(4)
      assert.is_true((one.refresh()))
    end
    assert.is_true(stranger(here, "u", "b").claim())
  end)

  it("tells newcomers of the longest TTL that was in use", function()
    local here = used()
    here.rows["@store"].text = here.rows["@store"].text:gsub('"longest":12', '"longest":100')
    here.memory = "another"
    local _, why = stranger(here, "u", "b").claim()
    assert.is_true(why.wait >= 200)
  end)
end)
