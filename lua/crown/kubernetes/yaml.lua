--- The part of YAML that kubectl writes: mappings and lists by their indentation, plain and quoted scalars, literal blocks. What
-- it does not know is an error, never another value.
-- @internal crown.kubernetes.yaml

local yaml = {}

local ESCAPES = { n = "\n", t = "\t", r = "\r", ["0"] = "\0", ["\\"] = "\\", ['"'] = '"', ["/"] = "/" }

-- Of a line that cannot be read; caught in yaml.read.
local function fail(line, words)
  error({ problem = ("line %d: %s"):format(line.number, words) }, 0)
end

local function lines_of(text)
  local lines, number = {}, 0
  for raw in (text .. "\n"):gmatch "(.-)\r?\n" do
    number = number + 1
    local spaces, rest = raw:match "^( *)(.-)%s*$"
    lines[number] = { number = number, indent = #spaces, text = rest }
    if rest:find "^\t" then fail(lines[number], "a tab, where YAML has spaces") end
    if raw:find "^%-%-%-" or raw:find "^%%" or rest:find "^#" then lines[number].text = "" end
  end
  return lines
end

-- @return the index of the next line that is not empty; nil at the end
local function skip(lines, at)
  while lines[at] and lines[at].text == "" do at = at + 1 end
  return lines[at] and at
end

local function double_quoted(line, text)
  local inside, rest = text:match '^"(.-[^\\])"(.*)$'
  if text:find '^""' then inside, rest = "", text:sub(3) end
  if not inside or inside:find "\\[^ntr0\\\"/]" then fail(line, "a string in double quotes that cannot be read") end
  return inside:gsub("\\(.)", ESCAPES), rest
end

local function single_quoted(line, text)
  local at = 2
  while true do
    local quote = text:find("'", at, true)
    if not quote then fail(line, "a string in single quotes that does not end") end
    if text:sub(quote + 1, quote + 1) ~= "'" then return text:sub(2, quote - 1):gsub("''", "'"), text:sub(quote + 1) end
    at = quote + 2
  end
end

local WORDS = { ["null"] = yaml, ["~"] = yaml, ["true"] = true, ["false"] = false }

-- @return a string or a boolean; nil for null
local function scalar(line, text)
  local quote = text:match "^[\"']"
  if quote then
    local value, rest = (quote == '"' and double_quoted or single_quoted)(line, text)
    if rest:find "^%s*[^%s#]" then fail(line, "more behind the end of a string") end
    return value
  end
  text = text:gsub("%s+#.*$", "")
  if text == "{}" or text == "[]" then return {} end
  if text:find "^[%[{&*!>@`%%]" then fail(line, "YAML that kubectl does not write") end
  local word = WORDS[text]
  if word == yaml then return nil end
  if word ~= nil then return word end
  return text
end

-- A literal block: the lines that are further in.
local function literal(lines, at, indent)
  local parts, inner = {}, nil
  while lines[at] and (lines[at].text == "" or lines[at].indent > indent) do
    local line = lines[at]
    inner = inner or line.text ~= "" and line.indent or nil
    parts[#parts + 1] = (" "):rep(math.max(0, line.indent - (inner or line.indent))) .. line.text
    at = at + 1
  end
  return table.concat(parts, "\n"), at
end

local block

-- What stands behind "key:": on the line itself, or below it.
local function value_of(lines, at, text)
  local line = lines[at]
  if text:find "^|[-+]?$" then return literal(lines, at + 1, line.indent) end
  if text ~= "" then return scalar(line, text), at + 1 end
  local below = skip(lines, at + 1)
  local following = lines[below]
  local is_list = following and following.text:find "^%-%f[%s%z]"
  if following and (following.indent > line.indent or is_list and following.indent == line.indent) then
    return block(lines, below, following.indent)
  end
  return nil, at + 1
end

local function key_of(line)
  if line.text:find "^[\"']" then
    local key, rest = (line.text:sub(1, 1) == '"' and double_quoted or single_quoted)(line, line.text)
    if rest:find "^:" then return key, rest:match "^:%s*(.*)$" end
  end
  local key, rest = line.text:match "^([^%s:][^:]*):%s+(.*)$"
  if not key then key, rest = line.text:match "^([^%s:].*):$", "" end
  if not key then fail(line, "neither 'key: value' nor a list's '- '") end
  return key, rest
end

local function mapping(lines, at, indent)
  local found = {}
  while at and lines[at].indent == indent and not lines[at].text:find "^%-%f[%s%z]" do
    local key, rest = key_of(lines[at])
    if rest:find "^#" then rest = "" end
    if found[key] ~= nil then fail(lines[at], ("'%s' is there twice"):format(key)) end
    found[key], at = value_of(lines, at, rest)
    at = skip(lines, at)
  end
  return found, at
end

local function list(lines, at, indent)
  local found = {}
  while at and lines[at].indent == indent and lines[at].text:find "^%-%f[%s%z]" do
    local line = lines[at]
    local space, rest = line.text:match "^%-(%s*)(.*)$"
    if rest == "" then
      found[#found + 1], at = value_of(lines, at, "")
    elseif rest:find "^[^\"'%s][^%s:]*:%f[%s%z]" then -- a mapping that begins behind the dash
      lines[at] = { number = line.number, indent = indent + 1 + #space, text = rest }
      found[#found + 1], at = mapping(lines, at, lines[at].indent)
    else
      found[#found + 1], at = scalar(line, rest), at + 1
    end
    at = at and skip(lines, at)
  end
  return found, at
end

function block(lines, at, indent)
  if lines[at].text:find "^%-%f[%s%z]" then return list(lines, at, indent) end
  return mapping(lines, at, indent)
end

--- Reads a document.
-- @string text
-- @treturn table what it says; or nil and a message that names the line
function yaml.read(text)
  local fine, found = pcall(function()
    local lines = lines_of(text)
    local first = skip(lines, 1)
    if not first then return {} end
    local value, rest = block(lines, first, lines[first].indent)
    if rest then fail(lines[rest], "an indentation that fits nothing above it") end
    return value
  end)
  if fine then return found end
  if type(found) ~= "table" then error(found, 0) end
  return nil, found.problem
end

return yaml
