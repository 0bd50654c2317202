--- What pause, resume and handover share: they order something of all candidates of an election, in its record.
-- @internal crown.command.ordering

local core = require "crown.core"
local output = require "crown.command.output"
local printable = require "crown.text.printable"
local store = require "crown.command.store"
local usage = require "crown.check.usage"

local ordering = {}

local PAUSE = 0.05 -- seconds between two looks

--- Seconds that a verb waits, where --wait does not say it.
ordering.WAIT = 10

--- The option --wait of these verbs.
-- @string what they wait for
-- @treturn table
function ordering.wait_option(what)
  return { name = "wait", value = "SECONDS", number = { least = 0, most = 86400 }, help = "how long to wait for " .. what,
    default = tostring(ordering.WAIT) }
end

--- The election that a verb names, as the command line has it.
-- @tparam table verb
-- @tparam table words of the command line
-- @treturn string
-- @raise a usage error
function ordering.word(verb, words)
  local name = words[1]
  if not name then usage.error("%s: name an election: %s", verb.name, verb.usage) end
  if name == "" or name ~= printable(name) then usage.error("%s: '%s' is no election's name", verb.name, printable(name)) end
  return name
end

--- The election that a verb names, as its store has it.
-- @tparam table verb
-- @tparam table words of the command line
-- @treturn string
-- @raise a usage error
function ordering.name(verb, words)
  local name = ordering.word(verb, words)
  local _, opts = store.ordered(verb.name)
  return store.election(opts, name)
end

--- Who gives the order.
-- @treturn string such as "ann@host", or the host where the environment names no user
function ordering.by()
  local user = ""
  for _, name in ipairs { "SUDO_USER", "USER", "LOGNAME" } do user = user ~= "" and user or os.getenv(name) or "" end
  return printable((user ~= "" and user .. "@" or "") .. core.node())
end

--- Who leads.
-- @tparam function list of the oracle
-- @tparam table opts of the oracle
-- @string name
-- @treturn table the election, as `list` of an oracle has it; false: there is none; or nil, message, code
function ordering.look(list, opts, name)
  local found, problem, code = list(opts, name)
  if not found then return nil, problem, code end
  for _, election in ipairs(found) do
    if election.name == name then return election end
  end
  return false
end

--- Looks until something is so.
-- @number seconds at most
-- @tparam function look → what is there; nil: no answer
-- @tparam function is_so gets that
-- @return what was there then; nil when the time is over
function ordering.await(seconds, look, is_so)
  local until_then = core.now() + seconds
  repeat
    local found = look()
    if found ~= nil and is_so(found) then return found end
    core.sleep(PAUSE)
  until core.now() >= until_then
end

--- Writes the order, and says why where that is refused.
-- @tparam table verb
-- @string name of the election
-- @tparam table|boolean fields of crown.register.orders; false: nothing is ordered any more
-- @treturn table the record as it was, `list`, the oracle's options; or nil, an exit code
function ordering.write(verb, name, fields)
  local order, opts, word, module = store.ordered(verb.name)
  opts.order = fields
  local before, problem, code = order(opts, name)
  if before then return before, store.caller(word, module, "list"), opts end
  if before == false then
    local why = store.yet(opts, word, module, name)
    if why == "" then why = ": no candidate has made its record yet, and nothing can be ordered before that" end
    output.say(verb.name, ("there is no election '%s' in %s%s"):format(name, store.named(opts, word), why))
    return nil, 1
  end
  if code == "refused" then
    output.say(verb.name, problem)
    return nil, 1
  end
  return nil, store.unreachable(verb.name, problem, code)
end

return ordering
