--- Base64, as RFC 4648 has it.
-- @module crown.base64

local base64 = {}

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local VALUES = {}
for i = 1, 64 do VALUES[ALPHABET:byte(i)] = i - 1 end

--- Encodes bytes.
-- @string bytes
-- @treturn string
function base64.encode(bytes)
  local out = {}
  for i = 1, #bytes, 3 do
    local a, b, c = bytes:byte(i, i + 2)
    local bits = a * 65536 + (b or 0) * 256 + (c or 0)
    for at = 0, 3 do
      local index = math.floor(bits / 64 ^ (3 - at)) % 64 + 1
      local padding = at == 2 and not b or at == 3 and not c
      out[#out + 1] = padding and "=" or ALPHABET:sub(index, index)
    end
  end
  return table.concat(out)
end

--- Decodes characters that stand for some bits each.
-- @string text without padding
-- @tparam table values what a character's byte stands for
-- @number width bits of a character
-- @treturn string the bytes, or nil where a character stands for nothing
function base64.decode_bits(text, values, width)
  local out, bits, count = {}, 0, 0
  for i = 1, #text do
    local value = values[text:byte(i)]
    if not value then return nil end
    bits, count = bits * 2 ^ width + value, count + width
    if count >= 8 then
      count = count - 8
      out[#out + 1] = string.char(math.floor(bits / 2 ^ count) % 256)
      bits = bits % 2 ^ count
    end
  end
  return table.concat(out)
end

--- Decodes text.
-- @string text
-- @treturn string the bytes, or nil when it is no Base64
function base64.decode(text)
  return base64.decode_bits(text:match "^[^=]*", VALUES, 6)
end

return base64
