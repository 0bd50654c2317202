--- Questions that do not wait for each other.
-- @internal crown.link.together

local core = require "crown.core"
local promise = require "crown.core.promise"

--- Asks two at once, and waits for both.
-- @tparam function one returns up to three values
-- @tparam function other
-- @treturn table what `one` returned, an array
-- @treturn table what `other` returned
return function(one, other)
  local answer = promise()
  core.detach(function()
    local fine, first, second, third = pcall(other)
    answer:resolve(true, fine and { first, second, third } or { nil, first })
  end)
  local found = { one() }
  return found, select(2, answer:wait(math.huge))
end
