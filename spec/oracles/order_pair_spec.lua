-- What stands in for an oracle of the user's own that takes operators' orders by two functions: played by hand.
local contract = require "crown.election.contract"
local eventually = require("crown.testing").eventually
local events = require "crown.election.events"
local Player = require "support.oracle_candidate"

describe("an oracle with look_orders and swap_orders", function()
  local world, errors
  setup(function() events.on("oracle.error", function(event) errors[#errors + 1] = event.error end) end)

  -- Its states are numbers; who holds the election is `world.holder`, its orders `world.text`.
  local function users_module()
    local nodes = {}
    local made = { name = "mine" }
    function made.init(opts)
      if world.ignores then return contract.IGNORE end
      nodes[#nodes + 1] = opts.node
      return #nodes
    end
    function made.claim(state)
      if world.holder and world.holder ~= nodes[state] then return false, { node = world.holder } end
      world.holder, world.epoch = nodes[state], world.epoch + 1
      return true, 1, { ttl = 3, epoch = world.epoch }
    end
    function made.refresh(state)
      if world.evicts then return false, { evicted = true } end
      return world.holder == nodes[state], 1
    end
    function made.abdicate(state) world.holder = world.holder ~= nodes[state] and world.holder or nil end
    function made.handle_info(_, message) world.heard = message end
    function made.list()
      if world.is_broken then error "broken" end
      return { { name = "e", node = world.holder, epoch = world.epoch } }
    end
    function made.look_orders(_, name)
      if world.answer then return unpack(world.answer) end
      return name == "e" and world.text or false
    end
    function made.swap_orders(_, _, was, now)
      if was ~= (world.text or false) then return false end
      world.text = now or nil
      return true
    end
    return made
  end

  local module

  before_each(function()
    world, errors = { epoch = 0 }, {}
    module = contract.find("x", { users_module() })
  end)

  local function player(node) return Player.new(module, { name = "e", node = node }) end

  it("is one for each module, and asks that for the rest", function()
    local users = users_module()
    local first, _, word = contract.find("x", { users, ttl = 3 })
    assert.same({ true, "mine", "mine" }, { first == contract.find("x", { users }), word, first.name })
    assert.is_nil(users.order)
    local one = player "one"
    assert.same({ "granted", 1, 3, 1 }, { unpack(one:claim(), 1, 4) })
    assert.equal("nothing", one:call("handle_info", "hello")[1])
    assert.equal("hello", world.heard)
    world.ignores = true
    assert.equal(contract.IGNORE, module.init { crown_name = "e", node = "two" })
  end)

  it("obeys, and leads through an eviction until it has gone", function()
    local one, two = player "one", player "two"
    one:win()
    world.evicts = true
    assert.equal("evicted", one:refresh()[1])
    world.text = '{"pause":true,"keep":true}'
    assert.equal("denied", two:claim()[1])
    world.evicts = false
    assert.equal("granted", one:refresh()[1])
    one:abdicate()
    assert.equal("denied", two:claim()[1])
    assert.is_truthy(module.order({ order = false }, "e"))
    eventually(function() return two:claim()[1] == "granted" end)
  end)

  it("counts as free where its list fails, so that an order for a node that does not come has an end", function()
    local one = player "one"
    world.text = '{"to":"nobody","within":0.2}'
    world.is_broken = true
    assert.equal("denied", one:claim()[1])
    eventually(function() return one:claim()[1] == "granted" end)
    assert.is_nil(world.text)
  end)

  it("has one sentence for each answer that means nothing, and obeys nothing then", function()
    for _, case in ipairs {
      { { 7 }, "oracle 'mine': look_orders returned a number: see the oracle contract" },
      { { true }, "oracle 'mine': look_orders returned a boolean: see the oracle contract" },
      { {}, "oracle 'mine': look_orders returned nil without a reason: see the oracle contract" },
      { { nil, "no right", "store" }, "no right" },
    } do
      errors, world.answer = {}, case[1]
      local one = player "one"
      assert.equal("granted", one:claim()[1])
      one:abdicate()
      eventually(function() return errors[1] end)
      assert.equal("operators' orders cannot be read here, and are not obeyed until they can: " .. case[2], errors[1])
      assert.same({ nil, case[2], "store" }, { module.order({ order = { pause = true } }, "e") })
    end
    world.answer = { "" } -- as in an empty file
    assert.equal("granted", player("one"):claim()[1])
  end)
end)
