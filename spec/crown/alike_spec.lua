local alike = require "crown.election.alike"
local crown = require "crown"
local settings = require "crown.election.settings"

local PLAN = {}

local function options(changes)
  local given = { name = "one", retry = 2, oracle = { "memory", refresh = 1, ttl = 5 } }
  for key, value in pairs(changes or {}) do given[key] = value end
  return given
end

describe("elections that are declared one after the other", function()
  it("share what their options came to where only the names differ", function()
    alike.keep(options(), PLAN)
    assert.equal(PLAN, alike.find(options { name = "two" }))
  end)

  it("share nothing where anything else differs", function()
    alike.keep(options(), PLAN)
    local lacking = options()
    lacking.retry = nil
    for _, given in ipairs {
      options { retry = 3 }, options { claim_delay = 1 }, lacking, options { oracle = "memory:alike-spec" },
      options { oracle = { "memory", refresh = 1, ttl = 6 } },
      options { oracle = { "memory", refresh = 1 } },
      options { oracle = { "memory", refresh = 1, ttl = 5, lock = "x" } },
    } do assert.is_nil(alike.find(given)) end
  end)

  it("share nothing where a table that they have in common was changed", function()
    local given = options()
    alike.keep(given, PLAN)
    given.oracle.ttl = 6
    assert.is_nil(alike.find(given))
  end)

  it("share nothing where what they have cannot be compared", function()
    alike.keep(options(), PLAN)
    local found = alike.find(options())
    for _, changes in ipairs { { handlers = {} }, { handlers = "some.module" }, { child = { "true" } }, { oracle = { {} } } } do
      alike.keep(options(changes), {})
      assert.is_nil(alike.find(options(changes)))
    end
    assert.equal(found, alike.find(options()))
  end)

  it("share nothing where the runtime's own settings have changed", function()
    local oracle, ttl = settings.oracle, settings.ttl
    alike.keep(options(), PLAN)
    settings.oracle = "memory:another"
    local with_oracle = alike.find(options())
    settings.oracle, settings.ttl = oracle, 7
    local with_ttl = alike.find(options())
    settings.ttl = ttl
    assert.is_nil(with_oracle)
    assert.is_nil(with_ttl)
    assert.equal(PLAN, alike.find(options()))
  end)

  it("are each checked by name", function()
    local first = crown.elect(options { name = "alike-spec-1", claim_delay = 3600 })
    local function problem(name)
      local fine, message = pcall(crown.elect, options { name = name, claim_delay = 3600 })
      assert.is_false(fine)
      return tostring(message)
    end
    assert.matches("letters, digits", problem "alike spec")
    assert.matches("already an election of this name", problem "alike-spec-1")
    assert.matches("at most 128", problem(("x"):rep(129)))
    first:stop()
  end)
end)
