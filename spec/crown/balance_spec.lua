-- Which share a node takes from another one.
local balance = require "crown.election.balance"

describe("the balance of shares", function()
  local function first() return 1 end
  local function last(count) return count end

  it("takes one of the node that has the most, where that has at least two more", function()
    local cases = { -- who leads, as a, b and me; which is taken
      { "aa", 1 }, { "a", nil }, { "aam", nil }, { "aaam", 1 }, { "abb", 2 }, { "aabb", 1 }, { "aabbm", nil }, { "mmm", nil },
      { "--", nil }, { "-a-a", 2 }, { "maaabbbb", 5 }, { "", nil },
    }
    for i = 1, 12 do
      local leaders = {}
      for letter in cases[i][1]:gmatch "." do
        leaders[#leaders + 1] = letter ~= "-" and (letter == "m" and "me" or letter)
      end
      assert.same({ i, cases[i][2] }, { i, balance.pick(leaders, "me", first) })
    end
    assert.equal(3, balance.pick({ "a", "b", "a" }, "me", last))
  end)

  it("leaves what is paused, and takes another one's then", function()
    local function pick(text, ...)
      local leaders, stays = {}, {}
      for letter in text:gmatch "." do leaders[#leaders + 1] = letter end
      for _, number in ipairs { ... } do stays[number] = true end
      return balance.pick(leaders, "me", last, stays)
    end
    assert.equal(3, pick("aaab", 4))
    assert.equal(2, pick("aab", 1))
    assert.equal(5, pick("aaabb", 1, 2, 3))
    assert.is_nil(pick("aab", 1, 2))
  end)

  it("is reached by steps that each make it more even, and then nothing moves", function()
    local nodes, leaders, moves = { "a", "b", "c" }, {}, 0
    for i = 1, 20 do leaders[i] = "a" end
    local is_moving
    repeat
      is_moving = false
      for _, node in ipairs(nodes) do
        local number = balance.pick(leaders, node, math.random)
        if number then leaders[number], is_moving, moves = node, true, moves + 1 end
      end
    until not is_moving
    local counts = { a = 0, b = 0, c = 0 }
    for _, leader in ipairs(leaders) do counts[leader] = counts[leader] + 1 end
    assert.same({ 13, 20 }, { moves, counts.a + counts.b + counts.c })
    for _, node in ipairs(nodes) do assert.is_true(counts[node] >= 6 and counts[node] <= 7) end
  end)
end)
