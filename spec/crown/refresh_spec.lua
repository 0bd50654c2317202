-- A refresh beside tasks that compute: what it waits for comes first.
local crown = require "crown"
local eventually = require("crown.testing").eventually

local HOGS, STEPS, WANTED = 3, 5, 5

-- A store that takes several steps to answer, each of which needs a turn of the loop.
local function oracle(between)
  local asked = 0
  local function granted()
    asked = asked + 1
    return true, 0.05, { epoch = 1, ttl = 60 }
  end
  return {
    init = function() return {} end,
    claim = granted,
    refresh = function()
      local before = between()
      for _ = 1, STEPS do crown.sleep(0.001) end
      between(between() - before)
      return granted()
    end,
    abdicate = function() end,
    handle_info = function() end,
  }
end

describe("a refresh", function()
  it("does not wait for a slice of those that compute at each of its steps", function()
    local slices, last, fewest, refreshed = 0, nil, math.huge, 0
    local function between(meanwhile)
      if meanwhile then fewest, refreshed = math.min(fewest, meanwhile), refreshed + 1 end
      return slices
    end
    local done = false
    local election = crown.elect { name = "steps", oracle = oracle(between), handlers = { won = function()
      for i = 1, HOGS do
        crown.spawn(function()
          while not done do
            if last ~= i then slices, last = slices + 1, i end
          end
        end)
      end
    end } }
    eventually(function() return refreshed >= WANTED end, 30)
    done = true
    election:stop()
    eventually(function() return election.handle:finished() end)
    assert.is_true(fewest < STEPS / 2, "slices meanwhile: " .. fewest)
  end)
end)
