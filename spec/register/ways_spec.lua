-- One runtime that asks one store by several ways: by two of its names, or with other times.
local Oracle = require "crown.register.oracle"
local Store = require "crown.stores.memory"

local TTL = 12

describe("a register that one runtime asks by several ways", function()
  local store, kinds

  before_each(function() store, kinds = Store.open(), {} end)

  local function join(name, more)
    local options = { name = name, place = "here", token = "t", node = "n", ttl = TTL, delay = TTL / 3, timeout = 1,
      amnesia_wait = 0, remembers = true, election = { send = function() end } }
    for key, value in pairs(more or {}) do options[key] = value end
    return assert(Oracle.join(kinds, store, options))
  end

  local function sessions()
    local names = {}
    for name in pairs(store.texts) do
      if name:sub(1, 1) == "@" then names[#names + 1] = name end
    end
    table.sort(names)
    return names
  end

  it("has a session for each, so that none ends another's life while its trees live", function()
    local states = { join "one", join("two", { place = "there" }), join("three", { delay = TTL / 4 }), join "four" }
    for _, state in ipairs(states) do assert.is_true((state:claim())) end
    assert.same({ "@t-12", "@t-12+2", "@t-12+3" }, sessions())
    local rival = join("two", { token = "other" })
    for _ = 1, 3 do
      for _, state in ipairs(states) do
        assert.is_true((state.session:renew()))
        assert.is_true((state:refresh()))
      end
      assert.is_false((rival:claim()))
    end
  end)

  it("has the same ones when it is started anew", function()
    for _ = 1, 2 do
      kinds = {}
      join("two", { place = "there" }):claim()
      join("one"):claim()
      assert.same({ "@t-12", "@t-12+2" }, sessions())
    end
  end)
end)
