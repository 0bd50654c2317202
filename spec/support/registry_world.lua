--- A virtual cluster around the real members of a registry: a clock, a network, a store and candidates that are all tables;
-- a seed decides what goes wrong, and after each step the promises are looked at.
local Authority = require "crown.registry.authority"
local Clock = require "support.virtual_clock"
local Dealt = require "support.dealt_pairs"
local candidate = require "crown.registry.candidate"
local elector = require "crown.registry.elector"
local exchange = require "crown.registry.exchange"
local Member = require "crown.registry.member"
local promises = require "support.registry_promises"
local Replica = require "crown.registry.replica"
local Store = require "support.registry_store"
local trouble = require "support.registry_trouble"

local World = {}
World.__index = World

-- A dozen names are many here: copies of several parts, and followers who have missed more than is kept.
Replica.PART_ROWS, Authority.LOG_BYTES = 2, 400

local TTL, MARGIN, SNAPSHOT, REPLICATE = 5, 0.1, 1, 0.5
local STEPS = 200 -- between two breaths

--- Seconds that a lease lasts.
World.TTL = TTL

--- Members that hold a name before it is acknowledged.
World.REPLICAS = 2

--- The clusters that every seed is played with.
World.CLUSTERS = { { nodes = 3 }, { nodes = 3, strict = true }, { nodes = 5 }, { nodes = 5, strict = true },
  { nodes = 3, strict = true, faults = trouble.ONE_WAY, label = "whose links fail one way" },
  { nodes = 4, faults = trouble.ONE_WAY, label = "whose links fail one way" } }

--- Seconds of trouble that show most of it.
World.SECONDS = 60

--- Seeds that once broke something: more of what happens there hardly ever happens elsewhere.
World.FOUND = { 191, 100632, 100743 }

--- Throws the dice.
function World.chance(world, part)
  return world.random() < part
end

-- Of one way from a node, or to another one.
local function latency(world, node, other)
  local slow = node.slow or other and other.slow
  return 0.0005 + world.random() * (slow and 0.3 or 0.003)
end

-- What a stopped process is told waits until it goes on.
local function deliver(node, fn)
  if node.dead then return end
  if node.stopped then
    node.waiting[#node.waiting + 1] = fn
  else
    fn()
  end
end

-- --- the store, at the other end of a connection that can be cut: it takes the questions in their order, and the tasks that
-- wait for the answers go on in any order. A connection may hang at the server's end: what was asked by it is done when that
-- goes on, long after it was given up and other things were asked by a connection made anew.

local function perform(world, node, connection, op, args, answer)
  local hung = connection.hung
  if hung and hung > world.clock.now then
    world.clock:after(hung - world.clock.now, function() perform(world, node, connection, op, args, answer) end)
    return
  end
  if not hung and (node.cut or node.dead or node.stopped) then return end
  local result, notify = world.store:perform(op, args)
  if notify then world:notify() end
  if node.lossy and world:chance(0.3) then return end
  world.clock:after(latency(world, node), function()
    if not node.cut then answer(result) end
  end)
end

local function ask(world, node, op, args, done)
  local answered, connection = false, node.connection
  local function answer(...)
    if answered then return end
    answered = true
    local results = { n = select("#", ...), ... }
    deliver(node, function() done(unpack(results, 1, results.n)) end)
  end
  world.clock:after(TTL / 4, function()
    if not answered and node.connection == connection then node.connection = { at = 0 } end
    answer(nil, "timeout")
  end)
  connection.at = math.max(connection.at, world.clock.now + latency(world, node))
  world.clock:after(connection.at - world.clock.now, function() perform(world, node, connection, op, args, answer) end)
end

function World:notify()
  for _, node in ipairs(self.nodes) do
    self.clock:after(latency(self, node), function()
      if not node.cut then deliver(node, function() node.member:heard() end) end
    end)
  end
end

-- --- links: one ordered stream for each pair and direction

-- A dials b and sends; b only answers.
local function reaches(world, a, b)
  return not a.dead and not b.dead and not world.parted[a.name .. b.name]
end

local function link_drop(a, b)
  local link = a.out[b.name]
  if not link then return end
  a.out[b.name] = nil
  deliver(b, function() b.member:dialled(a.member.id, false) end)
  deliver(a, function() a.member:link_down(b.member.id) end)
end

local function dial(world, a, b)
  if a.out[b.name] or not a.peers[b.member.id] or not reaches(world, a, b) or a.stopped or b.stopped then return end
  a.out[b.name] = { last = 0 }
  b.member:dialled(a.member.id, true)
  a.member:link_up(b.member.id)
end

local function dial_all(world)
  for _, a in ipairs(world.nodes) do
    for _, b in ipairs(world.nodes) do
      if a ~= b then
        if not reaches(world, a, b) then link_drop(a, b) else dial(world, a, b) end
      end
    end
  end
  world.clock:after(0.05 + world.random() * 0.05, function() dial_all(world) end)
end

local function send(world, a, id, message)
  local b = world.by_id[id]
  local link = b and a.out[b.name]
  if not link then return end
  link.last = math.max(link.last, world.clock.now + latency(world, a, b))
  world.clock:after(link.last - world.clock.now, function()
    if a.out[b.name] ~= link then return end
    if not reaches(world, a, b) then return link_drop(a, b) end
    local sender, member = a.member, b.member
    local function reply(answer)
      link.back = math.max(link.back or 0, world.clock.now + latency(world, a, b))
      world.clock:after(link.back - world.clock.now, function()
        if a.out[b.name] ~= link or a.member ~= sender then return end
        if not reaches(world, a, b) then return link_drop(a, b) end
        deliver(a, function()
          promises.answered(a, b, answer)
          assert(exchange.answered(sender, b.member.id, answer))
        end)
      end)
    end
    deliver(b, function()
      if b.member == member then assert(exchange.receive(member, sender.id, message, reply)) end
    end)
  end)
end

-- A link to somebody who is a member no more stays up for a while.
local function set_peers(world, node, peers)
  local start = node.start
  for id in pairs(node.peers) do
    if not peers[id] and node.peers[id] == true then
      local leaving = {}
      node.peers[id] = leaving
      world.clock:after(2 * SNAPSHOT, function()
        if node.start ~= start or node.peers[id] ~= leaving then return end
        node.peers[id] = nil
        link_drop(node, world.by_id[id])
      end)
    end
  end
  for id in pairs(peers) do node.peers[id] = true end
end

-- --- a candidate as the election core makes it: it acts from a grant up to its deadline

--- Whether a node may act, now.
function World.acting(world, node)
  return not node.dead and node.leading and world.clock.now < node.deadline
end

-- What the store knew some seconds ago.
local function keep_copies(world)
  local copies = world.copies
  copies[#copies + 1] = world.store:copy()
  if #copies > 12 then table.remove(copies, 1) end
  world.clock:after(0.25, function() keep_copies(world) end)
end

--- Puts a replica in the store's place that lacks the last while. Names may be lost with it.
function World:fail_over()
  self.store:forget(self.copies[1 + math.floor(self.random() * #self.copies)], TTL)
  self.ledger = {}
  for _, node in ipairs(self.nodes) do node.wishes = {} end
  self:notify()
end

local function check_leaders(world)
  local found
  for _, node in ipairs(world.nodes) do
    if world:acting(node) then
      if found then world:fail(("%s and %s lead at once"):format(found.name, node.name)) end
      found = node
    end
  end
end

local function granted(world, node, sent, epoch)
  if world.clock.now >= sent + TTL - MARGIN then return end
  if not node.leading then
    local known = world.granted[epoch]
    if known and known ~= node.name .. node.starts then world:fail(("epoch %d was given twice"):format(epoch)) end
    if epoch < world.highest then world:fail(("the epoch went back to %d"):format(epoch)) end
    world.granted[epoch], world.highest = node.name .. node.starts, epoch
    world.terms = world.terms + 1
  end
  node.leading, node.deadline = true, sent + TTL - MARGIN
  check_leaders(world)
end

--- Lets a node's election claim or refresh, as the core does.
function World.poll(world, node, start)
  if node.dead or node.start ~= start or node.calling then return end
  node.calling = true
  local sent = world.clock.now
  local verb = node.leading and "refresh" or "claim"
  local over = false
  local function done(verdict, detail)
    if over or node.start ~= start then return end
    over, node.calling = true, false
    if verdict then granted(world, node, sent, detail) elseif verdict == false then node.leading = false end
    local wait = verdict and TTL / 3 or 0.5 + world.random() * 0.5
    world.clock:after(wait, function() deliver(node, function() world:poll(node, start) end) end)
  end
  world.clock:after(TTL / 4, function() done(nil, "timeout") end)
  candidate[verb](node.member, done)
end

local function watch_deadline(world, node)
  if node.leading and world.clock.now >= node.deadline then node.leading = false end
  world.clock:after(0.02, function() watch_deadline(world, node) end)
end

-- --- nodes

local function effects_of(world, node, start)
  local function mine(fn)
    return function(...)
      if node.start == start then return fn(...) end
    end
  end
  return {
    now = function() return world.clock.now end,
    random = world.random,
    after = mine(function(seconds, fn)
      world.clock:after(seconds, function()
        if node.start == start then deliver(node, mine(fn)) end
      end)
    end),
    soon = mine(function(fn) world.clock:after(0, function() deliver(node, mine(fn)) end) end),
    ask = mine(function(op, args, done)
      if op == "commit" then promises.commits(world, node, args) end
      ask(world, node, op, args, mine(done))
    end),
    send = mine(function(id, message) send(world, node, id, message) end),
    waiting = function() return world:chance(0.5) and math.huge or 0 end, -- so changes come between the parts of a copy
    links = mine(function(peers) set_peers(world, node, peers) end),
    acting = function() return world:acting(node) end,
    wanting = function() return not node.stopped end,
    told = mine(function(what)
      if what == "assumed" then promises.begins(world, node) end
      if what == "assumed" or node.leading then
        world.clock:after(0, function() deliver(node, mine(function() world:poll(node, start) end)) end)
      end
    end),
    emit = mine(function(event, fields)
      if event == "oracle.registry.name_lost" then trouble.lost(node, fields.lost) end
      world.events[event] = (world.events[event] or 0) + 1
      if event == "oracle.registry.names_missed" then
        promises.misses(world, node, fields)
        world.ledger = {}
      end
    end),
    fresh = function()
      world.tokens = world.tokens + 1
      return "t" .. world.tokens
    end,
    number = function(last) return math.max(last + 1, world.clock.now * 1000) end,
  }
end

local function boot(world, node)
  node.starts = node.starts + 1
  node.start = {}
  node.dead, node.stopped, node.leading, node.calling = false, false, false, false
  node.out, node.peers, node.waiting, node.connection, node.wishes = {}, {}, {}, { at = 0 }, {}
  node.held = {}
  node.member = Member.new({ registry = "r", node = node.name, runtime = node.name .. node.supervisor, address = node.name,
    ttl = TTL, replicas = World.REPLICAS, replicate_timeout = REPLICATE, snapshot_timeout = SNAPSHOT, strict = world.strict,
    most = 1e6 },
    effects_of(world, node, node.start))
  world.by_id[node.member.id] = node
  node.member:start()
  world:poll(node, node.start)
end

--- Kills a node's process, or the whole host; it comes back.
function World.kill(world, node, whole)
  if node.dead then return end
  node.dead, node.leading, node.start = true, false, nil
  node.member:close()
  for _, other in ipairs(world.nodes) do
    link_drop(other, node)
    if node.out[other.name] then deliver(other, function() other.member:dialled(node.member.id, false) end) end
  end
  node.out = {}
  if whole then node.supervisor = node.supervisor + 1 end
  world.clock:after(whole and 1 + world.random() * 10 or 0.05, function() boot(world, node) end)
end

--- Lets a stopped node go on.
function World.thaw(_, node)
  if not node.stopped then return end
  node.stopped = false
  local waiting = node.waiting
  node.waiting = {}
  for _, fn in ipairs(waiting) do deliver(node, fn) end
end

-- --- the run

--- Makes a world.
-- @tparam table options `seed`, `nodes` (3), `strict`; `faults`: what goes wrong, of those that support.registry_trouble
-- names; `calm`: nothing goes wrong by itself
function World.new(options)
  local state = options.seed * 2654435761 % 2 ^ 31 + 1
  local self = setmetatable({ clock = Clock.new(100), nodes = {}, by_id = {}, parted = {}, granted = {}, highest = 0,
    terms = 0, acknowledged = 0, tokens = 0, asked = 0, copies = {}, ledger = {}, events = {}, strict = options.strict,
    faults = options.faults, seed = options.seed, dealt = Dealt.new(options.seed) },
    World)
  function self.random()
    state = state * 16807 % 2147483647
    return state / 2147483647
  end
  for _ = 1, 5 do self.random() end
  self.store = Store.new(function() return self.clock.now end)
  for i = 1, options.nodes or 3 do
    local node = { name = i <= 26 and string.char(96 + i) or "n" .. i, starts = 0, supervisor = 1 }
    self.nodes[i] = node
    self.clock:after(self.random(), function() boot(self, node) trouble.client(self, node) watch_deadline(self, node) end)
    node.dead, node.out, node.peers, node.waiting, node.wishes = true, {}, {}, {}, {}
    node.member = { id = elector.member_id(node.name, "r"), heard = function() end, dialled = function() end }
  end
  self.clock:after(1, function()
    dial_all(self)
    if not options.calm then keep_copies(self) end
    if not options.calm then trouble.begin(self) end
  end)
  return self
end

function World:fail(what)
  error(("seed %d, at %.3f s: %s"):format(self.seed, self.clock.now, what), 0)
end

local function go_on(self, is_over, breathe)
  local function some()
    for _ = 1, STEPS do
      if is_over() then return true end
      self.clock:step()
    end
  end
  while not self.dealt:call(some) do
    if breathe then breathe() end
  end
end

local function run_for(self, seconds, breathe)
  local at = self.clock.now + seconds
  go_on(self, function() return self.clock.now >= at end, breathe)
end

--- Lets time pass.
-- @number seconds
-- @tparam[opt] function breathe as for `run`
function World:pass(seconds, breathe)
  run_for(self, seconds, breathe)
end

--- Who acts.
-- @treturn table the node, or nil
function World:leader()
  for _, node in ipairs(self.nodes) do
    if self:acting(node) then return node end
  end
end

--- Lets a node reach none of the others; the store it does.
-- @tparam table node
function World:isolate(node)
  for _, other in ipairs(self.nodes) do self:part(node, other, true) end
end

--- Lets nobody dial a node, which goes on to dial the others.
-- @tparam table node
function World:deafen(node)
  for _, other in ipairs(self.nodes) do self.parted[other.name .. node.name] = true end
end

--- Lets two nodes reach each other, or not.
-- @tparam table a
-- @tparam table b
-- @tparam boolean parted
function World:part(a, b, parted)
  self.parted[a.name .. b.name], self.parted[b.name .. a.name] = parted or nil, parted or nil
end

--- Lets the leader leave in order, and kills whoever is to follow it some steps later.
-- @number steps
-- @treturn boolean whether the change-over was still under way
function World:kill_successor(steps)
  run_for(self, 10)
  local row = self.store.row
  local epoch, leaving = row.epoch, self.by_id[row.leader]
  leaving.leading, leaving.calling = false, true
  self.dealt:call(function()
    candidate.abdicate(leaving.member, true, function() self:kill(leaving, true) end)
  end)
  go_on(self, function() return row.epoch > epoch end)
  local left = steps
  go_on(self, function()
    left = left - 1
    return left < 0
  end)
  local changing = elector.changing(row)
  if row.leader then self.dealt:call(function() self:kill(self.by_id[row.leader], true) end) end
  return changing
end

--- Runs it: trouble first, then quiet, after which everything has to be well.
-- @number seconds of trouble
-- @tparam[opt] function breathe called now and then, for a loop that has others to serve
-- @raise what broke, and when
function World:run(seconds, breathe)
  run_for(self, seconds, breathe)
  self.dealt:call(function()
    self.quiet = true
    trouble.heal(self)
  end)
  run_for(self, 40, breathe)
  promises.check_end(self)
  return self
end

return World
