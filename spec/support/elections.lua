--- Elections of a spec's own process: each has a name of its own, and all of them are stopped at the end of a test.
local crown = require "crown"
local testing = require "crown.testing"

local Elections = {}
Elections.__index = Elections

local serial = 0

--- The elections of one spec.
function Elections.new() return setmetatable({ running = {} }, Elections) end

--- A name that no other election of this process has.
function Elections.unique()
  serial = serial + 1
  return ("elect-spec-%d"):format(serial)
end

--- Declares one.
-- @tparam table options of crown.elect; without a name it gets one
function Elections:elect(options)
  options.name = options.name or Elections.unique()
  local election = crown.elect(options)
  self.running[#self.running + 1] = election
  return election
end

--- Declares many, and waits until all of them lead.
-- @number count
-- @tparam function options_of the options of each, by its number
-- @treturn table an array of them
function Elections:lead(count, options_of)
  local all = {}
  for i = 1, count do all[i] = self:elect(options_of(i)) end
  testing.eventually(function()
    for _, one in ipairs(all) do
      if not one:is_leader() then return false end
    end
    return true
  end, 60)
  return all
end

--- Stops them all, and waits until they have ended.
function Elections:stop()
  local running = self.running
  self.running = {}
  for _, election in ipairs(running) do election:stop() end
  for _, election in ipairs(running) do
    testing.eventually(function() return not election.handle or election.handle:finished() end)
  end
end

return Elections
