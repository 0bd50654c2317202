--- Base64, as RFC 4648 has it.
-- @internal crown.base64

local base64 = {}

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local VALUES = {}
for i = 1, 64 do VALUES[ALPHABET:byte(i)] = i - 1 end

-- What twelve bits read, two characters.
local PAIRS = {}
for i = 0, 4095 do
  local high, low = math.floor(i / 64) + 1, i % 64 + 1
  PAIRS[i] = ALPHABET:sub(high, high) .. ALPHABET:sub(low, low)
end

--- Encodes bytes.
-- @string bytes
-- @treturn string
function base64.encode(bytes)
  local out, at = {}, 0
  for i = 1, #bytes - 2, 3 do
    local a, b, c = bytes:byte(i, i + 2)
    local high = a * 16 + (b - b % 16) / 16
    out[at + 1], out[at + 2] = PAIRS[high], PAIRS[b % 16 * 256 + c]
    at = at + 2
  end
  local rest = #bytes % 3
  if rest == 1 then
    out[at + 1] = PAIRS[bytes:byte(-1) * 16] .. "=="
  elseif rest == 2 then
    local a, b = bytes:byte(-2, -1)
    out[at + 1] = PAIRS[a * 16 + (b - b % 16) / 16] .. PAIRS[b % 16 * 256]:sub(1, 1) .. "="
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
