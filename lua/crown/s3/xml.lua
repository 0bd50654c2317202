--- The little of XML that S3 answers with: elements with a text, and elements that hold those.
-- @internal crown.s3.xml

local xml = {}

local ENTITIES = { lt = "<", gt = ">", quot = '"', apos = "'", amp = "&" }

local function plain(text)
  return (text:gsub("&(#?x?)(%w+);", function(kind, word)
    if kind == "" then return ENTITIES[word] end
    local code = tonumber(word, kind == "#x" and 16 or 10)
    return code and code < 128 and string.char(code) or nil
  end))
end

--- The text of the first element of a name.
-- @string text
-- @string name
-- @treturn string or nil
function xml.text(text, name)
  local found = text:match(("<%s>([^<]*)</%s>"):format(name, name))
  return found and plain(found)
end

--- Goes over the elements of a name.
-- @string text
-- @string name
-- @treturn function → what stands within the next one
function xml.each(text, name)
  return text:gmatch(("<%s>(.-)</%s>"):format(name, name))
end

return xml
