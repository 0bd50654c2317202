--- Mistakes of the user's: errors that print as one clear line and end the command with exit code 2.
-- @internal crown.check.usage

local others = require "crown.check.others"

local usage = {}
local Usage = {}
Usage.__index = Usage

function Usage.__tostring(self)
  return self.message
end

-- How the names of our own modules begin, as they are embedded.
local OURS = { ["@crown/"] = true, ["@oracles/"] = true, ["@stores/"] = true }

-- Where the user's own code called us: "app.lua:7: ", or "" when it did not.
local function place()
  for level = 3, math.huge do
    local frame = debug.getinfo(level, "Sl")
    if not frame then return "" end
    if frame.source:match "^@" and not OURS[frame.source:match "^@%l+/"] then
      return ("%s:%d: "):format(frame.source:sub(2), frame.currentline)
    end
  end
end

-- One line, whatever the user wrote.
local function escape(character)
  return ("\\x%02x"):format(character:byte())
end

--- Raises a usage error. Where the user's code is to blame, its file and line stand before the text.
-- @string format as string.format takes it; one line that names what is wrong and where
-- @param ... its values
function usage.error(format, ...)
  local values = { ... }
  for i = 1, select("#", ...) do
    if type(values[i]) == "string" then values[i] = values[i]:gsub("[%z\1-\31\127]", escape) end
  end
  local message = place() .. format:format(unpack(values, 1, select("#", ...)))
  error(setmetatable({ usage = true, message = message }, Usage), 0)
end

--- How many edits make one word into another (Levenshtein), for suggestions.
local function distance(a, b)
  local previous = {}
  for j = 0, #b do previous[j] = j end
  for i = 1, #a do
    local current = { [0] = i }
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      current[j] = math.min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost)
    end
    previous = current
  end
  return previous[#b]
end

--- What another system's word is here, also where an unknown word may be somebody else's to judge.
-- @string word what was written
-- @tparam table known an array of our words
-- @treturn string as of usage.suggest; nil where it is no other system's word
function usage.translate(word, known)
  local ours, say = others.find(word, known)
  return ours and (" (did you mean '%s'?)"):format(ours) or say and (" (%s)"):format(say) or nil
end

--- What the user may have meant.
-- @string word what was written
-- @tparam table known an array of words
-- @treturn string " (did you mean 'x'?)", what to do instead of what another system does, or ""
function usage.suggest(word, known)
  local meant = usage.translate(word, known)
  if meant then return meant end
  local best, least = nil, math.max(2, math.floor(#word / 3)) + 1
  for _, candidate in ipairs(known) do
    local far = others.plain(word) == others.plain(candidate) and 0 or distance(word, candidate)
    if far < least then best, least = candidate, far end
  end
  return best and (" (did you mean '%s'?)"):format(best) or ""
end

--- An error in one line, without what it lists or traces below. Where the first line only names the module that did not
-- load, the next one has the reason.
-- @param problem the error
-- @treturn string
function usage.one_line(problem)
  local first, second = tostring(problem):match "^([^\n]*)\n?%s*([^\n]*)"
  return first:sub(-1) == ":" and ("%s %s"):format(first, second) or first
end

--- The keys of a table, in order, for suggestions.
-- @tparam table known
-- @treturn table an array of names
function usage.names(known)
  local names = {}
  for name in pairs(known) do names[#names + 1] = name end
  table.sort(names)
  return names
end

return usage
