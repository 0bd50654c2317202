--- What can happen to a candidate or to its way to the store. A fault begins, lasts, and ends: `begin(world, who, random)`
-- returns what ends it, or nothing where that is its end. `weight`: how often it is drawn; `on_way`: it needs a way of the torture's own.
local draw_trick = require "torture.trick"
local signals = require "support.signals"

local KINDS = { "supervise", "runtime", "keeper", "warden" }
local MANNERS = { "silent", "slow", "wrong", "empty", "half" } -- of a name server

local faults = {}

-- One to all of the kinds.
local function some(random)
  local chosen = {}
  for _, kind in ipairs(KINDS) do
    if random(2) == 1 then chosen[#chosen + 1] = kind end
  end
  if #chosen == 0 then chosen[1] = KINDS[random(#KINDS)] end
  return chosen
end

local function hurt(member, signal, kinds)
  for _, kind in ipairs(kinds) do
    if #member:pids(kind) > 0 then member:hurt(signal, kind) end
  end
end

-- A candidate whose supervisor has gone is started again when the fault is over.
local function again(world, who)
  return function() world:start_again(who) end
end

faults.kill = { weight = 4, begin = function(world, who, random)
  local kinds = some(random)
  world:say("kill %s of %s", table.concat(kinds, ", "), who.node)
  hurt(who.member, "KILL", kinds)
  return again(world, who)
end }

faults.stop = { weight = 4, begin = function(world, who, random)
  local kinds = some(random)
  world:say("stop %s of %s", table.concat(kinds, ", "), who.node)
  local member, stopped = who.member, {}
  for _, kind in ipairs(kinds) do
    for _, pid in ipairs(member:pids(kind)) do stopped[#stopped + 1] = pid end
  end
  signals.send_all(stopped, "STOP")
  return function()
    signals.send_all(stopped, "CONT")
    world:start_again(who)
  end
end }

faults.terminate = { weight = 2, begin = function(world, who)
  world:say("terminate %s", who.node)
  who.member:signal "TERM"
  return again(world, who)
end }

faults.kill_child = { weight = 2, begin = function(world, who)
  world:say("kill the child of %s", who.node)
  signals.send_all(who.member:pids "child", "KILL")
end }

faults.clock = { weight = 1, begin = function(world, who, random)
  if not who.clock then return end
  local hours = random(49) - 25
  world:say("the wall clock of %s jumps to %+d h", who.node, hours)
  who.clock:set(hours * 3600)
end }

local function free(who)
  return function()
    for _, way in ipairs(who.ways) do way:free() end
  end
end

local function on_way(title, act)
  return function(world, who, random)
    world:say("%s %s", title, who.node)
    for _, way in ipairs(who.ways) do act(way, random) end
    return free(who)
  end
end

faults.freeze = { weight = 3, on_way = true, begin = on_way("hold back both ways of", function(way)
  way.held = { there = true, back = true }
end) }
faults.hold_requests = { weight = 3, on_way = true, begin = on_way("hold back the questions of", function(way)
  way.held = { there = true }
end) }
faults.hold_answers = { weight = 3, on_way = true, begin = on_way("hold back the answers to", function(way)
  way.held = { back = true }
end) }
faults.delay = { weight = 2, on_way = true, begin = on_way("delay the way of", function(way, random)
  way.delay = { there = random(1200) / 1000, back = random(1200) / 1000 }
end) }
faults.refuse = { weight = 2, on_way = true, begin = on_way("cut off, with resets,", function(way)
  way.refusing = true
  way:reset()
end) }
faults.reset = { weight = 2, on_way = true, begin = on_way("reset the connections of", function(way) way:reset() end) }
faults.half_answers = { weight = 2, on_way = true, begin = on_way("break the store's answers off in the middle for", function(way)
  way.halved = { back = true }
end) }

faults.swallow = { weight = 3, on_way = true, begin = on_way("swallow one to three answers to", function(way, random)
  way.swallow.back = random(3)
end) }

faults.swallow_requests = { weight = 2, on_way = true, begin = on_way("swallow one to three questions of", function(way, random)
  way.swallow.there = random(3)
end) }

faults.trick = { weight = 3, on_way = true, begin = function(world, who, random)
  local name, script = draw_trick(random)
  world:say("for %s there is a server instead that %s", who.node, name)
  for _, way in ipairs(who.ways) do
    way.script = script
    way:reset()
  end
  return free(who)
end }

faults.names = { weight = 2, on_way = true, begin = function(world, who, random)
  if not who.names then return end
  local manner = MANNERS[random(#MANNERS)]
  world:say("the name server of %s is %s, and its connections are reset", who.node, manner)
  who.names:be(manner)
  for _, way in ipairs(who.ways) do way:reset() end
  return function() who.names:be "answers" end
end }

return faults
