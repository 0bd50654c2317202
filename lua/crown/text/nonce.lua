--- Texts that never come twice, in this process or in another one.
-- @internal crown.text.nonce

local crypto = require "crown.core.crypto"
local hex = require "crown.text.hex"

local life, count = nil, 0

--- Makes one.
-- @treturn string
return function()
  life = life or hex(crypto.random(8)) -- asked of the kernel once
  count = count + 1 -- same (swap): another number each time
  return ("%s-%d"):format(life, count)
end
