-- The register's rule in virtual clusters: one leader for each election, epochs that rise, and somebody who leads when the trouble
-- is over. `make simulate-register` runs more of them, and breaks the rule.
local crown = require "crown"
local load = require "support.register_modules"
local World = require "support.register_world"

local CLUSTERS = 15

local function breathe() crown.sleep(0) end

-- What a runtime has forgotten must not depend on when it is collected.
local function run(options)
  collectgarbage()
  collectgarbage "stop"
  local fine, result = pcall(function() return World.new(options):run(breathe) end)
  collectgarbage "restart"
  if not fine then error(("seed %d: %s"):format(options.seed, tostring(result)), 0) end
  return result.terms
end

describe("the register's rule", function()
  local modules = load()

  for _, title in ipairs {
    "has one leader in the world remembers", "has one leader in the world forgets", "has one leader in the world nameless",
    "has one leader in the world drift", "has one leader in the world late", "has one leader in the world twice",
    "has one leader in the world blind", "has one leader in the world restarts", "has one leader in the world several",
    "has one leader in the world cluster", "has one leader in the world peers", "has one leader in the world aged",
    "has one leader in the world marks", "has one leader in the world ends", "has one leader in the world wills",
    "has one leader in the world whole", "has one leader in the world wholly", "has one leader in the world confirms",
    "has one leader in the world news", "has one leader in the world stale", "has one leader in the world runs",
    "has one leader in the world occurrences", "has one leader in the world preferred",
    "has one leader in the world shared", "has one leader in the world healthy",
    "has one leader in the world prefers", "has one leader in the world trusts", "has one leader in the world trusting",
  } do
    local kind = title:match "%l+$"
    it(title, function()
      local terms = 0
      for seed = 1, CLUSTERS do
        terms = terms + run { seed = seed, kind = kind, modules = modules }
      end
      assert.is_true(terms >= 2 * CLUSTERS, terms .. " terms")
    end)
  end

  it("is tried in the same way twice by one seed", function()
    local function story()
      local lines = {}
      local function trace(line) lines[#lines + 1] = line:gsub("{.*}", function(fields) return #fields end) end
      run { seed = 7, kind = "several", modules = modules, trace = trace }
      return table.concat(lines, "\n")
    end
    local once = story()
    assert.is_true(#once > 1000)
    assert.are.equal(once, story())
  end)

  it("is not enough in a store that does not compare", function()
    assert.has_error(function()
      for seed = 1, CLUSTERS do World.new { seed = seed, kind = "remembers", modules = modules, careless = true }:run(breathe) end
    end)
  end)
end)
