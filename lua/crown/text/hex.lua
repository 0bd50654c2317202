--- Bytes as hexadecimal digits.
-- @internal crown.text.hex

local function two_digits(byte)
  return ("%02x"):format(byte:byte())
end

--- Writes bytes as hexadecimal digits.
-- @string bytes
-- @treturn string two digits a byte, in small letters
local function hex(bytes)
  return (bytes:gsub(".", two_digits))
end

return hex
