--- A virtual cluster around the lease in a record: a store that only compares and swaps, candidates with clocks that drift,
-- and what a runtime does around an oracle. A seed decides what goes wrong: requests that are lost, late, done twice or done
-- long after they were given up, candidates that are killed, stopped or cut off, a record that vanishes or goes back.
local Clock = require "support.virtual_clock"
local record = require "crown.oracle.record"
local RecordLease = require "crown.oracle.record_lease"

local World = {}
World.__index = World

local TTL = 5 -- the longest; a record that is gone is waited for as long
local PATIENCE = TTL / 4 -- seconds that a call may take
local NODES = 3
local STEPS = 300 -- between two breaths

--- How a store names its versions: by a count, by the text itself, or by a count that it does
-- not tell when it has written.
World.VERSIONS = { "count", "text", "silent" }

--- Seconds of trouble that show most of it.
World.SECONDS = 120

local function chance(world, part) return world.random() < part end

-- --- the store

local function version_of(world)
  return world.versions == "text" and world.text or world.version
end

local function set(world, text)
  world.count = world.count + 1
  world.text, world.version = text, world.count
  if text then world.past[#world.past + 1] = { text = text, version = world.version, serial = record.parse(text).serial } end
end

local function perform(world, op, text, version)
  if op == "read" then
    if not world.text then return false end
    return world.text, version_of(world)
  end
  if (world.text and version_of(world)) ~= version and not world.careless then return false end
  set(world, text)
  if world.versions == "silent" then return true end
  return version_of(world)
end

-- --- calls

-- Seconds of a candidate's own clock, as the world counts.
local function after(world, node, seconds, fn)
  local life = node.life
  world.clock:after(seconds / node.pace, function()
    if node.life == life and not node.dead then fn() end
  end)
end

-- What a stopped process is told waits until it goes on.
local function deliver(node, fn)
  if node.stopped then node.waiting[#node.waiting + 1] = fn else fn() end
end

local function latency(world)
  if chance(world, world.trouble * 0.1) then return world.random() * 2 * TTL end
  return world.random() * 0.02
end

local function lost(world, node)
  return node.cut or chance(world, world.trouble * 0.1)
end

local function request(world, node, task, op, text, version)
  local function resume(...)
    if task.over then return end
    world:resume(node, task, ...)
  end
  local function arrive(answers)
    local first, second = perform(world, op, text, version)
    if not answers or lost(world, node) then return end
    after(world, node, latency(world), function() deliver(node, function() resume(first, second) end) end)
  end
  if lost(world, node) then return end
  world.clock:after(latency(world), function() arrive(true) end)
  if op == "write" and chance(world, world.trouble * 0.1) then world.clock:after(latency(world), function() arrive(false) end) end
end

function World:resume(node, task, ...)
  local results = { coroutine.resume(task.thread, ...) }
  if not results[1] then error(results[2], 0) end
  if coroutine.status(task.thread) == "dead" then
    task.over, node.task = true, nil
    task.done(unpack(results, 2, 4))
  else
    request(self, node, task, unpack(results, 2, 5))
  end
end

-- A call of the oracle; `done` gets what it returned, nil when it was given up.
local function call(world, node, fn, done)
  local task = { done = done }
  task.thread = coroutine.create(function() return node.lease[fn](node.lease) end)
  node.task = task
  after(world, node, PATIENCE, function()
    deliver(node, function()
      if task.over then return end
      task.over, node.task = true, nil
      done(nil, "given up")
    end)
  end)
  world:resume(node, task)
end

-- --- what a runtime does around an oracle

local claim, refresh

local function end_term(world, node)
  if world.leader == node then world.leader = nil end
  node.leads = false
end

local function release(world, node, pause)
  call(world, node, "abdicate", function() claim(world, node, pause) end)
end

local function begin_term(world, node, grant)
  assert(not world.leader, ("%s leads while %s does"):format(node.name, world.leader and world.leader.name or ""))
  assert(grant.epoch > node.highest, ("%s was granted epoch %d after %d"):format(node.name, grant.epoch, node.highest))
  assert(grant.epoch > world.highest, ("epoch %d came after %d"):format(grant.epoch, world.highest))
  world.highest, node.highest = math.max(world.highest, grant.epoch), grant.epoch
  world.leader, node.leads, world.terms = node, true, world.terms + 1
end

local function lasts(node)
  return node.ttl - node.ttl / 100 - math.min(0.25, node.ttl / 8)
end

-- The keeper ends a term in time, also that of a stopped runtime.
local function lead_until(world, node, sent)
  local deadline = sent + lasts(node)
  node.deadline = deadline
  after(world, node, deadline - node.now(), function()
    if node.deadline ~= deadline or not node.leads then return end
    end_term(world, node)
    deliver(node, function()
      if node.task then node.task.over, node.task = true, nil end
      if chance(world, 0.5) then release(world, node, 0) else claim(world, node, 0) end
    end)
  end)
end

function refresh(world, node, delay)
  local deadline = node.deadline
  after(world, node, delay, function()
    deliver(node, function()
      if node.deadline ~= deadline or not node.leads or node.task then return end
      if chance(world, world.trouble * 0.1) then -- it abdicates
        end_term(world, node)
        return release(world, node, world.random() * TTL)
      end
      local sent = node.now()
      call(world, node, "refresh", function(verdict, second)
        if not node.leads then return end
        if verdict then
          lead_until(world, node, sent)
          refresh(world, node, second)
        elseif verdict == false then
          end_term(world, node)
          if second and second.evicted then return release(world, node, 1) end
          claim(world, node, second and second.expires_in or 0.1)
        else
          refresh(world, node, 0.3)
        end
      end)
    end)
  end)
end

local function claimed(world, node, sent, verdict, second, grant)
  if verdict and node.now() < sent + lasts(node) then
    begin_term(world, node, grant)
    lead_until(world, node, sent)
    return refresh(world, node, second)
  elseif verdict == false then
    return claim(world, node, second.expires_in or second.retry_in)
  end
  release(world, node, 0.2 + world.random())
end

function claim(world, node, pause)
  after(world, node, pause, function()
    deliver(node, function()
      if node.leads or node.task then return end
      local sent = node.now()
      call(world, node, "claim", function(...) claimed(world, node, sent, ...) end)
    end)
  end)
end

-- --- trouble

local function start(world, node)
  node.life, node.dead, node.task, node.waiting, node.highest = (node.life or 0) + 1, false, nil, {}, 0
  node.now = function() return world.clock.now * node.pace + node.offset end
  node.lease = RecordLease.new { token = node.name, node = node.name,
    ttl = node.ttl, delay = node.ttl / 3, retry = 1, now = node.now, floor = world.floor or TTL,
    clock = function() return math.floor(world.clock.now + node.ahead) end,
    read = function() return coroutine.yield "read" end,
    write = function(text, version) return coroutine.yield("write", text, version) end }
  claim(world, node, world.random())
end

local function kill(world, node)
  node.dead, node.stopped = true, false
  if node.task then node.task.over = true end
  end_term(world, node)
  world.clock:after(world.random() * TTL, function() start(world, node) end)
end

local function thaw(node)
  node.stopped = false
  local waiting = node.waiting
  node.waiting = {}
  for i = 1, #waiting do
    local fn = waiting[i]
    deliver(node, fn)
  end
end

-- To a state that everybody who lives has seen surpassed: who knows nothing newer cannot tell. What is written from then on
-- has versions that were not there before.
local function go_back(world)
  local seen = math.huge
  for _, node in ipairs(world.nodes) do
    if node.dead then return end
    seen = math.min(seen, node.lease.serial)
  end
  local states = {}
  for _, state in ipairs(world.past) do
    if state.serial < seen then states[#states + 1] = state end
  end
  local state = states[world.random(math.max(1, #states))]
  if not state or not world.text then return end
  world.text, world.version, world.back = state.text, state.version, state.version
end

local FAULTS = {
  function(world, node)
    if world.back then -- until somebody who knows better has written that down, nobody may come who knows nothing
      local known = world.text and world.version ~= world.back and record.parse(world.text).doubted
      world.back = not known and world.back
    end
    if not world.back and not node.dead then kill(world, node) end
  end,
  function(world, node)
    if node.stopped or node.dead then return end
    local life = node.life
    node.stopped = true
    world.clock:after(world.random() * 2 * TTL, function() if node.life == life then thaw(node) end end)
  end,
  function(world, node)
    node.cut = true
    world.clock:after(world.random() * 2 * TTL, function() node.cut = false end)
  end,
  function(world)
    if world.text and not world.remembers then set(world, nil) end
  end,
  function(world)
    if not world.remembers then go_back(world) end
  end,
}

local function hurt(world)
  if world.trouble > 0 then
    FAULTS[world.random(#FAULTS)](world, world.nodes[world.random(NODES)])
    world.clock:after(world.random() * 2 * TTL, function() hurt(world) end)
  end
end

--- @tparam table options `seed`; `versions` of World.VERSIONS; `remembers`: the store forgets nothing; `careless`: it does
-- not compare; `floor`: how long candidates wait for a record that is gone, in seconds (the longest TTL)
function World.new(options)
  local state = options.seed
  math.randomseed(options.seed) -- the lease's own
  local world = setmetatable({ clock = Clock.new(1000), versions = options.versions, remembers = options.remembers,
    careless = options.careless, floor = options.floor, nodes = {}, count = 0, past = {}, terms = 0, highest = 0, trouble = 1 }, World)
  function world.random(most)
    state = (state * 16807) % 2147483647
    local part = state / 2147483647
    return most and math.floor(part * most) + 1 or part
  end
  for _ = 1, 5 do world.random() end
  for i = 1, NODES do
    local node = { name = "node" .. i, ttl = TTL / (1 + i % 2), ahead = world.random() * 0.4,
      pace = 0.995 + world.random() * 0.01, offset = world.random() * 1000 }
    world.nodes[i] = node
    start(world, node)
  end
  hurt(world)
  return world
end

--- Lets time pass.
-- @number seconds
-- @tparam function breathe called now and then
function World:pass(seconds, breathe)
  local over, steps = self.clock.now + seconds, 0
  self.clock:after(seconds, function() end)
  while self.clock.now < over do
    self.clock:step()
    steps = steps + 1
    if steps % STEPS == 0 then breathe() end
  end
  return self
end

--- Trouble for a while; then somebody has to lead.
function World:run(seconds, breathe)
  self:pass(seconds, breathe)
  self.trouble = 0
  self:pass(6 * TTL, breathe)
  assert(self.leader, "nobody leads")
  return self
end

return World
