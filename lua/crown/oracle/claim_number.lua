--- Numbers of claims. They rise, also from one runtime of a candidate to the next: microseconds since the start of the host.
-- A store refuses a claim that is older than one it has seen, so that nothing late undoes what came after it.
-- @internal crown.oracle.claim_number

local core = require "crown.core"

--- The next number.
-- @number last the one before; 0 for none
-- @treturn number
local function claim_number(last)
  return math.max(last + 1, math.floor(core.now() * 1e6))
end

return claim_number
