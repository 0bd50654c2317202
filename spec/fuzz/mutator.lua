--- Nonsense that is close to sense: samples of what a server says, changed at random by a seed.
local mutator = {}

local NUMBERS = { "0", "-1", "1", "255", "65536", "2147483647", "-2147483648", "4294967296", "9223372036854775807",
  "-9223372036854775808", "99999999999999999999", "1e308", "nan", "" }

local function at(text, random) return random(0, #text) end

local changes = {
  function(text, random) -- a byte
    local i = at(text, random)
    return text:sub(1, i) .. string.char(random(0, 255)) .. text:sub(i + 2)
  end,
  function(text, random) -- some less
    local i = at(text, random)
    return text:sub(1, i) .. text:sub(i + random(1, 8))
  end,
  function(text, random) -- some twice
    local i = at(text, random)
    local piece = text:sub(i, i + random(1, 16))
    return text:sub(1, i) .. piece:rep(random(1, 3)) .. text:sub(i + 1)
  end,
  function(text, random) return text:sub(1, at(text, random)) end,
  function(text, random, samples) -- the end of another
    local other = samples[random(#samples)]
    return text:sub(1, at(text, random)) .. other:sub(at(other, random) + 1)
  end,
  function(text, random) -- a number
    local i = at(text, random)
    local first, last = text:find("%-?%d+", i)
    if not first then return text end
    return text:sub(1, first - 1) .. NUMBERS[random(#NUMBERS)] .. text:sub(last + 1)
  end,
}

--- Makes numbers from a seed, in an order that nobody else changes.
-- @number seed
-- @treturn function as math.random
function mutator.random(seed)
  local state = seed * 2654435761 % (2 ^ 31 - 2) + 1
  return function(least, most)
    if not most then least, most = 1, least end
    state = state * 16807 % (2 ^ 31 - 1)
    return least + state % (most - least + 1)
  end
end

--- Makes one.
-- @tparam table samples texts
-- @tparam function random of `random`, or math.random
-- @treturn string
function mutator.next(samples, random)
  local text = samples[random(#samples)]
  for _ = 1, random(1, 4) do text = changes[random(#changes)](text, random, samples) end
  return text
end

return mutator
