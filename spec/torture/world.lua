--- Three candidates for one election on a real store, each with a way of its own to each server, and what has happened to them so
-- far. The election may have slots.
local Cluster = require "support.cluster"
local crown = require "crown"
local faults = require "torture.faults"
local judge = require "torture.judge"
local new_random = require "torture.random"
local orders = require "torture.orders"
local ranks = require "torture.ranks"
local NameServer = require "support.own_name_server"
local redirect = require "support.redirect"
local signals = require "support.signals"
local ticks = require "support.ticks"
local Way = require "torture.way"
local WrongClock = require "support.wrong_clock"

local World = {}
World.__index = World

local NODES = { "ann", "ben", "cat" }
local FIRST_TICK = 40 -- seconds until somebody leads on a fresh store
local SETTLED = 20    -- ticks of the last leader, before the run is judged
local LAST_WORDS = 2000 -- bytes of what a server said last
local LOOK = 0.5      -- seconds between two looks whether the store takes writes

-- The children of each slot tick into a file of its own.
local SLOTS_APP = [[
local crown = require "crown"
local ttl = not arg[1]:find "^file:" and tonumber(os.getenv "TTL") or nil -- a file's lock has none
crown.elect { name = "spec", slots = tonumber(os.getenv "SLOTS"), oracle = { arg[1], ttl = ttl },
  child = { "sh", "-c", 'exec "$1" "$2.$CROWN_SLOT" "$3"', "sh", unpack(arg, 2) } }
]]

--- How many candidates there are.
World.CANDIDATES = #NODES

-- From each server's port to that of the way to it.
local function ports_of(who, store)
  local ports = {}
  for i, way in ipairs(who.ways) do ports[i] = { store.ports[i](), way.port } end
  return ports
end

--- Makes one; the candidates are started.
-- @tparam table store of torture.stores
-- @string mode of the children: support/ticker.c
function World.new(store, mode)
  local self = setmetatable({ store = store, said = {}, intervals = {}, candidates = {}, busy = 0, ordering = 0, elections = {},
    paths = {} }, World)
  self.cluster = Cluster.new { url = store.url(), ttl = store.ttl, mode = mode, env = {},
    app = store.slots and SLOTS_APP or store.ranks and ranks.APP }
  for slot = 1, store.slots or 1 do
    local suffix = store.slots and "." .. slot or ""
    self.elections[slot], self.paths[slot] = "spec" .. suffix, self.cluster.ticks .. suffix
  end
  self.began = crown.now()
  for i, node in ipairs(NODES) do
    local who = { node = node, clock = WrongClock.new(0), ways = {} }
    for j, port in ipairs(store.ports or {}) do who.ways[j] = Way.open(port) end
    if store.ports then who.names = NameServer.start() end
    local environment = who.clock:environment()
    environment.SLOTS = store.slots
    if store.ranks then ranks.give(self, who, environment) end
    self.cluster.options.env[node] = store.announced and redirect(ports_of(who, store), environment) or environment
    self.candidates[i] = who
    self:start(who)
  end
  return self
end

function World:start(who)
  local numbers = {}
  for i, way in ipairs(who.ways) do numbers[i] = way.port end
  local url = self.store.announced and self.store.url() or self.store.url(unpack(numbers))
  if who.names then
    who.member = self.cluster:join(who.node, NameServer.named(url), who.names:words())
  else
    who.member = self.cluster:join(who.node, url)
  end
end

--- Starts a candidate again whose supervisor has ended.
function World:start_again(who)
  if pcall(who.member.wait, who.member, 0.05) then self:start(who) end
end

--- Notes what happens.
function World:say(format, ...)
  self.said[#self.said + 1] = ("%8.3f s  %s"):format(crown.now() - self.began, format:format(...))
end

--- Runs the program for what it says to the store.
-- @tparam table args a verb, and its words without the store
-- @treturn table as crown.exec gives it; nil: it did not end in time
function World:run(args)
  local words = { os.getenv "CROWN_LUA" or "./crown-lua", args[1], "--oracle", self.store.url(), unpack(args, 2) }
  for i, word in ipairs(words) do words[i] = tostring(word) end
  local answer = crown.exec(words, { timeout = 5 })
  self:say("%s: %s", table.concat(args, " "), answer and (answer.stdout .. answer.stderr):match "[^\n]*" or "no answer")
  return answer
end

--- Who worked last, or nil.
function World:leader()
  local last
  for _, path in ipairs(self.paths) do
    local lives = ticks.lives(path)
    local newest = lives[#lives]
    if newest and not (last and last.last > newest.last) then last = newest end
  end
  for _, who in ipairs(self.candidates) do
    if last and who.node == last.node then return who end
  end
end

--- Suffers a fault, until that is over.
-- @tparam table fault of torture.schedule
function World:suffer(fault)
  local kind = fault.kind == "store" and self.store.faults[fault.name] or faults[fault.name] or self.store.sick
  local who = fault.kind == "candidate" and (fault.leader and self:leader() or self.candidates[fault.who]) or nil
  local from, random = crown.now(), new_random(fault.seed)
  local target = fault.kind == "store" and self.store or who
  if target.suffers and not kind.beside then return end -- one at a time for each
  local alone = not kind.beside -- what is over at once may come upon another fault
  if alone then target.suffers = true end
  local fine, ends = pcall(fault.kind == "store" and kind.begin or function(...) return kind.begin(...) end, self, who or random,
    random)
  if not fine then self:say("%s failed: %s", fault.name, tostring(ends)) end
  if fine and ends then
    crown.sleep(fault.seconds)
    local ended, problem = pcall(ends)
    if not ended then self:say("%s could not be ended: %s", fault.name, tostring(problem)) end
    self:say("%s is over", fault.name)
  end
  if fault.kind == "store" then orders.take_back(self) end
  if alone then target.suffers = nil end
  self.intervals[#self.intervals + 1] = { from = from, to = crown.now() + self.store.cost }
end

--- Plays a schedule, and waits until all of it is over.
-- @tparam table list of torture.schedule
function World:hurt_by(list)
  local start = crown.now()
  for _, fault in ipairs(list) do
    self.busy = self.busy + 1
    crown.spawn(function()
      crown.sleep(math.max(0, start + fault.at - crown.now()))
      self:suffer(fault)
      self.busy = self.busy - 1
    end)
  end
  while self.busy > 0 do crown.sleep(0.05) end
end

local function has_come_by_a_way(self)
  for _, who in ipairs(self.candidates) do
    for _, way in ipairs(who.ways) do
      if way.used then return true end
    end
  end
end

-- While the store itself says that it takes no writes, or does not answer, nobody need lead, whatever keeps it from that.
local function watch_store(self)
  while not self.over do
    local from = crown.now()
    local fine, serves = pcall(self.store.serves)
    if fine and serves then
      self.served = true
    else
      if self.served then self:say "the store takes no writes" end
      self.served = false
      self.intervals[#self.intervals + 1] = { from = from - LOOK, to = crown.now() + self.store.cost }
    end
    crown.sleep(LOOK)
  end
end

-- Whether each election has a leader that has worked for a while, and works now.
local function all_work(self, over)
  for _, path in ipairs(self.paths) do
    local lives = ticks.lives(path)
    local last = lives[#lives]
    if not last or last.last < over or last.last < crown.now() - 0.5 or last.count < SETTLED then return false end
  end
  return true
end

--- Plays a schedule, waits until somebody leads again, and judges.
-- @tparam table list of torture.schedule
-- @treturn table as judge.run gives it, with `said`
function World:play(list)
  for _, path in ipairs(self.paths) do ticks.await(path, 0, FIRST_TICK) end
  assert(not self.store.ports or has_come_by_a_way(self), "whoever leads has come by no way of the torture's")
  if self.store.serves then crown.spawn(watch_store, self) end
  self:hurt_by(list)
  local over = crown.now()
  repeat
    crown.sleep(0.05)
  until all_work(self, over) or crown.now() > over + 2 * self.store.cost + 10
  local disorder = ranks.wrong(self)
  self.over = true
  local logs = {}
  for i, who in ipairs(self.candidates) do logs[i] = who.member:output() end
  local result = judge.run { paths = self.paths, intervals = self.intervals, ended = crown.now(), anew = self.anew, logs = logs,
    heeded = self.store.heeds or not self.anew }
  table.insert(result.wrong, disorder)
  return result
end

-- Servers that have ended though no fault ended them: whatever came of it, this is what to look at.
local function add_ended(found, store)
  for _, one in ipairs(store.servers or {}) do
    if not one.process.code and pcall(one.process.wait, one.process, 0.05) then
      found[#found + 1] = ("the server of port %d ended by itself (%d), with the words:\n%s"):format(one.port, one.process.code,
        one.process:output():sub(-LAST_WORDS))
    end
  end
end

--- What servers have ended by themselves, in words.
World.ended_servers = add_ended

--- Ends everything.
-- @treturn table what ticks on when all candidates have ended, and which servers had ended before, in words
function World:destroy()
  for _, who in ipairs(self.candidates) do
    for _, way in ipairs(who.ways) do way:close() end
    if who.names then who.names:destroy() end
  end
  self.cluster:destroy()
  local found = {}
  for _, path in ipairs(self.paths) do
    local alive = ticks.alive(path)
    signals.send_all(alive, "KILL")
    if #alive > 0 then found[#found + 1] = ("%d processes tick on when all candidates have ended"):format(#alive) end
  end
  add_ended(found, self.store)
  return found
end

return World
