local cas = require "crown.oracle.cas"
local crown = require "crown"
local elections = require "support.oracle_candidate"
local eventually = require("crown.testing").eventually
local testing = require "crown.testing"

local TTL = 0.5

-- A store in a table: `records` by name, each a text and a version.
local function table_store(changes)
  local store = { records = {}, writes = 0 }
  local spec = {
    word = "table", ttl = TTL,
    read = function(self)
      if store.down then return nil, "down" end
      local one = store.records[self.name]
      if not one then return false end
      return one.text, one.version
    end,
    write = function(self, text, version)
      if store.down then return nil, "down" end
      local one = store.records[self.name]
      if (one and one.version) ~= version then return false end
      store.writes = store.writes + 1
      store.records[self.name] = { text = text, version = store.writes }
      if store.mute then return nil, "no answer" end
      return store.writes
    end,
    names = function()
      local names = {}
      for name in pairs(store.records) do names[#names + 1] = name end
      return names
    end,
  }
  for key, value in pairs(changes or {}) do spec[key] = value end
  store.oracle, store.spec = cas.oracle(spec), spec
  return store
end

local conformed = table_store()
testing.conformance("a compare-and-swap store", function()
  return { module = conformed.oracle, options = { retry = 0.1, amnesia_wait = 0 }, expires = true, outage = function()
    conformed.down = true
    return function() conformed.down = false end
  end }
end)

local silent = table_store()
local told = silent.spec.write
silent.oracle = cas.oracle { word = "silent", ttl = TTL, read = silent.spec.read, write = function(...)
  local new, problem = told(...)
  return new and true or new, problem
end }
testing.conformance("a compare-and-swap store that tells no new version", function()
  return { module = silent.oracle, options = { amnesia_wait = 0 }, expires = true }
end)

describe("an oracle on a compare-and-swap store", function()
  local serial = 0
  before_each(function() serial = serial + 1 end)

  local function candidate(store, node, options)
    local given = { name = "cas-" .. serial, node = node or "one", amnesia_wait = 0 }
    for key, value in pairs(options or {}) do given[key] = value end
    return elections.new(store.oracle, given)
  end

  -- One in which somebody has led before.
  local function known_store()
    local store = table_store()
    store.records["cas-" .. serial] = { version = 0, text = '{"v":1,"serial":1,"memory":"","epoch":1}' }
    return store
  end

  local function record_of(store)
    return crown.json.decode(store.records["cas-" .. serial].text)
  end

  it("does not believe a record that is missing: it writes that down, and waits two TTLs", function()
    local store = table_store()
    local verdict = candidate(store):claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] >= 2 * TTL)
    assert.is_true(record_of(store).doubt >= 2 * TTL)
    verdict = candidate(store, "two"):claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
  end)

  it("believes it at the first start, where nobody can have deleted it, and only then", function()
    local store = table_store { trust_empty = true }
    local one = candidate(store)
    assert.equal("granted", one:claim()[1])
    store.records = {}
    local verdict = one:refresh()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    store.records = {}
    assert.equal("denied", one:claim()[1])
  end)

  it("says for how long nobody knows whether the holder lives: until it renews", function()
    local store = known_store()
    local one, two = candidate(store), candidate(store, "two", { retry = 60 })
    one:win()
    local verdict = two:claim()
    assert.same({ "denied", true }, { verdict[1], verdict[9] })
    one:refresh()
    verdict = two:claim()
    assert.same({ "denied", false }, { verdict[1], verdict[9] })
  end)

  it("believes it where the option says so, whatever the module does", function()
    assert.equal("granted", candidate(table_store(), "one", { trust_empty = true }):claim()[1])
    local verdict = candidate(table_store { trust_empty = true }, "one", { trust_empty = false }):claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
  end)

  it("waits longer than its own TTL when the record is gone: the holder's may have been longer", function()
    local store = known_store()
    candidate(store, "one", { ttl = 20 }):win()
    store.records = {}
    local verdict = candidate(store, "two", { amnesia_wait = 30 }):claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] > 30)
  end)

  it("gives no epoch twice, though the record was deleted and nobody knows it (P4)", function()
    local store = table_store { trust_empty = true }
    local last = 0
    for _ = 1, 3 do
      local epoch = candidate(store, "newcomer", { token = "t" .. last }):win()[4]
      assert.is_true(epoch > last)
      last = epoch
      store.records = {}
      crown.sleep(1) -- as long as epochs begin at the same second
    end
  end)

  it("goes on with the epochs when the record was deleted under its leader", function()
    local store = known_store()
    local one = candidate(store)
    local epoch = one:win()[4]
    store.records = {}
    local verdict = one:refresh()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(one:win()[4] > epoch)
  end)

  it("waits for the longest lease that it has heard of when the record is gone", function()
    local store = known_store()
    local two = candidate(store, "two")
    two:win()
    two:abdicate()
    candidate(store, "one", { ttl = 20 }):win()
    two:claim()
    store.records = {}
    assert.is_true(two:claim()[2] > 20)
    assert.equal(40, record_of(store).doubt)
    local other = candidate(store, "three", { ttl = 40 })
    assert.is_true(other:claim()[2] > 80)
    assert.equal(80, record_of(store).doubt)
  end)

  it("never writes the same text twice: some stores make the version of it", function()
    local store = table_store()
    candidate(store):claim()
    local text = store.records["cas-" .. serial].text
    store.records = {}
    candidate(store):claim()
    assert.are_not.equal(text, store.records["cas-" .. serial].text)
  end)

  it("ends with one doubt where candidates remember different things", function()
    local store, high = known_store(), 2 ^ 52 -- a higher epoch than any that begins now
    local one, two = candidate(store), candidate(store, "two")
    local function hold(epoch, number)
      store.records["cas-" .. serial] = { version = -number,
        text = crown.json.encode { v = 1, epoch = epoch, serial = number, memory = "", by = "@t-9", at = 1, node = "n" } }
    end
    hold(high, 10)
    one:claim()
    hold(1, 30)
    two:claim()
    hold(1, 5)
    for _ = 1, 2 do
      one:claim()
      two:claim()
    end
    assert.same({ high, "number" }, { record_of(store).epoch, type(record_of(store).doubt) })
    local writes = store.writes
    one:claim()
    two:claim()
    assert.equal(writes, store.writes)
  end)

  it("does not take an old reading for a store that forgot", function()
    local stale = false
    local store
    store = table_store { read = function(self)
      local one = store.records[self.name]
      if not one or stale then return false end
      return one.text, one.version
    end }
    local one = candidate(store)
    local epoch = one:win()[4]
    stale = true
    assert.equal("unknown", one:call("handle_info", "changed")[1])
    stale = false
    local verdict = one:refresh()
    assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
  end)

  it("takes a claim without an answer back, so that a late one fails", function()
    local store = known_store()
    local one, two = candidate(store), candidate(store, "two")
    one:win()
    one:abdicate()
    store.mute = true
    assert.equal("unknown", one:claim()[1])
    store.mute = false
    one:abdicate()
    assert.is_nil(record_of(store).by)
    assert.equal("granted", two:claim()[1])
  end)

  it("takes nothing from a later term of the same runtime by a release of an earlier one that comes late", function()
    local store = known_store()
    local write, late, holds = store.spec.write, nil, false
    store.oracle = cas.oracle { word = "table", ttl = 20, read = store.spec.read, write = function(self, text, version)
      if not holds then return write(self, text, version) end
      late = late or { { name = self.name }, text, version }
      return nil, "no answer"
    end }
    local one, two = candidate(store, "one", { token = "one's" }), candidate(store, "two", { token = "two's" })
    one:win()
    holds = true
    one:abdicate()
    holds = false
    local again = candidate(store, "one", { token = "one's" })
    assert.equal("granted", again:claim()[1])
    assert.equal("cas-" .. serial, late[1].name)
    assert.is_nil(crown.json.decode(late[2]).by)
    assert.is_false(write(unpack(late)))
    assert.equal("granted", again:refresh()[1])
    assert.equal("denied", two:claim()[1])
  end)

  it("re-reads before it judges: a write of its own without an answer is no loss", function()
    local store = known_store()
    local one = candidate(store)
    local epoch = one:win()[4]
    store.mute = true
    assert.equal("unknown", one:refresh()[1])
    store.mute = false
    local verdict = one:refresh()
    assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
  end)

  it("takes its own lease at once when its runtime was killed, under a new claim", function()
    local store = known_store()
    local one = candidate(store, "one", { token = "the host's" })
    local epoch = one:win()[4]
    store.oracle = cas.oracle(store.spec)
    local again = candidate(store, "one", { token = "the host's" })
    assert.is_true(again:claim()[4] > epoch)
    assert.equal("denied", one:refresh()[1])
  end)

  it("sits out a store that went back", function()
    local store = known_store()
    local one, two = candidate(store), candidate(store, "two")
    one:win()
    one:abdicate()
    local before = store.records["cas-" .. serial]
    one:win()
    two:claim()
    store.records["cas-" .. serial] = before
    local verdict = two:claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.equal("denied", one:refresh()[1])
  end)

  it("goes on with the higher epoch of a store that went back, and gave more since", function()
    local store = known_store()
    local one = candidate(store)
    one:win()
    for _ = 1, 5 do one:refresh() end
    local text = crown.json.encode { v = 1, memory = "", epoch = 2 ^ 52, serial = 1, nonce = "another's" }
    store.records["cas-" .. serial] = { text = text, version = "another's" }
    assert.equal("denied", one:refresh()[1])
    assert.same({ "number", 2 ^ 52 }, { type(record_of(store).doubt), record_of(store).epoch })
    assert.is_true(one:win()[4] > 2 ^ 52)
  end)

  it("counts a reading that cannot be written over for an old one, and no loss", function()
    local old, store
    store = table_store { read = function(self)
      local one = self.name:sub(1, 1) ~= "@" and old or store.records[self.name]
      if not one then return false end
      return one.text, one.version
    end }
    local one = candidate(store)
    one:claim()
    local before = store.records["cas-" .. serial]
    one:win()
    assert.equal("granted", one:refresh()[1])
    old = before
    assert.equal("unknown", one:call("handle_info", "changed")[1])
    old = nil
    assert.equal("granted", one:refresh()[1])
  end)

  it("writes no text twice, of which a store may make its versions", function()
    local texts = {}
    local store = known_store()
    local write = store.spec.write
    store.spec.write = function(self, text, version)
      assert.is_nil(texts[text])
      texts[text] = true
      return write(self, text, version)
    end
    store.oracle = cas.oracle(store.spec)
    for _, token in ipairs { "a", "b" } do
      local one = candidate(store, token, { token = token })
      one:win()
      one:refresh()
      one:abdicate()
    end
    assert.is_truthy(next(texts))
  end)

  it("keeps what it does not know in a record, and waits for a newer version's", function()
    local store = known_store()
    local one, name = candidate(store), "cas-" .. serial
    one:win()
    one:abdicate()
    local text = store.records[name].text:gsub("^{", '{"newer":{"x":1},')
    store.records[name] = { text = text, version = "another's" }
    one:win()
    assert.same({ 1, "one" }, { record_of(store).newer.x, record_of(store).node })
    one:abdicate()
    store.records[name] = { text = store.records[name].text:gsub('"v":1', '"v":2'), version = "the newer one's" }
    local verdict = one:claim()
    assert.same({ "unknown", ("a newer version of crown-lua wrote the record of '%s': use that version"):format(name), "store" }, verdict)
    assert.equal("the newer one's", store.records[name].version)
  end)

  it("evicts beside a record that cannot be read, and says of that what stands there and what to do", function()
    local store, name = known_store(), "cas-" .. serial
    store.records.odd = { version = 1, text = "hel\nlo" .. ("!"):rep(100) }
    local one = candidate(store)
    one:win()
    crown.spawn(function()
      eventually(function() return one:refresh()[1] == "evicted" end, 20)
      one:abdicate()
    end)
    assert.equal("one", store.oracle.evict({ crown_name = name }, name).node)
    local _, problem = store.oracle.evict({ crown_name = "odd" }, "odd")
    assert.matches("^'odd': the store's value is not a record of an election: \"hel\\x0alo!+…\"; is this the right", problem)
  end)

  it("keeps each number of a field that it does not know as it was", function()
    local numbers, store = { 0.12345678901234567, 1e300, 9007199254740991, { 3.1415926535897931 } }, known_store()
    store.records["cas-" .. serial].text = crown.json.encode { v = 1, serial = 1, memory = "", epoch = 1, theirs = numbers }
    local one = candidate(store)
    one:win()
    assert.same(numbers, record_of(store).theirs)
    one:abdicate()
    assert.same(numbers, record_of(store).theirs)
  end)

  it("asks one question at a time with each self, which may have a connection", function()
    local store, most = table_store(), 0
    local function busy(fn)
      return function(self, ...)
        self.inside = (self.inside or 0) + 1
        most = math.max(most, self.inside)
        crown.sleep(0.002)
        self.inside = self.inside - 1
        return fn(self, ...)
      end
    end
    store.spec.read, store.spec.write = busy(store.spec.read), busy(store.spec.write)
    store.oracle = cas.oracle(store.spec)
    local done = 0
    for i = 1, 8 do
      local one = elections.new(store.oracle, { name = ("turns-%d-%d"):format(serial, i), token = "turns", trust_empty = true })
      crown.spawn(function()
        one:win()
        for turn = 1, 10 do
          if (i + turn) % 2 == 0 then one:refresh() else one:call("handle_info", "changed") end
        end
        done = done + 1
      end)
    end
    eventually(function() return done == 8 end, 20)
    assert.equal(1, most)
  end)

  it("renews one record for all elections of a runtime", function()
    local store = table_store()
    local some, names = {}, {}
    for i = 1, 20 do
      some[i] = elections.new(store.oracle, { name = ("shared-%d-%d"):format(serial, i), token = "shared", amnesia_wait = 0, ttl = 60 })
      store.records[("shared-%d-%d"):format(serial, i)] = { version = 0, text = '{"v":1,"serial":1,"memory":"","epoch":1}' }
    end
    for _, one in ipairs(some) do assert.equal("granted", one:claim()[1]) end
    local writes = store.writes
    local clock = testing.fake_clock()
    for _ = 1, 3 do
      clock:advance(20)
      for _, one in ipairs(some) do assert.equal("granted", one:refresh()[1]) end
    end
    clock:restore()
    for name in pairs(store.records) do names[#names + 1] = name:match "^@.*" end
    assert.same({ 3, { "@shared-60" } }, { store.writes - writes, names })
  end)

  it("looks again when it is told that the record has changed", function()
    local store = known_store()
    local one, two = candidate(store), candidate(store, "two")
    one:win()
    assert.same({ "nothing" }, one:call("handle_info", "changed"))
    assert.equal("denied", two:call("handle_info", "changed")[1])
    one:abdicate()
    assert.equal("granted", two:call("handle_info", "changed")[1])
    assert.equal("denied", one:call("handle_info", "changed")[1])
  end)

  it("evicts", function()
    local store = known_store()
    local one = candidate(store)
    local epoch = one:win()[4]
    local evicted, problem
    crown.spawn(function() evicted, problem = store.oracle.evict({ wait = 20 }, "cas-" .. serial) end)
    local verdict
    eventually(function() verdict = one:refresh() return verdict[1] ~= "granted" end, 20)
    assert.equal("evicted", verdict[1])
    assert.equal("granted", one:refresh()[1]) -- while the child is being stopped
    one:abdicate()
    eventually(function() return evicted or problem end, 20)
    assert.same({ node = "one", epoch = epoch }, evicted, problem)
    assert.same({ nil, ("nobody leads 'cas-%d'"):format(serial), "no_leader" }, { store.oracle.evict({}, "cas-" .. serial) })
  end)

  it("says how long a failover takes at most: followers see the last renewal late, and wait for the margin, too", function()
    local store = table_store()
    assert.near(10 + 0.35 + 1.1, store.oracle.failover { ttl = 10 }, 1e-6)
    assert.near(10 + 0.35 + 2.2, store.oracle.failover { ttl = 10, retry = 2 }, 1e-6)
  end)

  -- Nothing tells a follower of the release here: it looks again after the oracle's `retry`, and a tenth of that at most.
  for _, how in ipairs { "evicted", "asked to abdicate" } do
    it("lets another one lead each time that its leader is " .. how, function()
      local store, name = table_store(), "cas-" .. serial
      store.records[name] = { version = 0, text = '{"v":1,"serial":1,"memory":"","epoch":1}' }
      local all = {}
      for _, node in ipairs { "ann", "bob" } do
        all[node] = crown.elect { name = name, node = node, retry = 0.1,
          oracle = { store.oracle, ttl = 6, retry = 0.6, refresh = 0.1 } }
      end
      local function leader()
        for node, one in pairs(all) do
          if one:is_leader() then return node end
        end
      end
      for _ = 1, 4 do
        local before, epoch = eventually(leader, 20), record_of(store).epoch
        if how == "evicted" then store.oracle.evict({ crown_name = name }, name) else all[before]:abdicate() end
        eventually(function() return record_of(store).epoch > epoch and leader() end, 20)
        assert.not_equal(before, leader())
      end
      for _, one in pairs(all) do one:stop() end
    end)
  end

  it("refuses what is no record of an election, and leaves it alone", function()
    for _, text in ipairs { "", "hello", "[]", "{}", '{"epoch":1,"serial":1}', '{"v":1,"epoch":"1","serial":1}',
      '{"v":1,"epoch":1.5,"serial":1}', '{"v":1,"epoch":1}', '{"v":1,"epoch":1,"serial":1,"by":"@t-1"}',
      '{"v":1,"epoch":1,"serial":1,"by":7,"at":1}', '{"v":1,"epoch":1,"serial":1,"doubt":0}',
      '{"v":1,"epoch":1,"serial":1,"doubt":1e9}', '{"v":1,"epoch":1,"serial":1,"by":"@t-1","at":1,"doubt":1}' } do
      local store = table_store()
      store.records["cas-" .. serial] = { text = text, version = 1 }
      local verdict = candidate(store):claim()
      assert.same({ "unknown", "store" }, { verdict[1], verdict[3] })
      assert.matches("the store's value is not a record of an election: .*; is this the right store%? If so, stop its ", verdict[2])
      assert.equal(text, store.records["cas-" .. serial].text)
    end
  end)

  for title, case in pairs {
    ["a read without a version"] = { { read = function() return "{}" end }, 'table: read returned "{}", nil: see the' },
    ["a read that returns nothing"] = { { read = function() end }, "table: read returned nil, nil: see the" },
    ["a read that says true"] = { { read = function() return true end }, "table: read returned true" },
    ["an error in read"] = { { read = function() error "oops" end }, "table: an error in read: .*oops" },
    ["a write that returns nothing"] = { { write = function() end }, "table: write returned nil, nil: see the" },
    ["a write that returns a table"] = { { write = function() return {} end }, "table: write returned table" },
    ["an error in write"] = { { write = function() error "oops" end }, "table: an error in write: .*oops" },
    ["a write that keeps the version"] = { { read = function() return '{"v":1,"epoch":1,"serial":1,"ttl":1,"at":1}', 7 end,
      write = function(_, _, version) return version end }, "table: write returned the version that it replaced %(7%)" },
  } do
    it("names who broke the contract: " .. title, function()
      local verdict = candidate(table_store(case[1])):claim()
      assert.equal("unknown", verdict[1])
      assert.matches(case[2], verdict[2])
    end)
  end

  it("refuses at once what cannot be an oracle, and options that are wrong", function()
    local function refusal(fn)
      local fine, problem = pcall(fn)
      return not fine and problem.message
    end
    assert.matches("crown.oracle.cas: write is required: how the record is written",
      refusal(function() cas.oracle { word = "x", read = print } end))
    assert.matches("oracle 'table': ttl must be a number, not a string",
      refusal(function() candidate(table_store(), "one", { ttl = "long" }) end))
    local store = table_store { init = function(self) return nil, "no " .. self.options.place end }
    assert.same({ nil, "no here" }, { store.oracle.init { crown_name = "x", node = "n", token = "t", place = "here" } })
  end)
end)
