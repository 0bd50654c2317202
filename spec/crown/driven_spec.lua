-- What every oracle has that is made of a driver: crown.oracle.driven over a store in a table.
local crown = require "crown"
local driven = require "crown.oracle.driven"
local elections = require "support.oracle_candidate"
local eventually = require("crown.testing").eventually
local record = require "crown.register.record"
local testing = require "crown.testing"

local TTL = 0.5

-- A driver whose stores are tables; `changes` to it. `opened` has the places that were opened, `rows` the records of all.
local function driver_of(changes)
  local driver = { word = "shelf", schemes = { "shelf" }, ttl = TTL, opened = {}, rows = {}, looked = 0,
    options = { url = { type = "string", default = "shelf://here" }, drawer = { type = "string", default = "top" } } }
  local Store = {}
  Store.__index = Store
  function Store.look(_, names)
    if driver.down then return nil, "down" end
    driver.looked = driver.looked + 1
    local answers = {}
    for _, name in ipairs(names) do
      local row = driver.rows[name]
      answers[name] = { text = row and row.text or false, version = row and row.version or false, memory = "m",
        age = row and driver.age }
    end
    return answers
  end
  function Store.swap(_, writes)
    if driver.down then return nil, "down" end
    local results = {}
    for i, one in ipairs(writes) do
      local row = driver.rows[one.name]
      results[i] = one.memory == "m" and (row and row.version or false) == one.version and (row and row.version or 0) + 1
      if results[i] then driver.rows[one.name] = { text = one.text, version = results[i] } end
      local is_told = driver.told and not record.is_reserved(one.name) -- no session here says that it is over
      if results[i] and is_told then crown.spawn(driver.told, one.name) end
    end
    return results
  end
  function Store.names()
    local names = {}
    for name in pairs(driver.rows) do names[#names + 1] = name end
    return names
  end
  function driver.open(place)
    driver.opened[#driver.opened + 1] = place
    return setmetatable({}, Store)
  end
  driver.Store = Store
  for key, value in pairs(changes or {}) do driver[key] = value end
  return driver
end

-- It hears of changes.
local function hearing()
  local driver = driver_of()
  function driver.Store.hear(_, fn) driver.told = fn end
  return driver
end

for title, driver in pairs { ["an oracle of a driver"] = driver_of(), ["one that hears of changes"] = hearing() } do
  local module = driven.oracle(driver)
  testing.conformance(title, function()
    return { module = module, options = { trust_empty = true, amnesia_wait = 0 }, expires = true, outage = function()
      driver.down = true
      return function() driver.down = false end
    end }
  end)
end

describe("an oracle of a driver", function()
  local function player(module, name, options)
    local given = { name = name, trust_empty = true, amnesia_wait = 0, timeout = false }
    for key, value in pairs(options or {}) do given[key] = value end
    return elections.new(module, given)
  end

  local function refused(module, options)
    options.crown_name, options.token, options.node = "a", "t", "n"
    local fine, problem = pcall(module.init, options)
    assert.is_false(fine)
    return tostring(problem.message or problem)
  end

  it("knows what every oracle knows and the driver's own options, and no others", function()
    local module = driven.oracle(driver_of())
    assert.is_truthy(refused(module, { drawr = "x" }):find("drawer", 1, true))
    assert.is_truthy(refused(module, { ttl = 0.01 }):find("ttl", 1, true))
    assert.is_truthy(refused(module, { url = "redis://here" }):find("begins with shelf://", 1, true))
    assert.same({ 5, 5 / 3 }, { module.timing { ttl = 5 } })
    assert.same({ TTL, TTL / 3 }, { module.timing {} })
  end)

  it("opens one store for each place, with the shortest time-out of those who share it", function()
    local driver = driver_of()
    local module = driven.oracle(driver)
    player(module, "a", { ttl = 8 })
    player(module, "b", { timeout = 0.5 })
    player(module, "c", { url = "shelf://there" })
    player(module, "d", { drawer = "bottom" })
    assert.equal(3, #driver.opened)
    assert.equal(0.5, driver.opened[1].timeout)
    assert.equal("bottom", driver.opened[3].options.drawer)
    assert.equal("shelf://here", driver.opened[3].url)
  end)

  it("tells its driver for whom a store is opened first", function()
    local driver = driver_of()
    local one = player(driven.oracle(driver), "a", { node = "first" })
    assert.equal("first", driver.opened[1].node)
    driver.opened[1].emit("oracle.connected", { x = 1 })
    assert.same({ { event = "oracle.connected", fields = { x = 1 } } }, one.events)
  end)

  it("tells places apart by each option of the driver, and by each part of one that is a list", function()
    local driver = driver_of { options = { url = { type = "string", default = "shelf://here" }, keys = { type = "table" } } }
    local module = driven.oracle(driver)
    player(module, "a", { keys = { "x", "y" } })
    player(module, "b", { keys = { "x", "y" } })
    assert.equal(1, #driver.opened)
    player(module, "c", { keys = { "x", "z" } })
    player(module, "d")
    assert.equal(3, #driver.opened)
  end)

  it("has a store for each path where it has no server", function()
    local driver = driver_of { options = {}, schemes = false }
    local module = driven.oracle(driver)
    for name, path in pairs { a = "one", b = "two", c = "one", d = false } do
      assert(module.init { crown_name = name, token = "t", node = "n", path = path or nil })
    end
    local urls = {}
    for i, place in ipairs(driver.opened) do urls[i] = place.url end
    table.sort(urls)
    assert.same({ "", "one", "two" }, urls)
  end)

  it("says how long a doubt lasts, which others may still have (S8)", function()
    local module = driven.oracle(driver_of())
    local denied = player(module, "a", { trust_empty = false, amnesia_wait = 7 }):claim()
    assert.equal("denied", denied[1])
    assert.is_truthy(denied[7]:find("twice", 1, true), denied[7])
  end)

  it("asks of its store what that says of itself, and of an election by the name of its lock", function()
    local driver = driver_of()
    function driver.Store.health() return not driver.down and { facts = { { "Store", "a shelf" } } } or nil, "down", "store" end
    local module = driven.oracle(driver)
    player(module, "a", { lock = "l", node = "first" }):win()
    assert.same({ { "Store", "a shelf" } }, module.health({}).facts)
    local facts = module.health({ crown_name = "a", lock = "l" }).facts
    assert.same({ "Store", "a shelf" }, facts[1])
    assert.matches("^first, epoch %d+$", facts[2][2])
    assert.equal("none yet", module.health({ crown_name = "a" }).facts[2][2])
    driver.down = true
    assert.same({ nil, "down", "store" }, { module.health { crown_name = "a" } })
    assert.same({ nil, "down" }, { module.list {} })
    function driver.Store.rights() return { "may not read" } end
    assert.same({ "may not read" }, module.rights {})
  end)

  it("says what the driver says when it opens nothing", function()
    local module = driven.oracle(driver_of { open = function() return nil, "no such shelf" end })
    assert.same({ nil, "no such shelf" }, { module.init { crown_name = "a", token = "t", node = "n" } })
  end)

  it("lets no two elections of a runtime be on one lock", function()
    local module = driven.oracle(driver_of())
    local one = module.init { crown_name = "a", lock = "l", token = "t", node = "n" }
    local two, problem = module.init { crown_name = "b", lock = "l", token = "t", node = "n" }
    assert.is_truthy(one)
    assert.is_nil(two)
    assert.is_truthy(problem:find("'a' of this runtime is on the lock 'l' already", 1, true))
  end)

  it("tells a follower of a change to its own record, and of what may have been missed", function()
    local driver = hearing()
    local module = driven.oracle(driver)
    local one, two, other = player(module, "a"), player(module, "a"), player(module, "b")
    one:win()
    two:claim()
    other:claim()
    eventually(function() return #other.messages > 0 end)
    one.messages, two.messages, other.messages = {}, {}, {}
    one:abdicate()
    eventually(function() return two.messages[1] == "changed" end)
    assert.same({}, other.messages)
    assert.equal("granted", two:call("handle_info", two:message())[1])
    driver.told(nil)
    assert.equal("changed", other:message())
  end)

  it("asks again each second while its store hears of nothing, or as often as the user says", function()
    local driver = hearing()
    local module = driven.oracle(driver)
    player(module, "a", { ttl = 30 }):win()
    driver.Store.deaf = true
    assert.equal(1, player(module, "a", { ttl = 30 }):claim()[6])
    assert.equal(0.25, player(module, "a", { ttl = 30, retry = 0.25 }):claim()[6])
    driver.Store.deaf = nil
    assert.is_true(player(module, "a", { ttl = 30 }):claim()[6] > 60)
  end)

  describe("with a hundred followers", function()
    local driver, module, leaders, followers

    before_each(function()
      driver, leaders, followers = hearing(), {}, {}
      module = driven.oracle(driver)
      for i = 1, 100 do
        leaders[i] = player(module, "many-" .. i, { token = "the leader's" })
        assert.equal("granted", leaders[i]:claim()[1])
      end
      for i = 1, 100 do
        followers[i] = player(module, "many-" .. i, { token = "the follower's" })
        local verdict = followers[i]:claim()
        assert.equal("denied", verdict[1])
        assert.is_true(verdict[6] > 30) -- seconds until it asks by itself
      end
      crown.sleep(0) -- what the store had to tell of the leader's claims
      for _, one in ipairs(followers) do one.messages = {} end
    end)

    local function refresh_for(seconds)
      local ends = crown.now() + seconds
      while crown.now() < ends do
        for _, one in ipairs(leaders) do assert.equal("granted", one:refresh()[1]) end
        crown.sleep(TTL / 6)
      end
    end

    local function told()
      local count = 0
      for _, one in ipairs(followers) do count = count + #one.messages end
      return count
    end

    it("denies by what it knows of a session already, without a look for each", function()
      driver.looked = 0
      local another = {}
      for i = 1, #followers do
        another[i] = player(module, "many-" .. i, { token = "another's" })
        assert.equal("denied", another[i]:claim()[1])
      end
      assert.equal(101, driver.looked) -- at each election, and at the leader's session with the first one
    end)

    it("looks at the session that they follow once for all, and wakes none while it is renewed", function()
      refresh_for(TTL)
      local looked, from = driver.looked, crown.now()
      refresh_for(3 * TTL)
      local turns = (crown.now() - from) / (TTL / 3) + 1
      assert.is_true(driver.looked - looked <= 4 * turns) -- the watch, the leader's patrol, and what the renewals look at
      assert.equal(0, told())
    end)

    it("claims for each as soon as the session has stood for long enough", function()
      refresh_for(TTL)
      local from = crown.now()
      eventually(function() return told() == 100 end)
      assert.is_true(crown.now() - from > TTL * 0.9)
      for _, one in ipairs(followers) do assert.equal("granted", one:call("handle_info", one:message())[1]) end
    end)

    it("tells all of a look that fails", function()
      driver.down = true
      eventually(function() return told() == 100 end)
      assert.equal("unknown", followers[1]:call("handle_info", followers[1]:message())[1])
    end)
  end)

  it("lists, evicts and tells of what stands there", function()
    local driver = hearing()
    local module = driven.oracle(driver)
    local one = player(module, "a", { ttl = 30, node = "first" })
    local epoch = one:win()[4]
    assert.same({ { name = "a", node = "first", epoch = epoch } }, module.list {})
    assert.equal(("first, epoch %.0f"):format(epoch), module.health({ crown_name = "a" }).facts[1][2])
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
  end)

  it("tells how long ago a leader renewed, by the store's clock, with one look for all elections and one for all sessions", function()
    local driver = driver_of()
    local module = driven.oracle(driver)
    for i = 1, 20 do player(module, "e" .. i, { ttl = 30, node = "first", token = "t" }):win() end
    player(module, "f", { ttl = 30, node = "first", token = "t" }):win()
    local free = player(module, "free", { ttl = 30 })
    free:win()
    free:abdicate()
    driver.age, driver.looked = 3.5, 0
    local found = module.list {}
    assert.equal(2, driver.looked)
    assert.equal(22, #found)
    assert.equal(3.5, found[1].renewed_ago)
    assert.is_nil(found[22].renewed_ago)
    assert.is_truthy(module.health({ crown_name = "f" }).facts[1][2]:find("renewed 3.5 s ago by the store's clock", 1, true))
    assert.equal("nobody leads", module.health({ crown_name = "free" }).facts[1][2])
    assert.equal("none yet", module.health({ crown_name = "other" }).facts[1][2])
    local text = require("crown.command.info").text("shelf", found, { facts = {}, warnings = {} })
    assert.is_truthy(text:find("Renewed", 1, true))
    assert.is_truthy(text:find("3.5 s ago", 1, true))
  end)

  it("says what its store cannot be asked", function()
    local module = driven.oracle(driver_of { unasked = "ask somebody else" })
    assert.same({ "ask somebody else" }, { module.unasked, module.list })
  end)
end)
