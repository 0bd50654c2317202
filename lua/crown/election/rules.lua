--- Who leads, and when: a candidate's own rules, of which the store knows nothing. A rule that says no bars the candidate: it
-- does not claim, and a leader steps down. docs/how-to/who-leads-and-when.md.
-- @internal crown.election.rules

local health = require "crown.election.health"
local preference = require "crown.election.preference"
local usage = require "crown.check.usage"
local window = require "crown.election.window"

local rules = {}

--- The options of an election that are rules, as crown.check.schema has them.
rules.OPTIONS = {
  never = { type = "boolean", default = false },
  healthy = { type = { "function", "table" } },
  window = { type = { "string", "table" } },
}

for name, rule in pairs(preference.OPTIONS) do rules.OPTIONS[name] = rule end

-- Each makes the rule of an option: `{ words = how `check` tells it, death = what it adds to a leader's death, begin =
-- function(handle, who) }`. `who` is the candidate: `name`, `node`, `state` (the oracle's), and its `rank` among those that wait,
-- or nil.
local MAKERS = {
  never = function()
    return { words = "this candidate only follows (never)",
      begin = function(handle) handle:bar("never", "this candidate only follows") end }
  end,
  preference = function(where, _, options) return preference.rule(where, options) end,
  healthy = health.rule,
  window = window.rule,
}
local ORDER = { "never", "preference", "healthy", "window" }

--- The rules that a candidate's options ask for.
-- @string where how messages name the election
-- @tparam table checked the election's options
-- @treturn table an array of rules, or nil where it has none
-- @raise a usage error
function rules.make(where, checked)
  local made = {}
  for _, name in ipairs(ORDER) do
    if checked[name] then made[#made + 1] = MAKERS[name](where, checked[name], checked) end
  end
  return made[1] and made or nil
end

--- Refuses rules that need more of a store than it has.
-- @string where how messages name the election
-- @tparam table made as rules.make gives them, or nil
-- @tparam table module the oracle's
-- @param state the oracle's
-- @string word the oracle's name in messages
-- @tparam[opt] string option another one that needs as much
-- @raise a usage error
function rules.expect(where, made, module, state, word, option)
  for _, rule in ipairs(made or {}) do option = option or rule.needs_orders end
  local knows = not module.follows and (module.order or type(state) == "table" and state.prefer)
  if option and not knows then
    usage.error("%s: %s: with the oracle '%s' candidates know nothing of each other, so it has no effect", where, option, word)
  end
end

--- Applies rules to a candidate that has not started yet: what speaks against its leading is known before its first claim.
-- @tparam table made as rules.make gives them
-- @param handle the candidate's, of crown.core.election
-- @tparam table who `name` of the election, `node`, `state` of its oracle
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

--- What happens when the leader dies, in words.
-- @tparam table made or nil
-- @string[opt] failover the time after which another one leads, in words; nil: nobody knows it
-- @treturn table an array of strings
function rules.death(made, failover)
  local words = { ("its child ends with it, and a candidate that may lead claims %s"):format(failover
    and ("%s later at most"):format(failover) or "when the store frees the lease") }
  for _, rule in ipairs(made or {}) do words[#words + 1] = rule.death end
  return words
end

return rules
