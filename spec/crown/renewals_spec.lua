-- One renewal of a session refreshes all of its terms.
local core = require "crown.core"
local crown = require "crown"
local elections = require "crown.core.election"
local eventually = require("crown.testing").eventually
local memory = require "crown.oracles.memory"
local record = require "crown.register.record"
local Store = require "crown.stores.memory"

local COUNT, TTL, REFRESH = 1000, 3, 0.5

describe("a session's renewal", function()
  local store, asked, open, refresh, running

  before_each(function()
    asked, running, open, refresh = 0, {}, Store.open, memory.refresh
    Store.open = function(place)
      store = open(place)
      store.tells_all = false -- the tests write behind its back
      return store
    end
    memory.refresh = function(self)
      asked = asked + 1
      return refresh(self)
    end
  end)

  after_each(function()
    Store.open, memory.refresh = open, refresh
    for _, one in ipairs(running) do one:stop() end
    eventually(function()
      for _, one in ipairs(running) do
        if not one.handle:finished() then return false end
      end
      return true
    end, 30)
  end)

  local function lead(space, count)
    for i = 1, count do
      running[i] = crown.elect { name = space .. i, oracle = ("memory:%s?ttl=%g&refresh=%g"):format(space, TTL, REFRESH) }
    end
    eventually(function()
      for i = 1, count do
        if not running[i]:is_leader() then return false end
      end
      return true
    end, 30)
  end

  local function refreshed() return elections.counts()["leadership.refreshed"] end

  it("refreshes a thousand terms without asking an oracle, by a write each time", function()
    lead("renewed-all-", COUNT)
    local writes, before, from = store.writes, refreshed(), core.now()
    local asked_before = asked
    eventually(function() return refreshed() - before >= 8 * COUNT end, 30)
    assert.equal(asked_before, asked)
    assert.is_true(store.writes - writes <= 2 + (core.now() - from) / (REFRESH * 0.8), "writes: " .. store.writes - writes)
    for i = 1, COUNT do assert.is_true(running[i]:is_leader()) end
  end)

  -- Over what stands there, as another candidate would.
  local function overwrite(name, change)
    local text = store.texts[name]
    local one = assert(record.parse(text, name))
    change(one)
    one.serial = one.serial + 1
    assert.is_string(store:swap { { name = name, version = text, memory = "", text = record.text(one, "of another") } }[1])
  end

  local function all_but_first_lead(count)
    for i = 2, count do assert.is_true(running[i]:is_leader()) end
  end

  it("refreshes no term that another holds", function()
    lead("renewed-taken-", 10)
    overwrite("renewed-taken-1", function(one) one.by, one.node, one.epoch = "@other-3", "other", one.epoch + 1 end)
    eventually(function() return not running[1]:is_leader() end, TTL)
    all_but_first_lead(10)
  end)

  it("refreshes no term for long whose record is gone, although nothing tells of that", function()
    lead("renewed-gone-", 10)
    store.texts["renewed-gone-1"] = nil
    local from = core.now()
    eventually(function() return running[1]:status().epoch > 1 end, 3 * TTL)
    assert.is_true(core.now() - from < 2 * TTL)
    all_but_first_lead(10)
  end)

  it("refreshes no term whose leader is asked to go", function()
    lead("renewed-evicted-", 10)
    overwrite("renewed-evicted-1", function(one) one.directive = "evict" end)
    eventually(function() return running[1]:status().epoch > 1 or not running[1]:is_leader() end, TTL)
    all_but_first_lead(10)
  end)
end)
