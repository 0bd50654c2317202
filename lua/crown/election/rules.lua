--- Who leads, and when: a candidate's own rules, of which the store knows nothing. A rule that says no bars the candidate: it
-- does not claim, and a leader steps down. docs/how-to/who-leads-and-when.md.
-- @internal crown.election.rules

local health = require "crown.election.health"
local window = require "crown.election.window"

local rules = {}

--- The options of an election that are rules, as crown.check.schema has them.
rules.OPTIONS = {
  never = { type = "boolean", default = false },
  healthy = { type = { "function", "table" } },
  window = { type = { "string", "table" } },
}

-- Each makes the rule of an option: `{ words = how `check` tells it, begin = function(handle, who) }`, where `who` is the
-- candidate: `name`, `node`.
local MAKERS = {
  never = function()
    return { words = "this candidate only follows (never)",
      begin = function(handle) handle:bar("never", "this candidate only follows") end }
  end,
  healthy = health.rule,
  window = window.rule,
}
local ORDER = { "never", "healthy", "window" }

--- The rules that a candidate's options ask for.
-- @string where how messages name the election
-- @tparam table checked the election's options
-- @treturn table an array of rules, or nil where it has none
-- @raise a usage error
function rules.make(where, checked)
  local made = {}
  for _, name in ipairs(ORDER) do
    if checked[name] then made[#made + 1] = MAKERS[name](where, checked[name]) end
  end
  return made[1] and made or nil
end

--- Applies rules to a candidate that has not started yet: what speaks against its leading is known before its first claim.
-- @tparam table made as rules.make gives them
-- @param handle the candidate's, of crown.core.election
-- @tparam table who `name` of the election, `node`
function rules.begin(made, handle, who)
  for _, rule in ipairs(made) do rule.begin(handle, who) end
end

--- Rules in words, for `crown-lua check`.
-- @tparam table made or nil
-- @treturn table an array of strings
function rules.words(made)
  local words = {}
  for i, rule in ipairs(made or {}) do words[i] = rule.words end
  return words
end

return rules
