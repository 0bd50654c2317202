--- One slip: what it makes of the text, and how it is told.
local slip = {}

local MOST_SHOWN = 110
local BEFORE = 60 -- of a long line, what stands before the slip

--- The text with the slip in it.
function slip.apply(one, text)
  return text:sub(1, one.at - 1) .. one.to .. text:sub(one.at + one.length)
end

local function shown(text)
  text = text:gsub("^%s+", ""):gsub("%s+$", ""):gsub("%s+", " ")
  return #text > MOST_SHOWN and text:sub(1, MOST_SHOWN) .. "…" or text
end

--- The lines that it changes, before and after.
function slip.lines(one, text)
  local from = one.at
  while from > 1 and from > one.at - BEFORE and text:sub(from - 1, from - 1) ~= "\n" do from = from - 1 end
  local last = one.at + one.length - 1
  local to = (text:find("\n", last, true) or #text + 1) - 1
  return shown(text:sub(from, to)), shown(text:sub(from, one.at - 1) .. one.to .. text:sub(last + 1, to))
end

--- A name that two slips of one commit never share.
function slip.name(one)
  return ("%s:%d:%s:%d:%d:%s"):format(one.file, one.line, one.operator, one.at, one.length, one.to:gsub("%s+", " "))
end

return slip
