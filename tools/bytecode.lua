--- LuaJIT's bytecode in one order, so that two builds of one source are the same bytes.
-- string.dump writes the pairs of a constant table as they lie in its hash, which is seeded at random in each process. Here
-- they are sorted. Nothing else of what it writes depends on the seed.
local bytecode = {}

local VERSION_2 = "\27LJ\2" -- the format that is known here: LuaJIT 2.1's lj_bcdump.h
local STRIPPED = 2 -- flag of the head: without names and lines
local TABLE, INT64, UINT64, COMPLEX, STRING = 1, 2, 3, 4, 5 -- constants that a function refers to
local IN_TABLE = { INTEGER = 3, NUMBER = 4, STRING = 5 }

--- Sorts the pairs of each constant table.
-- @string code what string.dump has made
-- @treturn string as long as `code`, and the same function; `code` itself where its format is another one
function bytecode.in_order(code)
  if code:sub(1, #VERSION_2) ~= VERSION_2 then return code end
  local out, copied, at = {}, 1, #VERSION_2 + 1

  local function number() -- in groups of seven bits, the lowest first
    local value, factor = 0, 1
    repeat
      local byte = code:byte(at)
      value, factor, at = value + byte % 128 * factor, factor * 128, at + 1
    until byte < 128
    return value
  end

  local function numbers(count)
    for _ = 1, count do number() end
  end

  local function skip_value()
    local kind = number()
    if kind >= IN_TABLE.STRING then
      at = at + kind - IN_TABLE.STRING
    elseif kind >= IN_TABLE.INTEGER then
      numbers(kind == IN_TABLE.NUMBER and 2 or 1)
    end
  end

  local function sort_table()
    local list_size, pair_count = number(), number()
    for _ = 1, list_size do skip_value() end
    local first, sorted = at, {}
    for i = 1, pair_count do
      local from = at
      skip_value() -- the key
      skip_value()
      sorted[i] = code:sub(from, at - 1)
    end
    table.sort(sorted)
    out[#out + 1] = code:sub(copied, first - 1) .. table.concat(sorted)
    copied = at
  end

  local function constant()
    local kind = number()
    if kind >= STRING then
      at = at + kind - STRING
    elseif kind == TABLE then
      sort_table()
    elseif kind == COMPLEX then
      numbers(4)
    elseif kind == INT64 or kind == UINT64 then
      numbers(2)
    end
  end

  local function prototype(size, has_lines)
    local after = at + size
    local upvalues = code:byte(at + 3)
    at = at + 4
    local constants, _, instructions = number(), number(), number()
    if has_lines and number() > 0 then numbers(2) end
    at = at + 4 * instructions + 2 * upvalues
    for _ = 1, constants do constant() end
    at = after
  end

  local has_lines = number() % (2 * STRIPPED) < STRIPPED
  if has_lines then at = at + number() end -- the chunk's name
  local size = number()
  while size > 0 do
    prototype(size, has_lines)
    size = number()
  end
  return table.concat(out) .. code:sub(copied)
end

return bytecode
