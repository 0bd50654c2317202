-- A runtime that ends gives back all that it leads by one write.
local core = require "crown.core"
local eventually = require "crown.testing.eventually"
local Oracle = require "crown.register.oracle"
local Store = require "crown.stores.memory"

local TTL, MANY = 12, 300

local function candidate(kinds, store, token, name)
  return assert(Oracle.join(kinds, store, { name = name, place = "p", token = token, node = token, ttl = TTL, delay = TTL / 3,
    timeout = 1, amnesia_wait = 0, remembers = true, election = { send = function() end } }))
end

describe("the end of a runtime", function()
  local store, led

  local function lead(count)
    local kinds = {}
    store, led = Store.open(), {}
    for i = 1, count do
      led[i] = candidate(kinds, store, "ann", "job-" .. i)
      assert.is_true((led[i]:claim()))
    end
  end

  -- @return the number of writes
  local function give_back(from)
    local before, left = store.writes, #led - from + 1
    for i = from, #led do
      core.spawn(function()
        led[i]:abdicate()
        left = left - 1
      end)
    end
    eventually(function() return left == 0 end, 20)
    return store.writes - before
  end

  it("is one write, after which others lead at once", function()
    lead(MANY)
    assert.equal(1, give_back(1))
    local kinds = {}
    for i = 1, MANY do assert.is_true((candidate(kinds, store, "ben", "job-" .. i):claim())) end
  end)

  it("is one write for each election where there are few, of which their followers hear, and one that deletes the session", function()
    lead(3)
    assert.equal(3 + 1, give_back(1))
    for name in pairs(store.texts) do assert.is_nil(name:match "^@") end
  end)

  it("leaves alone what goes on to be led", function()
    lead(MANY + 1)
    assert.equal(MANY, give_back(2))
    assert.is_true((led[1]:refresh()))
    assert.is_false((candidate({}, store, "ben", "job-1"):claim()))
    assert.is_true((candidate({}, store, "ben", "job-2"):claim()))
  end)
end)
