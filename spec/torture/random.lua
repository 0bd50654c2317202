--- Numbers that are the same for the same seed on every machine (MINSTD: Park and Miller, 1988).
local MULTIPLIER, MODULUS = 48271, 2 ^ 31 - 1

--- @number seed a whole number
-- @treturn function random(n) → 1 to n; random() → 0 to 1
return function(seed)
  local state = seed % (MODULUS - 1) + 1
  local function random(n)
    state = state * MULTIPLIER % MODULUS
    return n and math.floor(state / MODULUS * n) + 1 or state / MODULUS
  end
  for _ = 1, 8 do random() end -- neighbouring seeds begin alike
  return random
end
