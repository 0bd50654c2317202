--- The rule `preference`: which of those that wait leads first, which one asks a leader to go, and which one leads only where
-- nobody else does. The rank that it makes is of crown.register.ranks; the oracle's state goes by it.
-- @internal crown.election.preference

local core = require "crown.core"
local figure = require "crown.check.figure"
local usage = require "crown.check.usage"

local preference = {}

local MOST = 1000

--- The options of an election, as crown.check.schema has them.
preference.OPTIONS = {
  preference = { type = "number", integer = true, least = -MOST, most = MOST, default = 0 },
  preference_wait = { type = "number", least = 0, most = 3600 },
  preempt = { type = "number", above = 0, most = 31536000 },
  last_resort = { type = "boolean", default = false },
}

-- @raise a usage error for what could have no effect, or too much
local function check(where, options)
  if options.last_resort and not options.healthy then
    usage.error("%s: last_resort belongs to healthy: without a check every candidate leads", where)
  end
  if options.never then
    for _, name in ipairs { "preempt", "last_resort" } do
      if options[name] then usage.error("%s: %s has no effect beside never, which never leads", where, name) end
    end
  end
end

local function wait_of(options)
  return options.preference_wait and figure.exact(options.preference_wait) .. " s"
    or "2 s (or twice the pause between two looks at the store)"
end

local function describe(options)
  local parts = { ("preference %d: leaves those of a higher one the first claim, for %s"):format(options.preference,
    wait_of(options)) }
  if options.preempt then
    parts[#parts + 1] = ("asks a leader of a lower one to go after %s s"):format(figure.exact(options.preempt))
  end
  if options.last_resort then parts[#parts + 1] = "unhealthy, it leads where nobody else does" end
  return table.concat(parts, "; ")
end

-- What a leader's death costs more with these.
local function describe_death(options)
  return ("this candidate claims %s later where one of a higher preference waited and is gone too%s"):format(wait_of(options),
    options.last_resort and ", and where it is unhealthy" or "")
end

-- What stands in the options, for a sentence about the rule.
local function given(options)
  if options.preference ~= 0 then return "preference" end
  return options.preempt and "preempt" or options.last_resort and "last_resort" or "preference_wait"
end

--- Makes the rule of these options.
-- @string where how messages name the election
-- @tparam table options the election's, checked
-- @treturn table the rule, as crown.election.rules has it; or nil: they are as by default
-- @raise a usage error
function preference.rule(where, options)
  check(where, options)
  local is_default = options.preference == 0 and not options.preference_wait and not options.preempt and not options.last_resort
  if is_default then return nil end
  return { words = describe(options), needs_orders = given(options), death = describe_death(options), begin = function(_, who)
    who.rank = { level = options.preference, wait = options.preference_wait, preempt = options.preempt, since = core.now() }
    who.state:prefer(who.rank)
  end }
end

--- Notes that nothing speaks against a candidate's leading any more, as its rules have it.
-- @tparam table who the candidate, as crown.election.rules has it
function preference.allowed(who)
  if who.rank then who.rank.since = core.now() end
end

return preference
