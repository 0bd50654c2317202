--- Hands an election over to a node.
-- @internal crown.command.handover

local epochs = require "crown.check.epoch"
local evict = require "crown.command.evict"
local ordering = require "crown.command.ordering"
local output = require "crown.command.output"
local printable = require "crown.text.printable"
local store = require "crown.command.store"
local usage = require "crown.check.usage"

local handover = {
  summary = "have the leader step down for another node",
  usage = "crown-lua handover [OPTIONS] NAME --to NODE [--wait SECONDS] [--within SECONDS]",
  most_words = 1,
  options = {
    { name = "to", value = "NODE", help = "the node that leads next, as its --node has it", default = "none: say which" },
    { name = "within", value = "SECONDS", number = { least = 0.1, most = 86400 },
      help = "for so long the others leave it to that node, once nobody leads", default = "the oracle's TTL" },
    ordering.wait_option "NODE to lead",
  },
  help = [[
The leader stops its child, calls `lost` and releases, in this order. Then NODE leads; if it does
not come, anybody may. A hand-over never makes two leaders. Exit code 1 where nobody leads, where
no runtime of NODE is known, and where somebody else leads afterwards.]],
}

local TTL = 15 -- where the oracle does not say it
local RETRY, STANDS_BACK = 1, 3 -- a follower's pause, where the oracle has no longer one; and how many of them are enough for a
                               -- node that stands back, since it has just given a term up
local COMES = 3 -- seconds in which a node may come back that has just given a term up

local function refuse(...)
  output.say("handover", ...)
  return 1
end

local function listed(nodes)
  local names = {}
  for node in pairs(nodes) do names[#names + 1] = printable(node) end
  table.sort(names)
  return names[1] and "there are " .. table.concat(names, ", ") or "none lives there now"
end

-- Whether a runtime of the node is known, where the oracle knows of any that do not lead.
-- @return true; or nil, an exit code
local function check_node(options, opts, word, module)
  local nodes = store.caller(word, module, "nodes")
  if not nodes then return true end
  local known, problem, code
  local function look()
    known, problem, code = nodes(opts)
    return known
  end
  if ordering.await(COMES, look, function(found) return not found or found[options.to] end) ~= nil then return true end
  if not known then return nil, store.unreachable("handover", problem, code) end
  return nil, refuse(("no runtime of the node '%s' is known in %s; %s"):format(printable(options.to),
    store.named(opts, word), listed(known)))
end

-- For how long others leave the election to the node: so long that it can come, also where it has just given a term up.
local function time_for(module, opts)
  if not module.timing then return TTL end
  local ttl, _, _, retry = module.timing(opts)
  return math.max(ttl or 0, STANDS_BACK * math.max(RETRY, retry or 0))
end

-- @return for how long others leave the election to the node; or nil, an exit code
local function check(options, name)
  local _, opts, word, module = store.ordered "handover"
  local decides = module.follows
  if decides then usage.error("handover: with the oracle '%s' it is %s that decides which node leads", word, decides) end
  local list = store.caller(word, module, "list")
  if not list then usage.error("handover: the oracle '%s' does not tell who leads", word) end
  local election, problem, code = ordering.look(list, opts, name)
  if election == nil then return nil, store.unreachable("handover", problem, code) end
  if election and not election.node and election.trouble then return nil, store.unreachable("handover", election.trouble) end
  if not election or not election.node then
    return nil, refuse(("nobody leads '%s' in %s%s"):format(name, store.named(opts, word), store.yet(opts, word, module, name)))
  end
  if election.ordered and election.orders.pause then
    return nil, refuse(("'%s' is %s: resume it first"):format(name, printable(election.ordered)))
  end
  if election.node == options.to and not election.over then
    return nil, refuse(("%s leads '%s' already"):format(printable(options.to), name))
  end
  local fine
  fine, code = check_node(options, opts, word, module)
  if not fine then return nil, code end
  return time_for(module, opts)
end

--- The verb.
function handover.run(options, words)
  local name = ordering.name(handover, words)
  if not options.to then usage.error("handover: say to which node: %s", handover.usage) end
  local within, code = check(options, name)
  if not within then return code end
  local fields = { to = options.to, within = options.within or within, since = os.time(), by = ordering.by() }
  local before, list, opts = ordering.write(handover, name, fields)
  if not before then return list end
  local epoch, now = epochs.counted(before.epoch), nil
  local function look()
    local one = ordering.look(list, opts, name)
    now = one and one.node and epochs.counted(one.epoch) > epoch and one or nil
    return one
  end
  -- In a queue of the store another node may be the first for a moment, until it has heard of the order and gives way.
  ordering.await(options.wait or ordering.WAIT, look, function() return now and (now.node == options.to or not now.ordered) end)
  if now and now.node == options.to then
    output.line(evict.next_text(name, now))
    return 0
  end
  if now then return refuse(("%s did not come: %s"):format(printable(options.to), evict.next_text(name, now))) end
  return refuse(("%s does not lead '%s' yet: the order stands until somebody claims"):format(printable(options.to), name))
end

return handover
