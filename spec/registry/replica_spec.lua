-- A member's copy of the names: what it takes, and in which order only.
local Replica = require "crown.registry.replica"

local function put(name) return { "+", name, "r@a", "t", "1" } end

describe("a copy of the names", function()
  local copy

  before_each(function()
    copy = Replica.new()
    assert.is_true(copy:resume(1, { epoch = 0, seq = 0 }))
  end)

  it("follows a stream only where that goes on", function()
    assert.is_true(copy:follow(1, 1, { put "a", put "b" }))
    for _, one in ipairs { { 1, 1 }, { 1, 2 }, { 1, 4 }, { 2, 3 }, { 2, 1 } } do -- again, half again, a gap, another term
      assert.is_false(copy:follow(one[1], one[2], { put "c" }))
    end
    assert.is_nil(copy:find "c")
    assert.same({ epoch = 1, seq = 2 }, copy.at)
    assert.is_true(copy:follow(1, 3, { put "c" }))
    assert.equal("1", copy:find "c")
  end)

  it("goes on under a new term only from where that began", function()
    assert.is_true(copy:follow(1, 1, { put "a", put "b" }))
    for _, elsewhere in ipairs { { epoch = 1, seq = 1 }, { epoch = 1, seq = 3 }, { epoch = 0, seq = 2 } } do
      assert.is_false(copy:resume(2, elsewhere))
    end
    assert.is_true(copy:resume(2, { epoch = 1, seq = 2 }))
    assert.same({ epoch = 2, seq = 0 }, copy.at)
  end)

  it("refuses an epoch older than one that was heard of", function()
    assert.is_true(copy:promise(3))
    assert.is_true(copy:promise(3))
    assert.is_false(copy:promise(2))
    assert.is_true(copy:promise(4))
  end)

  it("gives nobody the names of an owner who is gone, also before their rows are", function()
    copy:follow(1, 1, { put "a", { "+", "b", "r@b", "t", "2" }, { "x", "r@a", "t" } })
    local part = copy:part(copy:walk(), {})
    assert.same({ { "b", "r@b", "t", "2" } }, part.names)
    assert.is_true(part.last)
    assert.is_nil(copy:find "a")
    assert.equal(1, copy:count())
    copy:apply { "-", "b" }
    assert.same({}, copy.names:all_owners())
    while copy:sweep(1) do end
    assert.equal(0, copy.names:places())
  end)

  it("goes on when every number that a row can hold has been an owner's", function()
    copy:apply { "+", "kept", "r@b", "t", "2" }
    copy.names.numbers = 2 ^ 32 - 3
    for i = 1, 6 do
      copy:apply { "+", "a" .. i, "r@a", "t", "1" }
      assert.equal("r@a", select(2, copy:find("a" .. i)))
      copy:apply { "-", "a" .. i }
    end
    assert.equal(1, copy:count())
    assert.equal("r@b", select(2, copy:find "kept"))
  end)

  it("is further by its epoch first, then by its number", function()
    local function reaches(a, b) return Replica.reaches({ epoch = a[1], seq = a[2] }, { epoch = b[1], seq = b[2] }) end
    assert.is_true(reaches({ 2, 1 }, { 1, 100 }))
    assert.is_false(reaches({ 1, 100 }, { 2, 1 }))
    assert.is_true(reaches({ 2, 5 }, { 2, 5 }))
    assert.is_false(reaches({ 2, 4 }, { 2, 5 }))
  end)

  local function part(number, changes)
    local one = { part = number, epoch = 1, seq = 5, last = number == 3, names = { { "n" .. number, "r@a", "t", "1" } } }
    for key, value in pairs(changes or {}) do one[key] = value end
    return one
  end

  it("is gathered from parts without a gap, of one origin", function()
    for _, wrong in ipairs { part(3), part(1 + 3), part(2, { epoch = 2 }), part(2, { seq = 6 }) } do
      assert.is_false(copy:gather(part(1), "r@b"))
      assert.is_nil(copy:gather(wrong, "r@b"))
      assert.is_nil(copy:gather(part(2), "r@b")) -- it begins anew
    end
    assert.is_false(copy:gather(part(1), "r@b"))
    assert.is_nil(copy:gather(part(2), "r@c"))
    for number = 1, 3 do assert.equal(number == 3, copy:gather(part(number), "r@b")) end
    copy:adopt()
    assert.same({ 3, { epoch = 1, seq = 5 } }, { copy:count(), copy.at })
  end)

  it("lets go in steps of what was gathered in vain", function()
    for _, breaks in ipairs { function() copy:gather(part(1), "r@b") end, function() copy:gather(part(3), "r@b") end,
      function() copy:resume(1, { epoch = 0, seq = 0 }) end } do
      assert.is_false(copy:gather(part(1), "r@b"))
      local half = copy.gathered.names
      breaks()
      assert.equal(1, half:places())
      while copy:sweep(1) do end
      assert.equal(0, half:places())
      copy:resume(1, { epoch = 0, seq = 0 })
      while copy:sweep(1) do end
    end
  end)

  -- What follows on the lost half follows on the copy that is here as well, and has to reach that.
  it("forgets a half that was gathered over a link that was lost", function()
    assert.is_true(copy:follow(1, 1, { put "a" }))
    assert.is_false(copy:gather(part(1, { seq = 1 }), "r@b"))
    assert.is_true(copy:resume(1, { epoch = 0, seq = 0 }))
    assert.is_true(copy:follow(1, 2, { put "b" }))
    assert.equal("1", copy:find "b")
    assert.same({ epoch = 1, seq = 2 }, copy.at)
  end)
end)
