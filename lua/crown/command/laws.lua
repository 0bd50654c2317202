--- Tells whether a store, with its driver or its two functions, keeps the laws on which everything rests.
-- @internal crown.command.laws

local contract = require "crown.election.contract"
local json = require "crown.text.json"
local output = require "crown.command.output"
local printable = require "crown.text.printable"
local store = require "crown.command.store"
local usage = require "crown.check.usage"

local laws = {}

local WRONG = 2
local LEFT = "left behind: %d small records whose names have %s in them; nobody reads them"
local INDENT = "\n" .. (" "):rep(13)

local function line_of(one)
  if one.broken then return "  BROKEN     " .. one.law .. INDENT .. printable(one.broken) end
  if one.untried then return "  not tried  " .. one.law .. INDENT .. printable(one.untried) end
  return "  kept       " .. one.law
end

local function count(results, field)
  local n = 0
  for _, one in ipairs(results) do n = n + (one[field] and 1 or 0) end
  return n
end

local function summary(results)
  local broken, untried = count(results, "broken"), count(results, "untried")
  if broken > 0 then
    return ("%d of %d laws are broken: two could lead. Mend the store or its module before you use it"):format(broken, #results)
  end
  return ("%d laws, none broken%s"):format(#results, untried > 0 and (", %d not tried"):format(untried) or "")
end

local function tell(results, named)
  output.line(("the laws of a store, tried on %s\n"):format(named))
  for _, one in ipairs(results) do output.line(line_of(one)) end
  if results.left > 0 then
    output.line("\n  " .. LEFT:format(results.left, results.tag))
  end
  output.line("\nlaws: " .. summary(results))
end

--- Tries the laws on the store that --oracle names, and tells what came of it.
-- @bool for_programs as JSON
-- @treturn number the exit code: 0, 2 where a law is broken, 3 where the store gives no answer
function laws.run(for_programs)
  local module, options, word = store.open "check"
  if not module.laws then
    usage.error("check: --laws is for stores on crown.oracle.cas, and for drivers: '%s' is another oracle; docs/testing.md tells "
      .. "of conformance, which is for all", word)
  end
  local results, problem, code, left = contract.call(word, module, "laws", options)
  if not results and for_programs then output.write(json.line { { error = store.reason(problem, code) } }) end
  if left and left.count > 0 then output.say("check", LEFT:format(left.count, left.tag)) end
  if not results then return store.unreachable("check", problem, code) end
  if for_programs then
    local list = {}
    for i, one in ipairs(results) do list[i] = one end
    output.write(json.line(list))
  else
    tell(results, store.named(options, word))
  end
  return count(results, "broken") > 0 and WRONG or 0
end

return laws
