-- Operators' orders beside an election in the format of others: a candidate by an oracle that is played by hand, and what stands
-- in a store of orders that fails when it is told to.
local core = require "crown.core"
local eventually = require("crown.testing").eventually
local events = require "crown.election.events"
local ordered = require "crown.oracle.ordered"
local Player = require "support.oracle_candidate"

describe("an order beside an election", function()
  local world, errors
  setup(function() events.on("oracle.error", function(event) errors[#errors + 1] = event.error end) end)

  -- Who holds the election is `world.holder`; its orders are `world.text`, whose version is `world.version`.
  local function orders_of(here)
    local orders = {}
    function orders.read(_, names)
      if here.trouble then return nil, here.trouble, here.code end
      local answer, found = here.text and { text = here.text, version = here.version } or false, {}
      for _, name in ipairs(names or {}) do found[name] = name == "e" and answer end
      return names and found or { e = answer or nil }
    end
    function orders.write(_, _, text, version)
      if here.before_write then here.before_write() end
      if here.refuses then return nil, "no room", "store" end
      if version ~= (here.text and here.version or false) then return false end
      here.text, here.version, here.writes = text, here.version + 1, here.writes + 1
      return true
    end
    return orders
  end

  local function oracle(leaves)
    local Fake = { leaves = leaves }
    Fake.__index = Fake
    function Fake.init(opts) return setmetatable({ node = opts.node }, Fake) end
    function Fake:claim()
      if world.before_win then world.before_win() end
      if world.holder and world.holder ~= self.node then return false, { node = world.holder } end
      world.holder, world.epoch = self.node, world.epoch + 1
      return true, 1, { ttl = 3, epoch = world.epoch }
    end
    function Fake:refresh() return world.holder == self.node, 1, { ttl = 3, epoch = world.epoch } end
    function Fake:abdicate()
      if world.holder == self.node then world.holder = nil end
    end
    function Fake.list() return { { name = "e", node = world.holder, epoch = world.epoch, candidates = { "one" } } } end
    return ordered.oracle(Fake, { word = "fake", lists_candidates = true,
      owner = function() return world, "e" end, store = function() return orders_of(world) end,
      leads = function(self) return world.holder == self.node end,
      holder = function() return world.holder and { node = world.holder, epoch = world.epoch } or false end,
      visit = function(_, fn) return fn(orders_of(world)) end })
  end

  local module

  before_each(function()
    world, errors = { epoch = 0, version = 0, writes = 0 }, {}
    module = oracle()
  end)

  local function player(node) return Player.new(module, { name = "e", node = node }) end

  local function set(text)
    world.text, world.version = text, world.version + 1
    ordered.hear(world, "e")
    core.sleep(0)
  end

  it("that stood before a win is obeyed before the term begins", function()
    local one = player "one"
    world.before_win = function() world.text, world.version = '{"pause":true,"why":"x"}', 7 end
    local verdict = one:claim()
    assert.same({ "denied", nil, "paused: x" }, { verdict[1], world.holder, verdict[7] })
    assert.same({ '{"pause":true,"why":"x"}', 0 }, { world.text, world.writes })
  end)

  it("says to who is kept waiting who leads", function()
    local one, two = player "one", player "two"
    one:win()
    set '{"pause":true,"keep":true}'
    local verdict = two:claim()
    assert.same({ "denied", "one", 1 }, { verdict[1], verdict[3], verdict[4] })
    assert.equal("granted", one:refresh()[1])
  end)

  it("keeps the others away for its time from when nobody leads, and goes with the claim", function()
    local one, two = player "one", player "two"
    one:win()
    set '{"to":"nobody","within":0.3,"done":{"at":3}}'
    eventually(function() return one:refresh()[1] == "evicted" end)
    assert.equal("denied", two:claim()[1])
    core.sleep(0.4) -- which does not count, since one leads
    assert.equal("denied", two:claim()[1])
    one:abdicate()
    local since = core.now()
    assert.equal("denied", two:claim()[1])
    eventually(function() return two:claim()[1] == "granted" end)
    assert.is_true(core.now() - since >= 0.3)
    assert.equal('{"done":{"at":3}}', world.text)
  end)

  it("that its winner cannot remove does not end the term, and is removed when it can be", function()
    local one, two = player "one", player "two"
    one:win()
    set '{"to":"two","within":60}'
    eventually(function() return one:refresh()[1] == "evicted" end)
    one:abdicate()
    world.refuses = true
    assert.equal("granted", two:claim()[1])
    set '{"to":"three","within":0}' -- while nothing can be written, as before it
    eventually(function() return two:refresh()[1] == "evicted" end)
    two:abdicate()
    assert.equal("granted", one:claim()[1])
    ordered.hear(world, "e")
    core.sleep(1.5) -- the next look, at which a leader would be told to go
    assert.equal("granted", one:refresh()[1])
    world.refuses = false
    ordered.hear(world)
    eventually(function() return world.text == nil end)
    assert.equal("granted", one:refresh()[1])
  end)

  it("that nobody can read orders nothing, and is told of once", function()
    local one = player "one"
    for _, text in ipairs { "", "pause", '{"pause":1}', '{"why":"' .. ("x"):rep(3000) .. '","pause":true}' } do
      set(text)
      assert.equal("granted", one:claim()[1], text)
      ordered.hear(world, "e")
      core.sleep(0)
      one:abdicate()
    end
    eventually(function() return #errors == 4 end)
    assert.matches("^the orders of 'e' cannot be read, and nobody obeys them: crown%-lua resume", errors[1])
    set '{"pause":true}'
    assert.equal("denied", one:claim()[1])
  end)

  it("that nobody may read orders nothing, and is told of once; one that does not answer is not told of", function()
    local one = player "one"
    world.trouble, world.code = "no answer", "timeout"
    assert.equal("granted", one:claim()[1])
    one:abdicate()
    world.trouble, world.code = "no right", "store"
    for _ = 1, 2 do
      assert.equal("granted", one:claim()[1])
      one:abdicate()
    end
    eventually(function() return #errors == 1 end)
    assert.equal("operators' orders cannot be read here, and are not obeyed until they can: no right", errors[1])
  end)

  it("is what it was where no answer says otherwise", function()
    local one = player "one"
    one:win()
    set '{"pause":true}'
    eventually(function() return one:refresh()[1] == "evicted" end)
    one:abdicate()
    world.trouble, world.code = "no answer", "timeout"
    assert.equal("denied", one:claim()[1])
  end)

  local function preferring(node, rank)
    local one = player(node)
    one.state:prefer(rank)
    return one
  end

  it("of preference has the lower ones leave it the first claim for a bounded time, and goes with who gives back", function()
    local low, high = player "low", preferring("high", { level = 5 })
    low:win()
    high:claim()
    assert.equal('{"ranks":{"high":5}}', world.text)
    low:abdicate()
    local verdict = low:claim()
    assert.same({ "denied", "left to high first, of preference 5" }, { verdict[1], verdict[7] })
    assert.equal("granted", high:claim()[1])
    high:abdicate()
    assert.is_nil(world.text)
    assert.equal("granted", low:claim()[1])
    high:claim()
    low:abdicate()
    local since = core.now()
    eventually(function() return low:claim()[1] == "granted" end) -- though it never comes
    assert.is_true(core.now() - since >= 1.9)
    assert.is_nil(world.text)
  end)

  it("of preference has a leader of a lower one go when it has waited for so long", function()
    local low, high = player "low", preferring("high", { level = 5, preempt = 0.4 })
    low:win()
    local asks_in = high:claim()[6]
    assert.is_true(asks_in > 0.2 and asks_in <= 0.4)
    eventually(function() return high:claim() and world.text:find '"to":"high"' ~= nil end)
    ordered.hear(world, "e")
    eventually(function() return low:refresh()[1] == "evicted" end)
    low:abdicate()
    assert.equal("denied", low:claim()[1])
    assert.equal("granted", high:claim()[1])
    assert.equal('{"ranks":{"high":5}}', world.text)
  end)

  it("of the last resort tells its leader's level, also when that has changed", function()
    local one, rank = player "one", { level = 0, is_last = true, wait = 0 }
    one.state:prefer(rank)
    assert.equal("granted", one:claim()[1])
    assert.equal('{"ranks":{"one":-1000000}}', world.text)
    rank.is_last = nil
    one.state:ranked()
    eventually(function() return world.text == nil end)
    assert.equal("granted", one:refresh()[1])
  end)

  it("of the last resort is told while it waits, also where a claim would stand in the store's queue", function()
    module = oracle(true)
    local low, one = player "low", player "one"
    one.state:prefer { level = 0, is_last = true, wait = 2 }
    assert.equal("granted", low:claim()[1])
    assert.equal("denied", one:claim()[1])
    assert.equal('{"ranks":{"one":-1000000}}', world.text)
    assert.equal("low", world.holder)
  end)

  it("of the last resort leaves it to others for its time, counted from the end of a hand-over that nobody came for", function()
    local low, one = player "low", player "one"
    one.state:prefer { level = 0, is_last = true, wait = 0.5 }
    assert.equal("granted", low:claim()[1])
    set '{"ranks":{"one":-1000000},"to":"x","within":0.6}'
    assert.equal("denied", one:claim()[1])
    low:abdicate()
    local verdict
    eventually(function()
      verdict = one:claim()
      return not (verdict[7] or ""):find("handed over", 1, true)
    end, 5)
    assert.same({ "denied", "left to candidates that are healthy first" }, { verdict[1], verdict[7] })
    eventually(function() return one:claim()[1] == "granted" end, 5)
  end)

  it("is written over no other one", function()
    local before = assert(module.order({ order = { pause = true } }, "e"))
    assert.same({ nil, true }, { before.node, world.text:find '"pause":true' ~= nil })
    local found = module.list()[1]
    assert.same({ "e", "paused", true }, { found.name, found.ordered, found.orders.pause })
    assert.same({ one = true }, module.nodes())
    assert.same({ nil, "'e' is paused: resume it first", "refused" }, { module.order({ order = { to = "x" } }, "e") })
    world.before_write = function() world.version, world.before_write = world.version + 1, nil end
    assert.is_truthy(module.order({ order = false }, "e"))
    assert.is_nil(world.text)
    assert.is_true(module.order({ order = { pause = true } }, "other").is_unknown)
  end)
end)
