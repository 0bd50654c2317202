-- The lease in a record, in a virtual cluster: one leader, epochs that rise, and somebody who leads when the trouble is over.
local crown = require "crown"
local record = require "crown.oracle.record"
local World = require "support.cas_world"

local SEEDS = 150

local function breathe() crown.sleep(0) end

local function run(seed, versions, options)
  local world = { seed = seed, versions = versions }
  for key, value in pairs(options) do world[key] = value end
  local fine, problem = pcall(function() return World.new(world):run(World.SECONDS, breathe) end)
  if not fine then error(("seed %d, versions by %s: %s"):format(seed, versions, tostring(problem)), 0) end
  return problem
end

describe("a lease in a record, in a virtual cluster", function()
  for _, versions in ipairs(World.VERSIONS) do
    for title, options in pairs {
      ["is held by one, in a store that forgets nothing"] = { remembers = true },
      ["is held by one, in a store that forgets"] = {},
    } do
      it(("%s (versions: %s)"):format(title, versions), function()
        local terms = 0
        for seed = 1, SEEDS do terms = terms + run(seed, versions, options).terms end
        assert.is_true(terms > 5 * SEEDS, terms .. " terms")
      end)
    end
  end
end)

describe("the simulation of a lease in a record finds", function()
  local function is_found(options)
    for seed = 1, SEEDS do
      if not pcall(run, seed, "count", options or {}) then return end
    end
    error "nothing was found"
  end

  local doubted = record.doubted
  after_each(function() record.doubted = doubted end)

  it("a store that does not compare", function() is_found { remembers = true, careless = true } end)

  it("a candidate that waits for its own TTL only when the record is gone, which is shorter than another's", function()
    is_found { floor = 0 }
  end)

  it("epochs that are given again when the record is gone", function()
    record.doubted = function(_, ttl) return doubted(0, ttl) end
    is_found()
  end)

  it("a missing record that is believed", function()
    record.doubted = record.empty
    is_found()
  end)
end)
