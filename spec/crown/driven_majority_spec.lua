-- Several registers of which most decide: crown.oracle.driven over three stores in tables, each of which may be away.
local crown = require "crown"
local driven = require "crown.oracle.driven"
local elections = require "support.oracle_candidate"
local eventually = require("crown.testing").eventually
local testing = require "crown.testing"

local TTL = 0.5

-- The driver; its `shelves` are the stores by URL, with `rows`, `down`.
local function driver_of()
  local driver = { word = "shelf", ttl = TTL, shelves = {}, options = { url = { type = "string", default = "one,two,three" } } }
  local Store = {}
  Store.__index = Store

  function driver.servers(checked)
    local urls = {}
    for url in checked.url:gmatch "[^,]+" do urls[#urls + 1] = url end
    return #urls > 1 and urls or nil
  end

  function driver.label(url) return "shelf " .. url end

  function driver.open(place)
    driver.shelves[place.url] = driver.shelves[place.url] or setmetatable({ rows = {}, told = function() end, url = place.url }, Store)
    return driver.shelves[place.url]
  end

  function Store:look(names)
    if self.down then return nil, "down" end
    local answers = {}
    for _, name in ipairs(names) do
      local row = self.rows[name]
      answers[name] = { text = row and row.text or false, version = row and row.version or false, memory = "m" }
    end
    return answers
  end

  function Store:swap(writes)
    if self.down then return nil, "down" end
    local results = {}
    for i, one in ipairs(writes) do
      local row = self.rows[one.name]
      results[i] = one.memory == "m" and (row and row.version or false) == one.version and (row and row.version or 0) + 1
      if results[i] then
        self.rows[one.name] = { text = one.text, version = results[i] }
        crown.spawn(self.told, one.name)
      end
    end
    return results
  end

  function Store:hear(fn) self.told = fn end

  function Store:names()
    if self.down then return nil, "down" end
    local names = {}
    for name in pairs(self.rows) do names[#names + 1] = name end
    return names
  end

  function Store.health() return { facts = { { "Store", "a shelf" } } } end
  function Store:rights() return self.down and { "may not be reached" } or {} end

  return driver
end

local function put_down(driver, ...)
  for _, url in ipairs { ... } do driver.shelves[url].down = true end
end

local function put_up(driver)
  for _, shelf in pairs(driver.shelves) do shelf.down = false end
end

testing.conformance("an oracle of which most stores decide", function()
  local driver = driver_of()
  return { module = driven.oracle(driver), options = { trust_empty = true, amnesia_wait = 0 }, expires = true, outage = function()
    put_down(driver, "one", "three")
    return function() put_up(driver) end
  end }
end)

describe("an oracle of which most stores decide", function()
  local driver, module
  before_each(function()
    driver = driver_of()
    module = driven.oracle(driver)
  end)

  local function player(name, options)
    local given = { name = name, trust_empty = true, amnesia_wait = 0, ttl = 30 }
    for key, value in pairs(options or {}) do given[key] = value end
    return elections.new(module, given)
  end

  it("does without a minority", function()
    local one, two = player "a", player "a"
    put_down(driver, "two")
    local epoch = one:win()[4]
    assert.equal("denied", two:call("claim")[1])
    assert.equal("granted", one:call("refresh")[1])
    one:abdicate()
    assert.is_true(two:win()[4] > epoch)
  end)

  it("gives a term to a store that comes back, so that another one may go", function()
    local one, two = player("a", { ttl = 2 }), player("a", { ttl = 2 })
    put_down(driver, "two")
    local epoch = one:win()[4]
    put_up(driver)
    eventually(function()
      assert.equal("granted", one:call("refresh")[1])
      return driver.shelves.two.rows.a and driver.shelves.two.rows.a.text:find('"by"', 1, true)
    end)
    put_down(driver, "three")
    assert.equal("granted", one:call("refresh")[1])
    assert.equal("denied", two:call("claim")[1])
    one:abdicate()
    put_up(driver)
    put_down(driver, "one")
    assert.is_true(two:win()[4] > epoch)
  end)

  it("lets nobody lead by a minority", function()
    local one = player "a"
    put_down(driver, "one", "two")
    assert.equal("unknown", one:call("claim")[1])
    put_up(driver)
    one:win()
    put_down(driver, "one", "two")
    assert.equal("unknown", one:call("refresh")[1])
  end)

  it("goes on with a higher epoch than any of its servers knew", function()
    local one = player "a"
    local epoch = one:win()[4]
    one:abdicate()
    put_down(driver, "three")
    for _ = 1, 3 do
      epoch = one:win()[4]
      one:abdicate()
    end
    put_up(driver)
    put_down(driver, "one")
    local two = player "a"
    assert.is_true(two:win()[4] > epoch)
  end)

  it("lists, evicts and tells of its servers", function()
    local one = player("a", { node = "first" })
    local epoch = one:win()[4]
    put_down(driver, "three")
    assert.same({ { name = "a", node = "first", epoch = epoch } }, module.list {})
    local evicted
    crown.spawn(function() evicted = module.evict({ wait = 5 }, "a") end)
    eventually(function()
      local message = one:message()
      return message and one:call("handle_info", message)[1] == "evicted"
    end)
    one:abdicate()
    eventually(function() return evicted end)
    assert.same({ node = "first", epoch = epoch }, evicted)
    assert.same({ nil, "nobody leads 'a'", "no_leader" }, { module.evict({}, "a") })
    assert.same({ { "Store", "3 servers, of which 2 decide" }, { "Server 1", "shelf one, a shelf" },
      { "Server 2", "shelf two, a shelf" }, { "Server 3", "shelf three, a shelf" } }, module.health({}).facts)
    assert.same({ "shelf three: may not be reached" }, module.rights {})
    put_down(driver, "one")
    local found, problem = module.list {}
    assert.is_nil(found)
    assert.equal("1 of 3 servers answer, 2 are needed: shelf one: down; shelf three: down", problem)
  end)

  local function is_sent_away(one)
    eventually(function()
      local message = one:message()
      return (message and one:call("handle_info", message) or one:call "refresh")[1] == "evicted"
    end)
    one:abdicate()
  end

  it("obeys what is ordered on most of its servers", function()
    local one, two = player("a", { node = "first", ttl = 3 }), player("a", { node = "second", ttl = 3 })
    local epoch = one:win()[4]
    put_down(driver, "three")
    local leader = assert(module.order({ order = { pause = true } }, "a"))
    assert.same({ "first", epoch }, { leader.node, leader.epoch })
    is_sent_away(one)
    put_up(driver)
    for _ = 1, 3 do
      assert.same({ "denied", "denied" }, { one:call("claim")[1], two:call("claim")[1] })
    end
    assert.equal("paused", one:call("claim")[7])
    assert.equal("paused", module.list({})[1].ordered)
    put_down(driver, "one")
    assert.same({ nil, "'a' is paused: resume it first", "refused" }, { module.order({ order = { to = "second" } }, "a") })
    put_up(driver)
    assert(module.order({ order = false }, "a"))
    assert.same({ nil, "'a' is not paused", "refused" }, { module.order({ order = false }, "a") })
    two:win()
    assert.same({ first = true, second = true }, module.nodes {})
    assert(module.order({ order = { to = "first", within = 60 } }, "a"))
    is_sent_away(two)
    assert.equal("denied", two:call("claim")[1])
    assert.is_true(one:win()[4] > epoch)
    assert.is_nil(module.list({})[1].ordered)
  end)

  it("leads on where a minority of its servers has an order, and takes none without most of them", function()
    local one = player("a", { ttl = 1 })
    one:win()
    put_down(driver, "one", "two")
    local found, problem = module.order({ order = { pause = true } }, "a")
    assert.is_nil(found)
    assert.matches("^1 of 3 servers answer, 2 are needed: ", problem)
    put_up(driver)
    local rows = driver.shelves.one.rows
    rows.a = { text = rows.a.text:gsub("^{", '{"orders":{"pause":true},'), version = rows.a.version + 1 }
    local until_then = crown.now() + 1.5
    repeat
      assert.equal("granted", one:answered("refresh")[1])
      crown.sleep(0.1)
    until crown.now() > until_then
  end)

  it("lists the epoch of a term also where a server that came later has a higher one", function()
    local one = player "a"
    put_down(driver, "three")
    local epoch = one:win()[4]
    put_up(driver)
    local row
    eventually(function()
      one:call "refresh"
      row = driver.shelves.three.rows.a
      return row and row.text:find('"by"', 1, true)
    end)
    row.text = row.text:gsub('"epoch":%d+', ('"epoch":%d'):format(epoch + 5))
    assert.equal(epoch, module.list({})[1].epoch)
  end)

  it("warns of two names that lead to one server, and lets nobody lead by them", function()
    local one = player "a"
    one:win()
    driver.shelves.one.id, driver.shelves.three.id = "x", "x"
    assert.same({ "two of these names lead to one server: shelf one and shelf three" }, module.health({}).warnings)
    for _, what in ipairs { "refresh", "claim" } do
      local verdict = one:call(what)
      assert.same({ "unknown", "two of these names lead to one server: shelf one and shelf three", "usage" }, verdict)
    end
    driver.shelves.three.id = "y"
    assert.equal("granted", player("a"):claim()[1]) -- what was claimed was given back
  end)
end)
