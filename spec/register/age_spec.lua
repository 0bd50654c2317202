-- A store that tells how old its records are, by its own clock.
local eventually = require "crown.testing.eventually"
local Oracle = require "crown.register.oracle"
local Store = require "crown.stores.memory"
local tools = require "crown.register.tools"

local TTL = 12

describe("a register that tells how old its records are", function()
  local store, age

  before_each(function()
    store, age = Store.open(), 0
    local look = store.look
    function store.look(...)
      local answers = look(...)
      for _, answer in pairs(answers) do answer.age = age end
      return answers
    end
  end)

  local function candidate(token, election)
    local state = assert(Oracle.join({}, store, { name = "job", place = "p", token = token, node = token, ttl = TTL, delay = TTL / 3,
      timeout = 1, amnesia_wait = 0, remembers = true, election = election or { send = function() end } }))
    return state
  end

  local function claim(token) return candidate(token):claim() end

  it("proves nothing of a holder by a clock that was set back", function()
    assert.is_true((claim "ann"))
    age = -3600
    local verdict, holder = claim "ben"
    assert.same({ false, true }, { verdict, holder.unsure })
    assert.is_nil(assert(tools.list(store, { "job" }))[1].renewed_ago)
  end)

  it("has holders of which each is known to live where the store says that it was just renewed", function()
    assert.is_true((claim "ann"))
    age = TTL - 1
    local granted, holder = claim "ben"
    assert.same({ false, "ann" }, { granted, holder.node })
    assert.is_nil(holder.unsure)
  end)

  it("has holders that are watched where the store says that they are old", function()
    assert.is_true((claim "ann"))
    age = 1000 * TTL
    local granted, holder = claim "ben"
    assert.same({ false, true }, { granted, holder.unsure })
  end)

  it("tells of the first renewal to a candidate that waits for it", function()
    age = nil
    local told = false
    local leader, follower = candidate "ann", candidate("ben", { send = function() told = true end })
    leader:claim()
    assert.is_true(select(2, follower:claim()).unsure)
    eventually(function() return leader:refresh() and told end, 10)
    assert.is_nil(select(2, follower:claim()).unsure)
  end)

  it("has that age shown", function()
    assert.is_true((claim "ann"))
    age = 3
    assert.matches("^ann, epoch %d+, renewed 3 s ago by the store's clock$", tools.health(store, "job").facts[1][2])
  end)
end)
