--- Text from a store, a child or a peer, made harmless for a terminal.
-- @internal crown.text.printable

-- A character of several bytes, as UTF-8 has it (RFC 3629).
local CHARACTERS = { "^[\194-\223][\128-\191]", "^\224[\160-\191][\128-\191]", "^[\225-\236\238\239][\128-\191][\128-\191]",
  "^\237[\128-\159][\128-\191]", "^\240[\144-\191][\128-\191][\128-\191]", "^[\241-\243][\128-\191][\128-\191][\128-\191]",
  "^\244[\128-\143][\128-\191][\128-\191]" }

local function escape(character)
  return ("\\x%02x"):format(character:byte(-1))
end

local function last_at(text, place)
  for _, pattern in ipairs(CHARACTERS) do
    local _, last = text:find(pattern, place)
    if last then return last end
  end
end

-- What is no character stands alone: in other encodings than UTF-8 it may be one that steers the terminal.
local function clean(bytes)
  local parts, place = {}, 1
  while place <= #bytes do
    local last = last_at(bytes, place)
    local one = bytes:sub(place, last or place)
    parts[#parts + 1] = (not last or one:find "^\194[\128-\159]") and escape(one) or one
    place = place + #one
  end
  return table.concat(parts)
end

--- Replaces control characters, of ASCII and of the second block (U+0080 to U+009F as UTF-8, ECMA-48), and bytes that are no
-- UTF-8, by `\xNN`.
-- @string text
-- @treturn string
local function printable(text)
  return (text:gsub("[%z\1-\31\127]", escape):gsub("[\128-\255]+", clean))
end

return printable
