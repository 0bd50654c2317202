--- What info, evict and history share: the oracle that the options name, and what to say when it cannot be reached.
-- @internal crown.command.store

local core = require "crown.core"
local directory = require "crown.control.directory"
local explain = require "crown.link.explain"
local oracle = require "crown.election.contract"
local output = require "crown.command.output"
local settings = require "crown.election.settings"
local usage = require "crown.check.usage"

local store = {}

-- What a verb needs the oracle's function for.
local NEEDS = { list = "list elections", evict = "ask a leader to go", output = "keep what a job has written" }

-- What to say of an oracle that takes no orders.
local NO_ORDERS = "%s: elections of the oracle '%s' take no orders: %s"
local NO_MARKS = "%s: elections of the oracle '%s' keep no marks of runs yet: %s"
local FORMAT = "it keeps no record of an election that could have them"
local NO_PAIR = "its module has no look_orders and swap_orders (docs/custom-oracles.md)"

--- Exit code of a wrong URL.
store.MISUSED = 2

--- Exit code of a store that cannot be reached.
store.UNREACHABLE = 3

--- Finds the oracle.
-- @string verb for messages
-- @treturn table the oracle's module
-- @treturn table its options
-- @treturn string the oracle's word
function store.open(verb)
  local module, options, word = oracle.find(verb, settings.oracle)
  options.node, options.token = core.node(), core.token
  return module, options, word
end

--- Finds the oracle and one of its module functions.
-- @string verb for messages
-- @string fn "list" or "evict"
-- @treturn function the module function
-- @treturn table its options
-- @treturn string the oracle's word
-- @treturn table the oracle's module
function store.find(verb, fn)
  local module, options, word = store.open(verb)
  if not module[fn] then
    local why = module.unasked or ("it has no function '%s'"):format(fn)
    usage.error("%s: the oracle '%s' cannot %s: %s", verb, word, NEEDS[fn], why)
  end
  return store.caller(word, module, fn), options, word, module
end

--- Finds the oracle, and how it takes orders.
-- @string verb for messages
-- @treturn as `find`
function store.ordered(verb)
  local module, _, word = store.open(verb)
  local why = not module.order and (oracle.is_own(module) and (module.unasked or FORMAT) or NO_PAIR)
  if why then usage.error(NO_ORDERS, verb, word, why) end
  return store.find(verb, "order")
end

--- Refuses an oracle whose store keeps no marks of runs.
-- @string where the verb, and its option
-- @raise a usage error
function store.expect_marks(where)
  local module, _, word = store.open(where)
  if not module.runs then usage.error(NO_MARKS, where, word, module.unasked or FORMAT) end
end

--- The election that a verb names, as its store has it: `lock` of the URL stands in for the name, as it does for a candidate.
-- @tparam table options the oracle's
-- @string name on the command line
-- @treturn string
function store.election(options, name)
  return options.lock ~= nil and tostring(options.lock) or name
end

--- A function of an oracle's module, for a verb: an error in it is told in a line, not as a traceback.
-- @string word the oracle's
-- @tparam table module the oracle's
-- @string fn its name
-- @treturn function as the module has it; nil where it has none
function store.caller(word, module, fn)
  return module[fn] and function(...) return oracle.call(word, module, fn, ...) end
end

--- What to say of a name that no election has, and slots have.
-- @tparam table elections each with a `name`
-- @string name
-- @treturn string the end of a sentence, or ""
function store.slots(elections, name)
  local found, known = {}, {}
  for _, one in ipairs(elections) do
    local is_slot = one.name:sub(1, #name + 1) == name .. "." and one.name:find("^%d+$", #name + 2)
    if is_slot and not known[one.name] then known[one.name], found[#found + 1] = true, one.name end
  end
  table.sort(found)
  return found[1] and ("; it has slots, so name one of them: %s"):format(table.concat(found, ", ")) or ""
end

--- What to say of an election that is not found, or that nobody leads, where it may be there all the same: elections with slots
-- have that name, or the store hides some from this user.
-- @tparam table options the oracle's
-- @string word the oracle's
-- @tparam table module the oracle's
-- @string name
-- @treturn string the end of a sentence, or ""
function store.yet(options, word, module, name)
  local slots = store.slots(module.list and store.caller(word, module, "list")(options) or {}, name)
  if slots ~= "" then return slots end
  local health = module.health and store.caller(word, module, "health")(options)
  return health and health.hides and "; " .. health.hides or ""
end

--- Names the store that was asked, without its secrets.
-- @tparam table options the oracle's
-- @string word the oracle's
-- @treturn string
function store.named(options, word)
  if settings.named then return core.redact(options.url or word) end
  return ("file:%s; --oracle URL or CROWN_ORACLE names another store"):format(directory())
end

--- Why a store did not answer, or what it has answered, as a person reads it: of a time-out a client may say just that, and of
-- an answer the server's words alone.
-- @param reason the oracle's
-- @param[opt] code the oracle's
-- @string[opt] url of the store, where it is not the runtime's
-- @treturn string
function store.reason(reason, code, url)
  local place = core.redact(tostring(url or settings.oracle))
  if reason == "timeout" or reason == nil then return ("no answer in time from %s: is its store running?"):format(place) end
  return code == "usage" and tostring(reason) or explain.placed(tostring(reason), place, oracle.is_answer(code))
end

--- Says on stderr why the store did not answer.
-- @string verb for the message
-- @string reason the oracle's
-- @string[opt] code the oracle's: "usage" where the URL is wrong, so that nobody was asked
-- @treturn number the exit code
function store.unreachable(verb, reason, code)
  output.say(verb, store.reason(reason, code))
  return code == "usage" and store.MISUSED or store.UNREACHABLE
end

return store
