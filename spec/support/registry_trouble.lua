--- What happens in the virtual cluster of a registry: clients that ask, and what goes wrong.
local candidate = require "crown.registry.candidate"
local exchange = require "crown.registry.exchange"

local trouble = {}

local NAMES = 12

--- Whether somebody who was told yes is a member still.
function trouble.holds(world, one)
  local row = world.store.row.members[one.node.member.id]
  return row ~= nil and row.token == one.token
end

-- A yes that comes to somebody who was thrown out since is one about the past.
local function told_yes(world, node, name, token, value)
  if not trouble.holds(world, { node = node, token = token }) then return end
  local known = world.ledger[name]
  if known and known.node ~= node and trouble.holds(world, known) then
    world:fail(("%s was given to %s while %s has it"):format(name, node.name, known.node.name))
  end
  world.ledger[name] = { node = node, token = token, value = value }
  world.acknowledged = world.acknowledged + 1
end

-- What a node asked for last, of each name, and what it was told: that is what the end is compared with.
local function ask_for(world, node, op)
  local last = { what = op.what, value = op.value }
  node.wishes[op.name] = last
  local member, start, token = node.member, node.start, node.member.token
  member.own:write(op, 0.5 + world.random() * 3, function(fine)
    if node.start ~= start then return end
    last.told = fine
    if fine and op.what == "register" and node.wishes[op.name] == last and member.token == token then
      told_yes(world, node, op.name, token, op.value)
    end
  end)
end

-- A name that each process registers once, and never asks for again: what becomes of it, nobody but the registry mends.
local function keep(world, node)
  local last = node.wishes["k" .. node.name]
  if not world.faults or last and last.told then return end
  ask_for(world, node, { what = "register", name = "k" .. node.name, value = ("%q"):format(node.name) })
end

--- A client at a node: registers and unregisters, for ever, often again before it was answered.
function trouble.client(world, node)
  world.clock:after(0.02 + world.random() * 0.3, function()
    trouble.client(world, node)
    if node.dead or node.stopped or world.quiet then return end
    keep(world, node)
    local name = "n" .. math.floor(world.random() * NAMES)
    world.asked = world.asked + 1
    for _ = 1, world:chance(0.2) and 2 or 1 do
      local known = world.ledger[name]
      if world:chance(0.6) then
        ask_for(world, node, { what = "register", name = name, value = ("%q"):format(node.name .. world.asked) })
      else
        if known and known.node == node then world.ledger[name] = nil end
        ask_for(world, node, { what = "unregister", name = name })
      end
    end
  end)
end

--- Another node has a name that this one had, and it was told so.
function trouble.lost(node, name)
  node.wishes[name] = nil
end

-- What a node that has asked for something last of a name is entitled to find.
local function check_wish(world, node, name, last, value, owner)
  local mine = owner == node.member.id
  if not last.told then return end
  if last.what == "unregister" then
    if mine then world:fail(("%s gave %s up, and has it"):format(node.name, name)) end
  elseif not mine then
    world:fail(("%s was told that it has %s, and %s has it"):format(node.name, name, owner or "nobody"))
  elseif value ~= last.value then
    world:fail(("%s registered %s with %s last, and it is %s"):format(node.name, name, last.value, value))
  end
end

--- Compares in the end what every node was told last with what the leader has.
function trouble.check_wishes(world, leader)
  for _, node in ipairs(world.nodes) do
    for name, last in pairs(node.wishes) do check_wish(world, node, name, last, leader.member.replica:find(name)) end
  end
end

-- --- faults

--- Ends all that was broken.
function trouble.heal(world)
  world.parted = {}
  for _, node in ipairs(world.nodes) do
    node.cut, node.lossy, node.slow = false, false, false
    world:thaw(node)
  end
end

--- The same, to be done later.
function trouble.heal_all(world)
  return function() trouble.heal(world) end
end

local faults = {}

-- What goes wrong later, unless all is to be well by then.
local function later(world, seconds, fn)
  world.clock:after(seconds, function()
    if not world.quiet then fn() end
  end)
end

function faults.kill(world, node) world:kill(node, false) end

function faults.kill_host(world, node) world:kill(node, true) end

-- The leader, and as soon as another one acts that one too, and so on.
function faults.kill_in_a_row(world)
  local left = 3
  local function look()
    for _, node in ipairs(world.nodes) do
      if world:acting(node) then
        world:kill(node, world:chance(0.7))
        left = left - 1
      end
    end
    if left > 0 then later(world, world.random() * 0.03, look) end
  end
  look()
end

function faults.cut(_, node) node.cut = true end

function faults.lossy(_, node) node.lossy = true end

-- A network that takes its time: what one member has long had is still on its way to another.
function faults.slow(_, node) node.slow = true end

-- A store's backend that stands still: what it was asked is done when everybody has given it up.
function faults.hang(world, node)
  if node.connection then node.connection.hung = world.clock.now + world.random() * 8 end
end

function faults.stop(world, node)
  if node.dead then return end
  node.stopped = true
  world.clock:after(world.random() * 12, function() world:thaw(node) end)
end

function faults.part(world, node)
  for _, other in ipairs(world.nodes) do
    if other ~= node and world:chance(0.7) then world:part(node, other, true) end
  end
end

function faults.abdicate(world, node)
  if node.dead or node.stopped or not node.leading or node.calling then return end
  node.leading = false
  candidate.abdicate(node.member, false, function() end)
  local start = node.start -- sooner than a core would ask again
  world.clock:after(world.random() * 0.02, function() world:poll(node, start) end)
end

function faults.leave(world, node)
  if node.dead or node.stopped or node.calling then return end
  node.leading, node.calling = false, true
  candidate.abdicate(node.member, true, function() world:kill(node, true) end)
end

-- A member_down that was on its way for long: of this membership, or of an older one.
function faults.late(world, node)
  local known = world.store.row.members[node.member.id]
  if not known then return end
  world.store:perform("enqueue", { messages = { { kind = "member_down", id = node.member.id,
    token = world:chance(0.5) and known.token or "an older one" } } })
  world:notify()
end

-- What a leader sent in an epoch that this node knows to be over, and a slow network delivers now.
function faults.echo(_, node)
  local known = node.member.replica and node.member.replica.epoch or 0
  if node.dead or node.stopped or known < 2 then return end
  assert(exchange.receive(node.member, "r@nobody", { kind = "snapshot", epoch = known - 1, seq = 0, part = 1, last = true,
    names = {} }, function() end))
end

-- A leader whose backend stands still, while somebody falls behind; it ends just when what it had given up has been done,
-- and who has all the names is too slow to follow it.
function faults.hang_up(world, node)
  if node.dead or node.stopped or not node.leading then return end
  faults.hang(world, node)
  local behind
  repeat behind = world.nodes[1 + math.floor(world.random() * #world.nodes)] until behind ~= node
  world:part(node, behind, true)
  later(world, node.connection.hung - world.clock.now + world.random() * 0.02, function()
    world:kill(node, true)
    world:part(node, behind, false)
    for _, other in ipairs(world.nodes) do
      if other ~= behind then later(world, 2 + world.random() * 2, function() faults.stop(world, other) end) end
    end
  end)
end

local function other_than(world, ...)
  local left = {}
  for _, node in ipairs(world.nodes) do
    local taken = node.dead or node.stopped
    for _, one in ipairs { ... } do taken = taken or node == one end
    if not taken then left[#left + 1] = node end
  end
  return left[1 + math.floor(world.random() * #left)]
end

-- A firewall: nobody can dial it, and it dials the others.
function faults.deaf(world, node) world:deafen(node) end

local function set_mute(world, node, mute)
  for _, other in ipairs(world.nodes) do
    if other ~= node then world.parted[node.name .. other.name] = mute or nil end
  end
end

-- The same the other way round: it is dialled, and dials nobody.
function faults.mute(world, node) set_mute(world, node, true) end

-- A leader dies while somebody lags behind who may be the next one.
function faults.behind(world)
  local leader = world:leader()
  local behind = leader and other_than(world, leader)
  if not behind then return end
  world.parted[leader.name .. behind.name] = true
  if world:chance(0.5) then world:part(leader, behind, true) end
  later(world, 0.3 + world.random() * 0.7, function()
    world:kill(leader, false)
    world:part(leader, behind, false)
  end)
end

-- The same, and whoever has all the names is a member no more by then.
function faults.last_copy(world)
  local leader = world:leader()
  local holder = leader and other_than(world, leader)
  if not holder then return end
  for _, other in ipairs(world.nodes) do
    if other ~= leader and other ~= holder then world.parted[leader.name .. other.name] = true end
  end
  holder.cut = true
  local left = 100
  local function look()
    left = left - 1
    if left > 0 and world.store.row.members[holder.member.id] then return later(world, 0.1, look) end
    later(world, world.random() * 0.5, function() world:kill(leader, false) end)
    later(world, 4, trouble.heal_all(world))
  end
  look()
end

-- A leader goes on to be heard by one of the others, and is heard by the store no more.
function faults.unheard(world)
  local leader = world:leader()
  local behind = leader and other_than(world, leader)
  if not behind then return end
  leader.cut = true
  world.parted[leader.name .. behind.name] = true
  later(world, 8 + world.random() * 2, trouble.heal_all(world))
end

-- Somebody who was thrown out is a member again long before he can reach the leader.
function faults.mute_return(world, node)
  if world:acting(node) or node.dead then return end
  set_mute(world, node, true)
  node.cut = true
  later(world, 6 + world.random() * 2, function() node.cut = false end)
  later(world, 13 + world.random() * 4, function() set_mute(world, node, false) end)
end

-- All but the leader leave, one in order, or are cut from the store: what it has taken waits for somebody else to hold it.
function faults.alone(world)
  local leader = world:leader()
  if not leader then return end
  for _, other in ipairs(world.nodes) do
    if other ~= leader then
      if world:chance(0.5) then world.parted[leader.name .. other.name] = true end
      if world:chance(0.5) then faults.leave(world, other) else other.cut = true end
    end
  end
  later(world, 6 + world.random() * 2, trouble.heal_all(world))
end

function faults.fail_over(world) world:fail_over() end

faults.heal = trouble.heal

--- Faults that links have in one direction, and who is hurt by them: whoever may write and is not written to, or who is written
-- to and may not write.
trouble.ONE_WAY = { "deaf", "mute", "mute_return", "behind", "behind", "last_copy", "unheard", "alone",
  "kill", "cut", "late", "heal", "heal" }

local ALL = { "late", "echo", "kill", "kill_host", "kill_in_a_row", "cut", "lossy", "slow", "hang", "hang_up", "stop", "part", "abdicate",
  "leave", "heal", "heal" }

--- Breaks something now and then.
function trouble.begin(world)
  later(world, 0.2 + world.random() * 4, function()
    local node = world.nodes[1 + math.floor(world.random() * #world.nodes)]
    if world:chance(0.4) then -- the one that it hurts most
      for _, one in ipairs(world.nodes) do
        if world:acting(one) then node = one end
      end
    end
    local names = world.faults or ALL
    faults[names[1 + math.floor(world.random() * #names)]](world, node)
    trouble.begin(world)
  end)
end

return trouble
