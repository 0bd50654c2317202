--- What tools do with a register: they list, evict and look, by the same two verbs as candidates.
-- @internal crown.register.tools

local core = require "crown.core"
local crypto = require "crown.core.crypto"
local epochs = require "crown.check.epoch"
local figure = require "crown.check.figure"
local hex = require "crown.text.hex"
local record = require "crown.register.record"
local rule = require "crown.register.rule"

local tools = {}

local EVICT_TRIES = 5

-- @return the record or false, and the answer; or nil, message, code
local function read(store, name)
  local answers, problem, code = store:look { name }
  if not answers then return nil, problem, code end
  local answer = answers[name]
  local found, why = record.read(answer, name)
  if found == nil then return nil, why end
  return found, answer
end

--- The records of elections. Where a peer that writes none has written, that has `node`, `epoch`, and `wait`, the seconds until
-- its lease is over.
-- @tparam table store
-- @tparam table names of all records
-- @treturn table by the election's name; or nil, message, code
function tools.records(store, names)
  local found = {}
  for _, name in ipairs(names) do
    if not record.is_reserved(name) then
      local one, problem, code = read(store, name)
      if one == nil then return nil, problem, code end
      local peer = one ~= nil and problem.peer
      if peer then
        found[name] = { node = peer.node, epoch = one and one.epoch or peer.epoch, wait = peer.wait }
      elseif one then
        found[name] = one
      end
    end
  end
  return found
end

--- Elections and who leads them.
-- @tparam table store
-- @tparam table names of all records
-- @treturn table an array of `{ name =, node =, epoch =, expires_in = }`; or nil, message, code
function tools.list(store, names)
  local records, problem, code = tools.records(store, names)
  if not records then return nil, problem, code end
  local found = {}
  for name, one in pairs(records) do
    found[#found + 1] = { name = name, node = one.node, epoch = one.epoch, expires_in = one.wait }
  end
  table.sort(found, function(a, b) return a.name < b.name end)
  return found
end

--- Looks at an election's record.
-- @tparam table store
-- @string name
-- @treturn table as of an oracle's `health`; or nil, message, code
function tools.health(store, name)
  local found, problem, code = read(store, name)
  if found == nil then return nil, problem, code end
  local leads = found and found.by and ("%s, epoch %s"):format(found.node, epochs.text(found.epoch))
  if leads then
    local answers, why, kind = store:look { found.by }
    if not answers then return nil, why, kind end
    local age = answers[found.by].age
    if age then leads = ("%s, renewed %s s ago by the store's clock"):format(leads, figure.about(age)) end
  end
  return { facts = { { "Record", leads or found and "nobody leads" or "none yet" } } }
end

--- Asks an election's leader to go. It hears of that with its next refresh.
-- @tparam table store
-- @string name
-- @treturn table the record as it was; false when nobody leads; or nil, message, code
function tools.ask_to_go(store, name)
  for _ = 1, EVICT_TRIES do
    local found, answer, code = read(store, name)
    if found == nil then return nil, answer, code end
    local peer = answer.peer
    if peer and peer.wait > 0 then
      return nil, ("'%s' is led by %s, which takes no evictions; its lease ends in %.1f s unless it is refreshed"):format(name,
        peer.node, peer.wait)
    end
    if not found or not found.by then return false end
    local text = record.text(rule.direct(found, "evict"), hex(crypto.random(8)))
    local results, problem, why = store:swap { { name = name, version = answer.version, text = text, memory = answer.memory } }
    if not results then return nil, problem, why end
    if results[1] then return found end
    core.sleep(0)
  end
  return nil, ("the record of '%s' changes faster than it can be written"):format(name)
end

--- Whether a term is over.
-- @tparam table store
-- @string name
-- @tparam table leader the record that showed it
-- @treturn boolean or nil, message, code
function tools.has_gone(store, name, leader)
  local found, problem, code = read(store, name)
  if found == nil then return nil, problem, code end
  return not found or found.by ~= leader.by or found.at ~= leader.at or found.epoch ~= leader.epoch
end

return tools
