--- Finds an oracle, checks it, and makes what its functions return into verdicts that the C side reads.
-- @internal crown.election.contract

local core = require "crown.core"
local epochs = require "crown.check.epoch"
local files = require "crown.core.files"
local Pace = require "crown.election.pace"
local printable = require "crown.text.printable"
local seconds = require "crown.check.seconds"
local url = require "crown.text.url"
local usage = require "crown.check.usage"

local oracle = {}

-- What init returns to take no part, without that being an error: crown.IGNORE.
oracle.IGNORE = setmetatable({}, { __tostring = function() return "crown.IGNORE" end })

local FAILED = "failed" -- the code of an oracle whose function raised an error
local OWN = "crown.oracles." -- and the word behind it

-- What was meant, most likely: a URL whose scheme was left out, or a name of ours.
local function meant_by(name)
  if name:sub(1, 1) == "/" then return (" (did you mean 'file:%s'?)"):format(name) end
  if name:find "[/:]" then return " (a URL begins with its scheme, such as postgres://)" end
  return usage.suggest(name, url.oracles()) .. "; docs/oracles.md has the list"
end

local function is_no_module(where, name)
  usage.error("%s: oracle '%s' is neither one of crown-lua's own nor a module that require finds%s", where, name, meant_by(name))
end

local function load_module(where, name)
  local tried = OWN .. name
  if package.preload[tried] or not name:find("[./]") then
    local found, loaded = pcall(require, tried)
    if found then return loaded end
    if not tostring(loaded):find("module '" .. tried .. "' not found", 1, true) then
      usage.error("%s: oracle '%s': %s", where, name, usage.one_line(loaded))
    end
  end
  local found, loaded = pcall(require, name)
  if found then return loaded end
  if tostring(loaded):find("module '" .. name .. "' not found", 1, true) then is_no_module(where, name) end
  usage.error("%s: oracle '%s': %s", where, name, usage.one_line(loaded))
end

local REQUIRED = { "init", "claim", "refresh" }
local LOOK, SWAP = "look_orders", "swap_orders" -- the pair by which an oracle of the user's own takes operators' orders
-- What that needs besides: who has won against an order gives back, and two texts do not say whether anybody leads.
local FOR_ORDERS = { "abdicate", "list" }
local OPTIONAL = { "abdicate", "handle_info", "list", "evict", "order", "runs", "nodes", "timing", "health", "rights",
  "warnings", "laws", LOOK, SWAP }

-- Both or neither, with what they need.
local function check_pair(where, name, module)
  local has_look, has_swap = module[LOOK] ~= nil, module[SWAP] ~= nil
  if has_look ~= has_swap then
    usage.error("%s: oracle '%s' has %s and lacks %s: operators' orders need both", where, name, has_look and LOOK or SWAP,
      has_look and SWAP or LOOK)
  end
  for _, fn in ipairs(has_look and FOR_ORDERS or {}) do
    if not module[fn] then
      usage.error("%s: oracle '%s' takes operators' orders by %s, and lacks the function %s, which they need", where, name, LOOK,
        fn)
    end
  end
end

local function check_module(where, name, module)
  if type(module) ~= "table" then
    usage.error("%s: oracle '%s' is a %s, not a module", where, name, type(module))
  end
  for _, fn in ipairs(REQUIRED) do
    if type(module[fn]) ~= "function" then
      usage.error("%s: oracle '%s' lacks the function %s", where, name, fn)
    end
  end
  for _, fn in ipairs(OPTIONAL) do
    if module[fn] ~= nil and type(module[fn]) ~= "function" then
      usage.error("%s: oracle '%s': %s must be a function, not a %s", where, name, fn, type(module[fn]))
    end
  end
  check_pair(where, name, module)
  return module
end

local obeying = setmetatable({}, { __mode = "k" }) -- what stands in for a module that takes orders by the pair

-- One for each module: elections that are alike share it.
local function with_orders(module, word)
  if not module[LOOK] then return module end
  obeying[module] = obeying[module] or require("crown.oracle.order_pair").oracle(module, word, oracle.IGNORE)
  return obeying[module]
end

local function word_for(name)
  return (name:gsub("^crown%.oracles%.", ""))
end

-- What stands in the query of `url` counts as much as what stands beside it; but not both.
local function read_query(where, options)
  if type(options.url) ~= "string" then return end
  for key, value in pairs(url.query(options.url)) do
    if options[key] ~= nil and tostring(options[key]) ~= tostring(value) then
      usage.error("%s: oracle: %s is %s in the URL and %s beside it: give it once", where, key, tostring(value),
        tostring(options[key]))
    end
    options[key] = value
  end
end

--- Finds the oracle that an option names.
-- @string where how messages name the election
-- @tparam string|table given a URL, a module's name, a module, or `{ module, option = … }`
-- @treturn table the module
-- @treturn table its options
-- @treturn string the word that events use for it
-- @treturn table what stood there of the candidate's pace: see crown.election.pace; or nil
function oracle.find(where, given)
  local options, name = {}, nil
  if type(given) == "table" and given[1] ~= nil then
    for key, value in pairs(given) do
      if key ~= 1 then options[key] = value end
    end
    given = given[1]
  end
  if type(given) == "table" then
    local word = given.name or "custom"
    return with_orders(check_module(where, "custom", given), word), options, word
  end
  if type(given) ~= "string" then
    usage.error("%s: oracle must be a URL, a module or its name, not a %s", where, type(given))
  end
  local is_url = url.is(given)
  if is_url then
    local from_url
    name, from_url = url.parse(given)
    options.url, options.path = given, from_url.path
  end
  name = name or given
  local word = word_for(name)
  local module = check_module(where, name, load_module(where, name))
  local is_own = package.loaded[OWN .. word] == module -- another's options are its own
  if is_own and options.url ~= nil and type(options.url) ~= "string" then
    usage.error("%s: oracle '%s': url must be a string, not a %s", where, word, type(options.url))
  end
  if is_own or is_url then read_query(where, options) end
  if is_own and module.chosen then module = module.chosen(options) end -- one of several formats in the same store
  return with_orders(module, word), options, word, is_own and Pace.take(options) or nil
end

--- Refuses a URL that no oracle takes, and a name that no module has, also where nothing asks for it: whoever gives it expects
-- that it decides.
-- @string where how messages name the election
-- @string given the runtime's oracle
-- @raise a usage error for a scheme that no oracle has, and for such a name
function oracle.expect(where, given)
  if url.is(given) then return url.oracle(given) end
  local word = word_for(given)
  for _, known in ipairs(url.oracles()) do
    if word == known then return end
  end
  if not url.is_module(given) then is_no_module(where, given) end
end

--- Names the store of an oracle, without its login and options.
-- @tparam table options the oracle's
-- @string word the oracle's
-- @treturn string such as "redis://db:6379"
function oracle.store(options, word)
  local text = type(options.url) == "string" and options.url:match "^[^?]*" or nil
  return text and core.redact((text:gsub("^([%w+.-]+://)[^/]*@", "%1"))) or word
end

--- Calls a function of an oracle's module. What it raises is an answer like any other, unless it is a mistake of the user's.
-- @string word the oracle's name in messages
-- @tparam table module of oracle.find
-- @string fn the function's name
-- @param ... its arguments
-- @return what it returns; or nil, a message in one line, "oracle"
function oracle.call(word, module, fn, ...)
  local function settle(fine, first, ...)
    if fine then return first, ... end
    if type(first) == "table" and first.usage then error(first, 0) end
    return nil, ("the oracle '%s' failed in %s: %s"):format(word, fn, usage.one_line(first)), FAILED
  end
  return settle(pcall(module[fn], ...))
end

--- Calls an oracle's init.
-- @string where how messages name the election
-- @string word the oracle's name in messages
-- @tparam table module of oracle.find
-- @tparam table options of oracle.find, with crown_name, node, token and send
-- @tparam[opt] table election that orders are told to, where the oracle takes them by the pair
-- @return the oracle's state, or oracle.IGNORE
function oracle.init(where, word, module, options, election)
  local told = module[LOOK] and election or nil
  local state, reason, code = oracle.call(word, module, "init", options, told)
  if state == nil then
    if code == FAILED then usage.error("%s: %s", where, reason) end
    usage.error("%s: oracle '%s': %s", where, word, tostring(reason or "init returned nothing"))
  end
  return state
end

-- @string who the function, with its oracle in front of it
local function breach(who, what)
  return "unknown", ("%s returned %s: see the oracle contract"):format(who, what)
end

local function is_count(value, least)
  return value == nil or (type(value) == "number" and value == value and value >= least)
end

-- Seconds that a grant may name. The core counts whole nanoseconds in 63 bits: what it would round to 0 it would take for "not
-- said", and what it cannot count for a lease without end.
local SHORTEST, LONGEST = 1e-9, 1e9

local function is_span(value, least)
  return is_count(value, least) and (value == nil or value <= LONGEST)
end

local SHOWN = 60 -- characters of a text

-- Whole numbers with all their digits; a text so that it is not taken for what it spells.
local function show(value)
  local kind = type(value)
  if kind == "string" then return ("the text '%s'"):format(printable(value:sub(1, SHOWN))) end
  if kind == "number" and value % 1 == 0 then return epochs.text(value) end
  if kind == "number" or kind == "boolean" or kind == "nil" then return tostring(value) end
  return "a " .. kind
end

-- What an answer may say: the fields that the pages tell of, in their order, and those between our own oracles and the core.
local function fields(told, own)
  local known = {}
  for name in (told .. " " .. (own or "")):gmatch "%S+" do known[name] = true end
  return { known = known, words = told:gsub(" ", ", ") }
end

local GRANT = fields("ttl epoch past hold cool_down", "refresher")
local HOLDER = fields "node epoch expires_in retry_in evicted amnesia hears unsure error"

-- Other systems have the state returned with each answer. It may have fields of these names that mean something else.
local function stranger_in(state, answer, what, may_have)
  if answer == state then
    return ("its own state as the %s, which is a table of its own with %s"):format(what, may_have.words)
  end
  for name in pairs(answer) do
    if not may_have.known[name] then
      return ("a %s with the unknown field '%s', and not only %s"):format(what, tostring(name), may_have.words)
    end
  end
end

-- Makes no table: thousands of refreshes a second come by.
local function held(hold)
  if type(hold) == "table" then return hold[1], hold[2], hold[3] end
  return hold, nil, nil
end

local HOLDS = 3 -- descriptors that a grant may name

local function is_descriptor(value)
  return value == nil or type(value) == "number" and value >= 0 and value < 2 ^ 31 and value % 1 == 0 and files.is_open(value)
end

-- @return what a hold has that is no descriptor of an open file; or nil
local function wrong_in(hold)
  local first, second, third = held(hold)
  if type(hold) == "table" and #hold > HOLDS then return ("%d descriptors"):format(#hold) end
  if not is_descriptor(first) then return show(first) end
  if not is_descriptor(second) then return show(second) end
  return not is_descriptor(third) and show(third) or nil
end

local function granted(who, fn, state, delay, grant)
  if type(delay) ~= "number" or delay ~= delay or delay <= 0 then
    return breach(who, ("true and a refresh delay of %s, not a number of seconds"):format(show(delay)))
  end
  seconds.warn("oracle", fn .. " returned a refresh delay of", delay)
  if grant == nil then return "granted", delay end
  if type(grant) ~= "table" then return breach(who, ("true, a delay and %s as the grant, not a table"):format(show(grant))) end
  local strange = stranger_in(state, grant, "grant", GRANT)
  if strange then return breach(who, strange) end
  if not is_span(grant.ttl, SHORTEST) then
    return breach(who, ("a ttl of %s, not a number of seconds above 0 and up to %.0f"):format(show(grant.ttl), LONGEST))
  end
  local past = grant.past
  if past and not (grant.ttl and is_span(past, 0)) then
    return breach(who, ("a past of %s, and a ttl of %s, not two numbers of seconds from 0 to %.0f"):format(show(past),
      show(grant.ttl), LONGEST))
  end
  if grant.epoch ~= nil and not epochs.is(grant.epoch) then
    return breach(who, ("an epoch of %s, not a whole number from 1 to %.0f"):format(show(grant.epoch), epochs.MOST))
  end
  if not is_span(grant.cool_down, 0) then
    return breach(who, ("a cool_down of %s, not a number of seconds from 0 to %.0f"):format(show(grant.cool_down), LONGEST))
  end
  local wrong = wrong_in(grant.hold)
  if wrong then
    return breach(who, ("a hold of %s, not the descriptor of an open file, or an array of up to %d"):format(wrong, HOLDS))
  end
  local first, second, third = held(grant.hold)
  local ttl = past and grant.ttl + past or grant.ttl
  return "granted", delay, ttl, grant.epoch, first, second, third, grant.refresher, past, grant.cool_down
end

local function is_flag(value) return value == nil or type(value) == "boolean" end

local function is_name(value) return value == nil or type(value) == "string" or type(value) == "number" end

-- @return what a denial has that it may not have, in words; or nil
local function wrong_with(holder)
  for _, name in ipairs { "node", "error" } do
    if not is_name(holder[name]) then return ("a holder whose %s is %s, not a text"):format(name, show(holder[name])) end
  end
  for _, name in ipairs { "evicted", "amnesia", "hears" } do
    if not is_flag(holder[name]) then return ("a holder whose %s is %s, not true or false"):format(name, show(holder[name])) end
  end
  for _, name in ipairs { "expires_in", "retry_in" } do
    if not is_count(holder[name], -math.huge) then
      return ("a holder whose %s is %s, not a number of seconds"):format(name, show(holder[name]))
    end
  end
  if holder.epoch ~= nil and not tonumber(holder.epoch) then
    return ("a holder whose epoch is %s, not a number"):format(show(holder.epoch))
  end
end

local function denied(who, state, holder)
  if holder == nil then return "denied" end
  if type(holder) ~= "table" then return breach(who, ("false and %s as the holder, not a table"):format(show(holder))) end
  local strange = stranger_in(state, holder, "holder", HOLDER)
  if strange then return breach(who, strange) end
  local wrong = wrong_with(holder)
  if wrong then return breach(who, wrong) end
  if holder.evicted then return "evicted" end
  local expires = holder.expires_in
  if expires and expires < 0 then expires = 0 end
  local node = holder.node ~= nil and tostring(holder.node) or nil
  local reason = holder.error ~= nil and tostring(holder.error) or nil
  local hears, unsure = holder.hears == true, holder.unsure == true
  return "denied", expires, node, tonumber(holder.epoch), holder.amnesia == true, holder.retry_in, reason, hears, unsure
end

--- Whether a code says that the store has answered. The runtime's own codes are words in small letters; a store's are numbers, or
-- words in capitals, such as an SQLSTATE.
-- @param code what an oracle's function returned third
-- @treturn boolean
function oracle.is_answer(code)
  return code == "store" or type(code) == "number" or type(code) == "string" and code ~= "" and not code:find "%l"
end

local function unknown(who, second, third, fourth)
  local is_raised = type(second) == "table" and getmetatable(second) and getmetatable(second).__tostring
  if second ~= nil and not is_name(second) and not is_raised then
    return breach(who, ("nil and %s, not nil and a reason in words"):format(show(second)))
  end
  local code = third == "usage" and third or oracle.is_answer(third) and "store" or nil
  local pause = code == "store" and is_span(fourth, SHORTEST) and fourth or nil
  if second == "timeout" then second = "the store gave no answer in time" end -- a client says no more
  return "unknown", tostring(second or "no reason given"), code, pause
end

local function judge(who, fn, state, verdict, second, third, fourth)
  if verdict == true then return granted(who, fn, state, second, third) end
  if verdict == false then return denied(who, state, second) end
  if verdict ~= nil then return breach(who, ("%s, not true, false or nil"):format(show(verdict))) end
  if fn == "handle_info" and second == nil then return "nothing" end
  return unknown(who, second, third, fourth)
end

--- Makes a function's results into a verdict.
-- @string fn the function's name
-- @param state the oracle's, which the function was called with
-- @param verdict what it returned first
-- @param second what it returned second
-- @param third what it returned third. Where the verdict is not known it is a code: "usage" where the user has to mend something,
-- "store" or the store's own code where the store has answered so
-- @param fourth what it returned fourth: where the store has answered, the seconds after which it wants to be asked again
-- @return the verdict's word and its values
function oracle.verdict(fn, state, verdict, second, third, fourth)
  return judge(fn, fn, state, verdict, second, third, fourth)
end

local function without_refresher(word, second, third, fourth, fifth, sixth, seventh, _, ninth, tenth)
  return word, second, third, fourth, fifth, sixth, seventh, nil, ninth, tenth
end

-- Makes no text for each of thousands of refreshes.
local function verdict_of_another(word)
  local whose = {}
  for _, fn in ipairs { "claim", "refresh", "handle_info" } do whose[fn] = ("oracle '%s': %s"):format(word, fn) end
  return function(fn, state, ...) return without_refresher(judge(whose[fn], fn, state, ...)) end
end

--- Whether a module is one of our own oracles.
-- @tparam table module of oracle.find
-- @treturn boolean
function oracle.is_own(module)
  for _, own in ipairs(url.oracles()) do
    if package.loaded[OWN .. own] == module then return true end
  end
  return false
end

--- What makes a module's results into verdicts. A refresher (runtime/candidate/refresher.h) stands for the refresh of the
-- oracle that made it. An oracle of the user's own that hands on what one of ours has granted has a refresh of its own, which
-- may know better: it is asked.
-- @tparam table module of oracle.find
-- @string word its name in messages
-- @treturn function as oracle.verdict
function oracle.verdicts_of(module, word)
  return oracle.is_own(module) and oracle.verdict or verdict_of_another(word)
end

return oracle
