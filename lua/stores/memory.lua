--- A register in this process's memory, for the elections of one runtime. A record's text, which has a nonce, is its version.
-- @internal crown.stores.memory

local Followers = require "crown.oracle.followers"

local Memory = {}
Memory.__index = Memory

--- Makes an empty one.
-- @treturn Memory `writes`: how many there were
function Memory.new()
  return setmetatable({ texts = {}, writes = 0, followers = Followers.new() }, Memory)
end

--- Has somebody told of an election's changes, for as long as it is there.
-- @string name
-- @tparam table follower has the method `tell()`
function Memory:follow(name, follower)
  self.followers:add(name, follower)
end

function Memory:look(names)
  local answers = {}
  for _, name in ipairs(names) do
    local text = self.texts[name] or false
    answers[name] = { text = text, version = text, memory = "" }
  end
  return answers
end

function Memory:swap(writes)
  local results = {}
  for i, write in ipairs(writes) do
    local stands = (self.texts[write.name] or false) == write.version
    results[i] = stands and write.text
    if stands then
      self.texts[write.name], self.writes = write.text, self.writes + 1
      for follower in self.followers:of(write.name) do follower:tell() end
    end
  end
  return results
end

return Memory
