local Followers = require "crown.oracle.followers"

describe("those who follow leases", function()
  local followers

  before_each(function() followers = Followers.new() end)

  local function names(name)
    local found = {}
    for one in followers:of(name) do found[#found + 1] = one.id end
    table.sort(found)
    return table.concat(found, " ")
  end

  local function collect()
    for _ = 1, 3 do collectgarbage() end
  end

  it("are found by name, one or several, and all together", function()
    local a, b, c, d = { id = "a" }, { id = "b" }, { id = "c" }, { id = "d" }
    followers:add("x", a)
    for _, one in ipairs { b, c, d } do followers:add("y", one) end
    assert.same({ "a", "b c d", "" }, { names "x", names "y", names "z" })
    assert.equal(4, #followers:all())
    assert.same({ a, b, c, d }, { a, b, c, d }) -- held until here
  end)

  it("are gone when nobody holds them any more, each by itself", function()
    local held = { { id = "a" }, { id = "b" }, { id = "c" } }
    for _, one in ipairs(held) do followers:add("x", one) end
    followers:add("y", { id = "d" })
    held[1] = nil
    collect()
    assert.same({ "b c", "" }, { names "x", names "y" })
    held[3] = nil
    collect()
    assert.equal("b", names "x")
    held[2] = nil
    collect()
    assert.same({}, followers.by_name)
  end)

  it("may follow on several servers", function()
    local other, a, b = Followers.new(), { id = "a" }, { id = "b" }
    for _, one in ipairs { a, b } do
      followers:add("x", one)
      other:add("x", one)
    end
    collect()
    assert.equal("a b", names "x")
    assert.equal(2, #other:all())
    assert.same({ a, b }, { a, b })
  end)
end)
