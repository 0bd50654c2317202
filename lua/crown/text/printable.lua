--- Text from a store, a child or a peer, made harmless for a terminal.
-- @internal crown.text.printable

local function escape(character)
  return ("\\x%02x"):format(character:byte(-1))
end

--- Replaces control characters, of ASCII and of the second block (U+0080 to U+009F as UTF-8, ECMA-48), by `\xNN`.
-- @string text
-- @treturn string
local function printable(text)
  return (text:gsub("[%z\1-\31\127]", escape):gsub("\194[\128-\159]", escape))
end

return printable
