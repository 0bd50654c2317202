--- What a refresher (runtime/candidate/refresher.h) does for a leader, the same for each store that has one: it refreshes and
-- gives back without a call of the oracle, which is asked as soon as anything is not as it was.
local crown = require "crown"
local Elections = require "support.elections"
local eventually = require("crown.testing").eventually

-- busted's own, which a spec's environment has; this module's has not.
local assert = require "luassert"
local busted = require "busted"

local TTL, MANY = 9, 200 -- a lease of which a busy machine makes nobody lose one
local LONG = 12
local PART = 12 -- of it, after which it is refreshed

--- Describes them.
-- @string title
-- @tparam table store `oracle`, the module; `word` of it; `start()`; `url(ttl)`; `amnesia_wait`; of a lease by its name:
-- `ends_at(name)`, which rises with each refresh, `is_free(name, epoch)` after the term of that epoch, `evict(name)`, `take(name)`
-- for somebody else, with what is then said in `taken`, and, where there is such a thing, `reclaim(name)` under another claim and
-- `raise(name)` to another term; `amid`: how one of many is lost, `change(name)`, for which `reason`;
-- `freeze()` and `thaw()` of the server; `more(it, leader, refreshed, is_lost, calls)`: cases of its own
return function(title, store)
  local it, lease = busted.it, store.oracle
  busted.describe(title, function()
    local name, calls, lost, failures
    local mine, refresh, abdicate = Elections.new(), lease.refresh, lease.abdicate

    busted.setup(function()
      store.start()
      crown.on("leadership.lost", function(event)
        if event.name == name then lost = event end
      end)
      crown.on("oracle.error", function(event)
        if event.name == name then failures[#failures + 1] = event["function"] .. ": " .. event.error end
      end)
    end)

    busted.before_each(function()
      name, calls, lost, failures = Elections.unique(), 0, nil, {}
      function lease:refresh()
        calls = calls + 1
        return refresh(self)
      end
      function lease:abdicate()
        calls = calls + 1
        return abdicate(self)
      end
    end)
    busted.after_each(function()
      mine:stop()
      lease.refresh, lease.abdicate = refresh, abdicate
    end)

    local function leader(ttl, oracle)
      ttl = ttl or TTL
      local election = mine:elect { name = name, oracle = { oracle or store.word, url = store.url(ttl), ttl = ttl, refresh = ttl / PART,
        amnesia_wait = store.amnesia_wait } }
      eventually(function() return election:is_leader() end, 20)
      return election
    end

    local function refreshed(times)
      for _ = 1, times do
        local before = store.ends_at(name)
        eventually(function() return store.ends_at(name) > before end, 20)
      end
    end

    local function is_lost()
      return eventually(function() return lost end, 20)
    end

    it("is refreshed without a call of the oracle as long as nothing has changed", function()
      local election = leader()
      refreshed(3)
      assert.equal(0, calls)
      assert.is_true(election:is_leader())
      assert.equal(TTL, (election.state.grant or election.state).ttl)
    end)

    it("is given back, and free at once, without a call of the oracle", function()
      local election = leader()
      local epoch = election:status().epoch
      mine:stop()
      assert.equal(0, calls)
      assert.is_false(election.state.leading)
      assert.is_true(store.is_free(name, epoch))
    end)

    it("is given back when only its row says that the leader is to go", function()
      leader()
      store.evict(name)
      assert.equal("evicted", is_lost().reason)
    end)

    for what, change in pairs { ["names somebody else"] = "take", ["is of another claim"] = "reclaim" } do
      local _ = store[change] and it(("is lost, with the reason, when its row %s"):format(what), function()
        leader()
        store[change](name)
        is_lost()
        assert.same({ "denied", store.taken or "the lease in the store is not this term's" }, { lost.reason, lost.error })
      end)
    end

    local _ = store.raise and it("is lost when its row is of another term", function()
      local election = leader()
      store.raise(name)
      assert.equal("denied", is_lost().reason)
      eventually(function() return election:is_leader() end, 20)
    end)

    -- Who is asked for in another's place may be told by chance, but not all of them.
    local function refreshed_again(all, besides)
      for _ = 1, 3 do
        local before = {}
        for _, one in ipairs(all) do before[one.name] = not besides[one.name] and store.ends_at(one.name) or nil end
        eventually(function()
          for which, ends_at in pairs(before) do
            if store.ends_at(which) <= ends_at then return false end
          end
          return true
        end, 60)
      end
    end

    local _ = store.amid and it("gets its own answer among many that are refreshed with it", function()
      local reasons, expected = {}, {}
      crown.on("leadership.lost", function(event) reasons[event.name] = event.reason end)
      local all = mine:lead(MANY, function()
        return { name = Elections.unique(), oracle = { store.word, url = store.url(LONG), ttl = LONG } }
      end)
      for i = 7, MANY, 9 do
        expected[all[i].name] = store.amid.reason
        store.amid.change(all[i].name)
      end
      refreshed_again(all, expected)
      assert.same(expected, reasons)
    end)

    it("is refreshed and given back by an oracle of the user's own that stands before it", function()
      local asked, given, fit = 0, 0, true
      local own = setmetatable({
        refresh = function(state)
          asked = asked + 1
          if not fit then return false, { evicted = true } end
          return refresh(state)
        end,
        abdicate = function(state)
          given = given + 1
          return abdicate(state)
        end,
      }, { __index = lease })
      leader(LONG, own)
      refreshed(2)
      assert.is_true(asked > 0)
      fit = false
      assert.equal("evicted", is_lost().reason)
      eventually(function() return given > 0 end, 20)
    end)

    it("is led on while the server gives no answer, which is told, and refreshed when it does again", function()
      local election = leader(LONG) -- for a freeze that one refresh notices
      refreshed(1)
      store.freeze()
      eventually(function() return #failures > 0 end, 20)
      assert.matches("^refresh: ", failures[1])
      assert.equal(0, calls) -- it is not asked a second time by the oracle
      assert.is_true(election:is_leader())
      store.thaw()
      refreshed(2)
      assert.is_nil(lost)
    end)

    if store.more then store.more(it, leader, refreshed, is_lost, function() return calls end) end
  end)
end
