--- Draws one of the tricks that spec/hostile plays.
local tricks = require "support.tricks"

local NAMES = {}
for name in pairs(tricks) do NAMES[#NAMES + 1] = name end
table.sort(NAMES)

--- @tparam function random of torture.random
-- @treturn string what it does, in words
-- @treturn string its script, of support.hostile
return function(random)
  local name = NAMES[random(#NAMES)]
  return name, tricks[name]
end
