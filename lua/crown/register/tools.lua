--- What tools do with a register: they list, evict and look, by the same two verbs as candidates.
-- @internal crown.register.tools

local core = require "crown.core"
local crypto = require "crown.core.crypto"
local epochs = require "crown.check.epoch"
local figure = require "crown.check.figure"
local hex = require "crown.text.hex"
local orders = require "crown.register.orders"
local ranks = require "crown.register.ranks"
local record = require "crown.register.record"
local rule = require "crown.register.rule"
local runs = require "crown.register.runs"

local tools = {}

local WRITE_TRIES = 5
local CHANGES = "the record of '%s' changes faster than it can be written"
local STANDS = "the store does not write the record of '%s', which nobody else changes: see crown-lua check --store"

-- @return why an answer's record cannot be read; or nil: it can
local function unreadable(answer, name)
  local found, why = record.read(answer, name)
  if found == nil then return record.unreadable(answer, name, why) end
end

--- Reads a record.
-- @tparam table store
-- @string name
-- @treturn table the record, or false; or nil, message, code
-- @treturn table the store's answer
function tools.read(store, name)
  local answers, problem, code = store:look { name }
  if not answers then return nil, problem, code end
  local answer = answers[name]
  local found = record.read(answer, name)
  if found == nil then return nil, unreadable(answer, name) end
  return found, answer
end

-- What a store's answer says of an election. @return false: nothing; or nil and a message
local function election_of(answer, name)
  local found, problem = record.read(answer, name)
  local peer = found ~= nil and answer.peer
  if not peer then return found, problem end
  return { node = peer.node, epoch = found and found.epoch or peer.epoch, wait = peer.wait,
    orders = found and found.orders or nil, runs = found and found.runs or nil }
end

local function sessions_of(found)
  local names, listed = {}, {}
  for _, one in pairs(found) do
    if one.by and not listed[one.by] then
      listed[one.by] = true
      names[#names + 1] = one.by
    end
  end
  return names
end

-- Adds how long ago the sessions were renewed that hold them, where the store tells; and whether their leases are over by that,
-- so that any candidate may claim.
local function add_ages(store, found)
  local answers, problem, code = store:look(sessions_of(found))
  if not answers then return nil, problem, code end
  for _, one in pairs(found) do
    local answer = one.by and answers[one.by]
    if answer and answer.text and (answer.age or -1) >= 0 then
      local session = record.read(answer, one.by)
      one.renewed_ago = answer.age
      one.over = session and answer.age >= rule.standing_time(session.ttl) or nil
    end
  end
  return found
end

--- The records of elections. Where a peer that writes none has written, that has `node`, `epoch`, and `wait`, the seconds until
-- its lease is over.
-- @tparam table store
-- @tparam table names of all records
-- @treturn table by the election's name, each with `renewed_ago` in seconds and `over`, whether its lease is, by the store's
-- clock, where the store tells, or with `trouble` alone, why it cannot be read; or nil, message, code
function tools.records(store, names)
  local wanted, found = {}, {}
  for _, name in ipairs(names) do
    if not record.is_reserved(name) then wanted[#wanted + 1] = name end
  end
  local answers, problem, code = store:look(wanted)
  if not answers then return nil, problem, code end
  for _, name in ipairs(wanted) do
    local one, trouble = election_of(answers[name], name)
    if one == nil then one = { trouble = trouble } end
    found[name] = one or nil
  end
  return add_ages(store, found)
end

--- Elections and who leads them.
-- @tparam table store
-- @tparam table names of all records
-- @treturn table an array of `{ name =, node =, epoch =, expires_in =, renewed_ago =, over =, trouble =, orders =,
-- ordered = what those say in words, preferred = levels of crown.register.ranks in words, runs = marks of crown.register.runs,
-- ran = those in words }`, times in seconds; or nil, message, code
function tools.list(store, names)
  local records, problem, code = tools.records(store, names)
  if not records then return nil, problem, code end
  local found = {}
  for name, one in pairs(records) do
    found[#found + 1] = { name = name, node = one.node, epoch = one.epoch, expires_in = one.wait,
      renewed_ago = one.renewed_ago, over = one.over, trouble = one.trouble, orders = one.orders,
      ordered = orders.words(one.orders, os.time()), preferred = ranks.words(one.orders), runs = one.runs,
      ran = runs.words(one.runs, os.time()) }
  end
  table.sort(found, function(a, b) return a.name < b.name end)
  return found
end

local function leader_words(one)
  if not one then return "none yet" end
  if one.trouble then return one.trouble end
  local ordered = orders.words(one.orders, os.time())
  ordered = ordered and "; " .. ordered or ""
  if not one.node then return "nobody leads" .. ordered end
  local renewed = one.renewed_ago and (", renewed %s s ago by the store's clock%s"):format(figure.about(one.renewed_ago),
    one.over and ": its lease is over" or "") or ""
  return ("%s, epoch %s%s%s"):format(one.node, epochs.text(one.epoch), renewed, ordered)
end

--- For how long what is missing may have been lost, as somebody has noted.
-- @tparam table store one that `marks`
-- @treturn number seconds, by the store's clock; or nil: not for any that is known
function tools.doubted_for(store)
  local found, answer = tools.read(store, record.store_name())
  if not found or not found.doubt or not answer.age then return nil end
  return math.max(0, rule.standing_time(found.doubt) - math.max(0, answer.age))
end

-- What a candidate would take for silence.
local function too_slow(took, patience)
  if not patience or took <= patience then return nil end
  return ("the store took %s s to answer, and a candidate with this ttl waits %s s for each answer: give a longer ttl, or see "
    .. "why the store is slow"):format(figure.about(took), figure.about(patience))
end

local NEW = "; the store is new, so the first start waits for %.0f s (trust_empty=true skips that)"

--- Looks at an election's record.
-- @tparam table store
-- @string name
-- @number[opt] patience seconds that a candidate waits for an answer
-- @number[opt] waits seconds that the first start in a new store waits; nil: it does not
-- @treturn table as of an oracle's `health`; or nil, message, code
function tools.health(store, name, patience, waits)
  local began, marks = core.now(), store.marks and record.store_name() or nil
  local answers, problem, code = store:look { name, marks }
  if not answers then return nil, problem, code end
  local slow, problems = too_slow(core.now() - began, patience), {}
  for _, one in ipairs { name, marks } do problems[#problems + 1] = unreadable(answers[one], one) end
  problems[#problems + 1] = slow
  local found, trouble = election_of(answers[name], name)
  if found == nil then found = { trouble = trouble } end
  local known
  known, problem, code = add_ages(store, { found or nil })
  if not known then return nil, problem, code end
  local is_new = waits and marks and found == false and record.read(answers[marks], marks) == false
  local said = is_new and leader_words(found) .. NEW:format(waits) or leader_words(found)
  return { facts = { { "Record", said } }, problems = problems }
end

--- Writes over a record, in place of the one that is seen.
-- @tparam table store
-- @string name
-- @tparam function change `change(found, answer)` → the record; or false: nothing is to be written; or nil, message, code
-- @treturn table the record as it was; false; or nil, message, code
function tools.write_over(store, name, change)
  local before, moves = nil, false
  for _ = 1, WRITE_TRIES do
    local found, answer, code = tools.read(store, name)
    if found == nil then return nil, answer, code end
    local one, why, kind = change(found, answer)
    if not one then return one, why, kind end
    local text = record.text(one, hex(crypto.random(8)))
    local results
    results, why, kind = store:swap { { name = name, version = answer.version, text = text, memory = answer.memory } }
    if not results then return nil, why, kind end
    if results[1] then return found end
    before, moves = answer.version, moves or before ~= nil and before ~= answer.version
    core.sleep(0)
  end
  return nil, (moves and CHANGES or STANDS):format(name)
end

-- What sessions and the store itself keep is no election's, and only its writers may change it.
local function change_election(store, name, change)
  if record.is_reserved(name) then return false end
  return tools.write_over(store, name, change)
end

-- Why nothing is written over a peer's lease; or nil.
local function peers_lease(name, answer, what)
  local peer = answer.peer
  if not peer or peer.wait <= 0 then return nil end
  return ("'%s' is led by %s, which takes no %s; its lease ends in %.1f s unless it is refreshed"):format(name, peer.node, what,
    peer.wait)
end

local function evicted(name)
  return function(found, answer)
    local problem = peers_lease(name, answer, "evictions")
    if problem then return nil, problem end
    return found and found.by and rule.direct(found, "evict") or false
  end
end

--- Asks an election's leader to go. It hears of that with its next refresh.
-- @tparam table store
-- @string name
-- @treturn table the record as it was; false when nobody leads; or nil, message, code
function tools.ask_to_go(store, name)
  return change_election(store, name, evicted(name))
end

--- Code of orders that do not fit those that stand, or that are too long.
tools.REFUSED = "refused"

--- The orders that come of those that stand.
-- @string name of the election
-- @tparam table found its record
-- @tparam table|boolean fields see `order`
-- @treturn table or false: none; or nil, message, code
function tools.changed(name, found, fields)
  local stands, time = found.orders, os.time()
  if not fields then
    if not orders.words(stands, time) then return nil, ("'%s' is not paused"):format(name), tools.REFUSED end
    return orders.without(stands) or false
  end
  if fields.to and orders.is_paused(stands, time) then
    return nil, ("'%s' is %s: resume it first"):format(name, orders.words(stands, time)), tools.REFUSED
  end
  local wanted, problem = orders.with(stands, fields)
  return wanted, problem, tools.REFUSED
end

--- Orders something of all candidates of an election.
-- @tparam table store
-- @string name
-- @tparam table|boolean fields of crown.register.orders, of a pause or a hand-over; false: neither stands any more
-- @treturn table the record as it was; false where there is none; or nil, message, code
function tools.order(store, name, fields)
  return change_election(store, name, function(found, answer)
    local problem = peers_lease(name, answer, "orders")
    if problem then return nil, problem, tools.REFUSED end
    if not found then return false end
    local wanted, why, code = tools.changed(name, found, fields)
    if wanted == nil then return nil, why, code end
    return rule.order(found, wanted or nil)
  end)
end

--- The marks of an election's runs; or forgets them.
-- @tparam table store
-- @string name
-- @tparam[opt] boolean forget whether they are removed, so that it is begun again
-- @treturn table the marks of crown.register.runs as they were; false where there is no record; or nil, message, code
function tools.runs(store, name, forget)
  local function forgotten(found)
    return found and rule.mark(found, runs.forgotten(found.runs))
  end
  local found, problem, code
  if forget then found, problem, code = change_election(store, name, forgotten)
  else found, problem, code = tools.read(store, name) end
  if not found then return found, problem, code end
  return found.runs or {}
end

--- The nodes whose runtimes have a session here that is not known to be over: candidates of some election, which follow or lead.
-- @tparam table store
-- @tparam table names of all records
-- @treturn table by node; or nil, message, code
function tools.nodes(store, names)
  local sessions, found = {}, {}
  for _, name in ipairs(names) do
    if record.is_session(name) then sessions[#sessions + 1] = name end
  end
  local answers, problem, code = store:look(sessions)
  if not answers then return nil, problem, code end
  for _, name in ipairs(sessions) do
    local answer = answers[name]
    local one = record.read(answer, name)
    local lives = one and (one.over or -1) < one.at and (answer.age or -1) < rule.standing_time(one.ttl)
    if lives and one.node then found[one.node] = true end
  end
  return found
end

--- Whether a term is over.
-- @tparam table store
-- @string name
-- @tparam table leader the record that showed it
-- @treturn boolean or nil, message, code
function tools.has_gone(store, name, leader)
  local found, problem, code = tools.read(store, name)
  if found == nil then return nil, problem, code end
  return not found or found.by ~= leader.by or found.at ~= leader.at or found.epoch ~= leader.epoch
end

return tools
