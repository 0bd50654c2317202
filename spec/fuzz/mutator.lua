--- Nonsense that is close to sense: samples of what a server says, changed at random by a seed.
local mutator = {}

local NUMBERS = { "0", "-1", "1", "255", "65536", "2147483647", "-2147483648", "4294967296", "9223372036854775807",
  "-9223372036854775808", "99999999999999999999", "1e308", "nan", "" }

local function at(text) return math.random(0, #text) end

local changes = {
  function(text) -- a byte
    local i = at(text)
    return text:sub(1, i) .. string.char(math.random(0, 255)) .. text:sub(i + 2)
  end,
  function(text) -- some less
    local i = at(text)
    return text:sub(1, i) .. text:sub(i + math.random(1, 8))
  end,
  function(text) -- some twice
    local i = at(text)
    local piece = text:sub(i, i + math.random(1, 16))
    return text:sub(1, i) .. piece:rep(math.random(1, 3)) .. text:sub(i + 1)
  end,
  function(text) return text:sub(1, at(text)) end,
  function(text, samples) -- the end of another
    local other = samples[math.random(#samples)]
    return text:sub(1, at(text)) .. other:sub(at(other) + 1)
  end,
  function(text) -- a number
    local i = at(text)
    local first, last = text:find("%-?%d+", i)
    if not first then return text end
    return text:sub(1, first - 1) .. NUMBERS[math.random(#NUMBERS)] .. text:sub(last + 1)
  end,
}

--- Makes one.
-- @tparam table samples texts
-- @treturn string
function mutator.next(samples)
  local text = samples[math.random(#samples)]
  for _ = 1, math.random(1, 4) do text = changes[math.random(#changes)](text, samples) end
  return text
end

return mutator
