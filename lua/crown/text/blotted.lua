--- What a server says, without the secrets that it was told: some repeat what they do not understand.
-- @internal crown.text.blotted

local core = require "crown.core"

local LEAST = 4 -- bytes; less stands in many words by chance

-- A server may repeat one as often as a megabyte has room for it.
local function without(text, secret)
  local parts, place = {}, 1
  for first, last in function() return text:find(secret, place, true) end do
    parts[#parts + 1] = text:sub(place, first - 1)
    place = last + 1
  end
  parts[#parts + 1] = text:sub(place)
  return table.concat(parts, "***")
end

--- Blots secrets out, as they are and as JSON has them.
-- @string text
-- @tparam table secrets an array of strings
-- @treturn string
local function blotted(text, secrets)
  for _, secret in ipairs(secrets) do
    if #secret >= LEAST then text = without(without(text, secret), core.json.encode(secret):sub(2, -2)) end
  end
  return text
end

return blotted
