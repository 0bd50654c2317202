--- Tries each law that a store has to keep, with records of its own: for the command `check`, and for the conformance suite.
-- docs/custom-oracles.md tells what the laws are.
-- @internal crown.laws.judge

local Bench = require "crown.laws.bench"
local usage = require "crown.check.usage"

local judge = {}

local LISTS = { require "crown.laws.records", require "crown.laws.answers" }

-- What came of one law: a breach, a reason why it could not be tried, or a store that gave no answer.
local function outcome(problem)
  if type(problem) == "table" and (problem.broken or problem.untried or problem.silent) then return problem end
  return { broken = "an error: " .. usage.one_line(problem) }
end

--- Tries the laws.
-- @tparam function open `open(url or nil, timeout)` → a store with a client of its own; or nil and a message
-- @string[opt] url that leads to the store
-- @treturn table an array of `{ law = text, broken = what was seen, untried = why }`, with `left`, how many records stay behind,
-- and `tag`, which their names have; or nil, a message, a code, and `{ count = records that may stay behind, tag = }`: the store
-- gives no answer
function judge.try(open, url)
  local bench, problem = Bench.new(open, url)
  if not bench then return nil, problem, "usage" end
  local results = { tag = bench.tag }
  for _, laws in ipairs(LISTS) do
    for _, law in ipairs(laws) do
      local fine, why = pcall(law.try, bench)
      local found = fine and {} or outcome(why)
      if found.silent then
        return nil, found.silent, nil, { count = bench:clear(), tag = bench.tag }
      end
      results[#results + 1] = { law = law.text, broken = found.broken, untried = found.untried }
    end
  end
  if bench.proxy then bench.proxy:close() end
  results.left = bench:clear()
  return results
end

return judge
