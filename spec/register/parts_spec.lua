-- A store whose names do not all stand or fall together: a session for each part of it.
local Oracle = require "crown.register.oracle"
local Store = require "crown.stores.memory"

local TTL = 12

describe("a register in parts", function()
  local function claim(store, kinds, name)
    local state = assert(Oracle.join(kinds, store, { name = name, place = "p", token = "t", node = "n", ttl = TTL, delay = TTL / 3,
      timeout = 1, amnesia_wait = 0, remembers = true, election = { send = function() end } }))
    assert.is_true((state:claim()))
  end

  local function sessions(store)
    local names = {}
    for name in pairs(store.texts) do
      if name:sub(1, 1) == "@" then names[#names + 1] = name end
    end
    table.sort(names)
    return names
  end

  it("has a session for each part that its elections need, which names that part", function()
    local store, kinds = Store.open(), {}
    function store.part_of(_, name) return name:match "^%a+" end
    for _, name in ipairs { "east-1", "east-2", "west-1" } do claim(store, kinds, name) end
    assert.same({ "@t-12@east", "@t-12@west" }, sessions(store))
  end)

  it("has one session where the store has no parts", function()
    local store, kinds = Store.open(), {}
    for _, name in ipairs { "east-1", "west-1" } do claim(store, kinds, name) end
    assert.same({ "@t-12" }, sessions(store))
  end)
end)
