--- What `info` and `status` share: which elections are shown, and in which order.
-- @internal crown.command.listing

local console = require "crown.core.console"
local epochs = require "crown.check.epoch"
local output = require "crown.command.output"
local usage = require "crown.check.usage"

local listing = {}

--- What elections may be sorted by, and the field that it stands for.
local FIELDS = { name = "name", phase = "phase", leader = "leader", epoch = "epoch", expires = "expires_in", since = "since" }

--- The option `--sort` of a verb.
-- @param ... what it can be sorted by
-- @treturn table the option
function listing.option(...)
  return { name = "sort", value = "COLUMN", values = { ... }, help = ("by %s"):format(table.concat({ ... }, ", ")),
    default = (...) }
end

--- The elections whose names a regular expression finds.
-- @string verb for messages
-- @tparam table elections
-- @tparam[opt] string pattern a POSIX extended regular expression
-- @treturn table
-- @raise a usage error where the pattern is none
function listing.matching(verb, elections, pattern)
  if not pattern then return elections end
  local names, kept, wanted = {}, {}, {}
  for i, election in ipairs(elections) do names[i] = election.name end
  local matched, problem = console.filter(pattern, names)
  if not matched then usage.error("%s: %s", verb, problem) end
  for _, name in ipairs(matched) do wanted[name] = true end
  for _, election in ipairs(elections) do
    if wanted[election.name] then kept[#kept + 1] = election end
  end
  return kept
end

-- What stands for a field where elections are compared: digits for an epoch, since one that is too large for a number is a text.
local function key_of(election, field)
  local value = election[field]
  return field == "epoch" and value ~= nil and ("%20s"):format(epochs.text(value)) or value
end

-- Classes that other regular expressions have, and what POSIX has for them.
local CLASSES = { ["\\d"] = "[0-9]", ["%d"] = "[0-9]", ["%w"] = "[[:alnum:]]", ["%a"] = "[[:alpha:]]", ["%s"] = "[[:space:]]" }

--- Says on standard error that an expression finds no election, where others are there.
-- @string verb
-- @string pattern
-- @number count how many elections there are
function listing.say_none(verb, pattern, count)
  local hint = ""
  for class, ours in pairs(CLASSES) do
    if pattern:find(class, 1, true) then hint = ("; a POSIX regular expression writes %s for %s"):format(ours, class) end
  end
  output.say(verb, ("none of %d election%s matches '%s'%s"):format(count, count == 1 and "" or "s", pattern, hint))
end

--- Sorts elections; those that lack the field come last, and equals by name and runtime.
-- @tparam table elections sorted in place
-- @tparam[opt="name"] string column
-- @treturn table the same
function listing.sort(elections, column)
  local field = FIELDS[column or "name"]
  table.sort(elections, function(a, b)
    local x, y = key_of(a, field), key_of(b, field)
    if x == y and a.name == b.name then return (a.runtime or 0) < (b.runtime or 0) end
    if x == y then return (a.name or "") < (b.name or "") end
    if x == nil or y == nil then return y == nil end
    return x < y
  end)
  return elections
end

return listing
