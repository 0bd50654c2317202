--- What an election may be called.
-- @internal crown.check.names

local names = {}

-- A name is part of paths, and a word of command lines: ".." and "--" mean something else there.
local PATTERN = "^[%w_][%w._-]*$"
local WORDS = "letters, digits, '.', '_' and '-' only, the first one a letter, a digit or '_'"

--- The most characters of an election's name.
names.MOST = 128

--- Checks an election's name.
-- @string name
-- @treturn string words, or nil
function names.problem(name)
  if #name > names.MOST then return ("a name has at most %d characters"):format(names.MOST) end
  return not name:find(PATTERN) and ("'%s' is not possible: %s"):format(name, WORDS) or nil
end

--- The rule for a name, as crown.check.schema takes it.
-- @tparam[opt] table more of the rule
-- @treturn table
function names.rule(more)
  local rule = more or {}
  rule.type, rule.match = "string", PATTERN
  rule.match_words = WORDS
  return rule
end

return names
