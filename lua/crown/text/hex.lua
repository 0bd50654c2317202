--- Bytes as hexadecimal digits.
-- @internal crown.text.hex

local digits = setmetatable({}, { __index = function(self, byte)
  self[byte] = ("%02x"):format(byte:byte())
  return self[byte]
end })

--- Writes bytes as hexadecimal digits.
-- @string bytes
-- @treturn string two digits a byte, in small letters
local function hex(bytes)
  return (bytes:gsub(".", digits))
end

return hex
