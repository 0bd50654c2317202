local fake_clock = require("crown.testing").fake_clock
local Doubt = require "crown.oracle.doubt"
local Trust = require "crown.oracle.trust"

local serial = 0
local DOUBT = Doubt.of("redis", "redis://db", { amnesia_wait = 30 })

describe("a store that may have forgotten", function()
  local clock, trust

  before_each(function()
    clock = fake_clock()
    serial = serial + 1
    trust = Trust.of("store-" .. serial)
    trust:lasts(10)
  end)
  after_each(function() clock:restore() end)

  it("is one and the same for all who name it", function()
    assert.equal(trust, Trust.of("store-" .. serial))
    assert.are_not.equal(trust, Trust.of "another")
  end)

  it("is believed while the same memory answers and goes on", function()
    assert.is_true(trust:saw { identity = "a", at = 1 })
    assert.is_true(trust:saw { identity = "a", at = 1, age = 10 })
    assert.is_true(trust:saw { at = 2 })
    assert.is_nil((trust:denial(DOUBT)))
  end)

  for what, answer in pairs {
    ["another memory answers"] = { identity = "b", at = 9 },
    ["it has gone back"] = { identity = "a", at = 4 },
    ["it is younger than a lease"] = { identity = "a", at = 5, age = 0 },
  } do
    it("is sat out for the longest TTL when " .. what, function()
      trust:saw { identity = "a", at = 5 }
      assert.is_false(trust:saw(answer))
      local granted, holder = trust:denial(DOUBT)
      assert.same({ false, true, 10 }, { granted, holder.amnesia, holder.expires_in })
      assert.matches("^redis at db may have lost records: .* Waiting 10 s, until every lease that it may have granted is over%.$",
        holder.error)
      clock:advance(9.9)
      assert.is_false((trust:denial(DOUBT)))
      clock:advance(0.2)
      assert.is_nil((trust:denial(DOUBT)))
      assert.is_true(trust:saw { identity = answer.identity, at = answer.at })
    end)
  end

  it("is sat out when it is behind what was heard of it", function()
    trust:saw { identity = "a", at = 5 }
    trust:reached(4)
    assert.is_true(trust:saw { identity = "a", at = 5 })
    trust:reached(7)
    assert.is_false(trust:saw { identity = "a", at = 6 })
  end)

  it("is believed when an older answer comes after a newer one", function()
    trust:saw { identity = "a", at = 5 }
    local known = trust.at
    assert.is_true(trust:saw { identity = "a", at = 7, known = known })
    assert.is_true(trust:saw { identity = "a", at = 6, known = known })
    assert.equal(7, trust.at)
    assert.is_false(trust:saw { identity = "a", at = 6, known = 7 })
  end)

  it("tells apart another memory, and one that has gone back, from one that is only young", function()
    assert.same({ true, false }, { trust:saw { identity = "a", at = 5 } })
    assert.same({ false, false }, { trust:saw { identity = "a", at = 5, age = 1 } })
    assert.same({ false, true }, { trust:saw { identity = "b", at = 6 } })
    assert.same({ false, true }, { trust:saw { identity = "b", at = 3 } })
    assert.same({ false, false }, { trust:saw { identity = "b", at = 3 } })
  end)

  it("is the same memory while answers say only one of who it is and how far it came", function()
    trust:saw { identity = "a", at = 5 }
    assert.is_true(trust:saw { at = 6 })
    assert.is_true(trust:saw { identity = "a" })
    assert.is_false(trust:saw { identity = "b", at = 7 })
  end)

  it("is as far as what answered last, once that was another memory", function()
    trust:saw { identity = "a", at = 9 }
    trust:saw { identity = "b", at = 5, known = 2 }
    clock:advance(10.1)
    assert.is_true(trust:saw { identity = "b", at = 6 })
  end)

  it("is as far as was heard of it before the first answer", function()
    trust:reached(4)
    trust:reached(2)
    assert.is_false(trust:saw { identity = "a", at = 3 })
  end)

  it("is believed at once where nobody was promised anything", function()
    local new = Trust.of("new-" .. serial)
    assert.is_nil((new:denial(DOUBT)))
    new:doubt()
    assert.equal(0, new:left())
  end)

  it("is said to be empty while what was lost may be longer leases, and no longer", function()
    trust:lost(20)
    assert.matches("has no record of this election", select(2, trust:denial(DOUBT)).error, 1, true)
    clock:advance(15)
    trust:doubt()
    clock:advance(5)
    assert.matches("may have lost records", select(2, trust:denial(DOUBT)).error, 1, true)
    local doubted = Trust.of("doubted-" .. serial)
    doubted:lasts(10)
    doubted:doubt()
    assert.matches("may have lost records", select(2, doubted:denial(DOUBT)).error, 1, true)
  end)

  it("is sat out from when it began, where it tells its age", function()
    trust:saw { age = 4 }
    assert.equal(6, trust:left())
  end)

  it("is sat out longer when a longer TTL is heard of, from the same instant on", function()
    trust:saw { identity = "a" }
    trust:saw { identity = "b" }
    clock:advance(4)
    trust:lasts(60)
    assert.equal(56, trust:left())
    trust:lasts(1)
    assert.equal(56, trust:left())
  end)

  it("is sat out for as long as what was lost may last, where that is longer", function()
    trust:lost(60)
    trust:lost(20)
    assert.equal(60, trust:left())
    clock:advance(55)
    trust:doubt()
    assert.equal(10, trust:left())
    clock:advance(10.1)
    assert.is_nil((trust:denial(DOUBT)))
  end)

  it("is doubted anew each time, and never for less", function()
    trust:doubt()
    clock:advance(8)
    trust:doubt(5)
    assert.equal(5, trust:left())
    trust:doubt(9)
    assert.equal(5, trust:left())
  end)
end)
