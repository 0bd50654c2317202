--- How well a secret withstands somebody who may try as many as he likes: whoever dials a member gets a proof that he can
-- compare his guesses with.
-- @internal crown.registry.secret

local secret = {}

local BITS_LEAST = 128
local DIFFERENT_LEAST = 10
local KINDS = { ["%d"] = 10, ["%l"] = 26, ["%u"] = 26, ["[^%w]"] = 32 }

--- The least bytes of one.
secret.LEAST = 16

local function bits(text)
  local letters = 0
  for kind, count in pairs(KINDS) do
    if text:find(kind) then letters = letters + count end
  end
  return #text * math.log(letters) / math.log(2)
end

--- Whether a secret may be guessed: too few letters for what they are, or too few different ones.
-- @string text
-- @treturn boolean
function secret.is_weak(text)
  local seen, different = {}, 0
  for letter in text:gmatch "." do
    if not seen[letter] then different = different + 1 end
    seen[letter] = true
  end
  return different < DIFFERENT_LEAST or bits(text) < BITS_LEAST
end

return secret
