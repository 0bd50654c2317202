--- What has to hold in the virtual cluster of a registry: looked at when a term begins, with each write that a leader takes, with
-- each commit that it asks the store for, and in the end.
local elector = require "crown.registry.elector"
local Replica = require "crown.registry.replica"
local trouble = require "support.registry_trouble"

local promises = {}

-- Owners register anew what is missing, so a loss hardly shows in the end.
local function check_names(world, node)
  for name, one in pairs(world.ledger) do
    local _, owner, token = node.member.replica:find(name)
    if trouble.holds(world, one) and not (owner == one.node.member.id and token == one.token) then
      world:fail(("%s was acknowledged to %s, and is not in what %s begins with"):format(name, one.node.name, node.name))
    end
  end
end

-- Members that a leader can send to, as far as it knows, itself among them.
local function reached(member)
  local total = 1
  for id in pairs(member.view.members) do
    if member.linked[id] then total = total + 1 end
  end
  return total
end

-- An answer rests on what the store has confirmed.
local function check_confirmed(world, node, epoch, number)
  local row = world.store.row
  if row.committed_epoch > epoch or row.committed_epoch == epoch and row.committed >= number then return end
  world:fail(("%s answers what the store has not confirmed"):format(node.name))
end

local function watch_writes(world, node)
  local member, authority = node.member, node.member.authority
  local write = authority.write
  function authority:write(from, op, answer)
    local refused, number = nil, self.seq -- at least: others may be answered meanwhile, and ask again
    local function answered(result)
      refused = result.retry ~= nil
      if result.ok ~= nil then check_confirmed(world, node, self.epoch, number) end
      answer(result)
    end
    write(self, from, op, answered)
    for i = self.first, self.last do
      if self.pending[i].answer == answered then number = self.pending[i].seq end
    end
    local members = elector.size(member.view.members)
    if not refused and reached(member) * 2 < members then
      world:fail(("%s took a write and reaches %d of %d members"):format(node.name, reached(member), members))
    end
  end
end

--- A node has taken the names over.
-- @tparam World world
-- @tparam table node
function promises.begins(world, node)
  check_names(world, node)
  watch_writes(world, node)
end

--- A node hears an answer. How far another one says that it holds what is written: at all, and as a member.
-- @tparam table node
-- @tparam table other
-- @tparam table message
function promises.answered(node, other, message)
  local member, id = node.member, other.member.id
  if message.kind ~= "held" or not member.view then return end
  local known = node.held[id]
  if not known or known.epoch ~= message.epoch then
    known = { epoch = message.epoch, seq = -1, as_member = -1 }
    node.held[id] = known
  end
  known.seq = math.max(known.seq, message.seq)
  if member.view.members[id] then known.as_member = math.max(known.as_member, message.seq) end
end

--- A strict leader asks the store to confirm what it is about to acknowledge, which enough members hold.
-- @tparam World world
-- @tparam table node
-- @tparam table args of the question
function promises.commits(world, node, args)
  local members, copies = node.member.view.members, 1
  for id, known in pairs(node.held) do
    local seq = members[id] and known.seq or known.as_member
    if known.epoch == args.epoch and seq >= args.seq then copies = copies + 1 end
  end
  if world.strict and copies < world.REPLICAS then
    world:fail(("%s acknowledges what %d of %d members hold"):format(node.name, copies, world.REPLICAS))
  end
end

--- A node takes the names over with less than was acknowledged.
-- @tparam World world
-- @tparam table node
-- @tparam table fields of the event
function promises.misses(world, node, fields)
  local committed = { epoch = fields.committed_epoch, seq = fields.committed }
  for _, other in ipairs(world.strict and world.nodes or {}) do
    local known = node.member.view.members[other.member.id]
    local to_be_asked = node.member.linked[other.member.id] or known and known.token == other.member.token
    if to_be_asked and not other.dead and Replica.reaches(other.member.replica.at, committed) then
      world:fail(("%s misses names that %s has"):format(node.name, other.name))
    end
  end
end

local function names_of(node)
  local replica, found = node.member.replica, {}
  for place = replica.names:places(), 1, -1 do
    local name, _, owner, _, gone = replica.names:at(place)
    if not gone then found[name] = owner end
  end
  return found
end

local function check_copies(world, leader)
  for _, node in ipairs(world.nodes) do
    for name, owner in pairs(names_of(leader)) do
      local _, its = node.member.replica:find(name)
      if its ~= owner then world:fail(node.name .. " lacks " .. name) end
    end
    if node.member.replica:count() ~= leader.member.replica:count() then world:fail(node.name .. " has too many names") end
  end
end

--- What has to be so when nothing has been broken for a while.
-- @tparam World world
function promises.check_end(world)
  for _, node in ipairs(world.nodes) do
    if not node.member.joined then world:fail(node.name .. " is not a member in the end") end
  end
  local leader = world:leader() or world:fail "nobody leads in the end"
  check_copies(world, leader)
  trouble.check_wishes(world, leader)
  for name, one in pairs(world.ledger) do
    local _, owner = leader.member.replica:find(name)
    if trouble.holds(world, one) and owner ~= one.node.member.id then
      world:fail(("%s was acknowledged to %s, and lost"):format(name, one.node.name))
    end
  end
end

return promises
