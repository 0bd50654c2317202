--- What an election may be called.
-- @internal crown.check.names

local names = {}

-- A name is part of paths, and a word of command lines: ".." and "--" mean something else there.
local PATTERN = "^[%w_][%w._-]*$"

--- The rule for a name, as crown.check.schema takes it.
-- @tparam[opt] table more of the rule
-- @treturn table
function names.rule(more)
  local rule = more or {}
  rule.type, rule.match = "string", PATTERN
  rule.match_words = "letters, digits, '.', '_' and '-' only, the first one a letter, a digit or '_'"
  return rule
end

return names
