--- The stores that decide the elections of this runtime, to be asked what they know of all candidates' elections.
-- @internal crown.election.stores

local core = require "crown.core"
local oracle = require "crown.election.contract"

local stores = {}

local MOST = 16 -- an app may name a store for each of thousands of elections

local known = {}

--- Notes a store, once.
-- @tparam table module the oracle's
-- @tparam table options the oracle's
-- @string word the oracle's
function stores.note(module, options, word)
  local place = oracle.store(options, word)
  if known[place] or #known == MOST then return end
  known[place] = true
  known[#known + 1] = { place = place, module = module, options = options, word = word }
end

local function options_of(one)
  local options = { node = core.node(), token = core.token }
  for name, value in pairs(one.options) do options[name] = value end
  return options
end

local function ask(one)
  local told = { store = one.place, elections = {} }
  if not one.module.list then
    told.problem = ("it cannot be asked: %s"):format(one.module.unasked or "its oracle has no function 'list'")
    return told
  end
  local fine, found, problem = pcall(oracle.call, one.word, one.module, "list", options_of(one))
  if fine and found then
    table.sort(found, function(a, b) return a.name < b.name end)
    told.elections = found
  else
    if not fine then problem = type(found) == "table" and found.usage or found end
    told.problem = core.redact(tostring(problem or "no answer in time"))
  end
  return told
end

--- Asks them all, one after the other; waits for them.
-- @treturn table an array of `{ store = where, elections = as of an oracle's list, problem = words or nil }`
function stores.ask()
  local told = {}
  for i, one in ipairs(known) do told[i] = ask(one) end
  return told
end

return stores
