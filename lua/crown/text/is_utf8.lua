--- Whether a text is UTF-8, as stores such as Postgres demand.
-- @internal crown.text.is_utf8

-- The table of RFC 3629, section 4: no overlong forms, no surrogates, nothing past U+10FFFF.
local FORMS = {
  "^[%z\1-\127]+()", "^[\194-\223][\128-\191]()",
  "^\224[\160-\191][\128-\191]()", "^[\225-\236\238\239][\128-\191][\128-\191]()", "^\237[\128-\159][\128-\191]()",
  "^\240[\144-\191][\128-\191][\128-\191]()", "^[\241-\243][\128-\191][\128-\191][\128-\191]()",
  "^\244[\128-\143][\128-\191][\128-\191]()",
}

local function behind(text, at)
  for _, form in ipairs(FORMS) do
    local after = text:match(form, at)
    if after then return after end
  end
end

--- Whether it is.
-- @string text
-- @treturn boolean
local function is_utf8(text)
  local at = 1
  while at and at <= #text do at = behind(text, at) end
  return at ~= nil
end

return is_utf8
