--- What a server says, without the secrets that it was told: some repeat what they do not understand.
-- @internal crown.text.blotted

local core = require "crown.core"

local LEAST = 4 -- bytes; less stands in many words by chance

local function without(text, secret)
  local first, last = text:find(secret, 1, true)
  if not first then return text end
  return text:sub(1, first - 1) .. "***" .. without(text:sub(last + 1), secret)
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
