--- Three members of a registry on a real Postgres, each behind a way of its own to the store and to the others. Clients register,
-- unregister and look up on each without end, while members are killed, stopped, cut off and end, and the store crashes and
-- answers late. What they are told is compared at once with what the others were told; and now and then, when all is well
-- again, with what all nodes know. In the end the children's ticks are compared with each other.
local crown = require "crown"
local faults = require "torture.name_faults"
local judge = require "torture.judge"
local Ledger = require "torture.name_ledger"
local LogReader = require "support.log_reader"
local new_random = require "torture.random"
local port = require "support.port"
local Postgres = require "support.postgres"
local Registry = require "support.registry"
local ticks = require "support.ticks"
local Way = require "torture.way"
local WrongClock = require "support.wrong_clock"

local NODES = { "ann", "ben", "cat" }
local NAMES, CLIENTS = 12, 4 -- a client has its names for itself at its node
local PAUSE = 0.06           -- seconds between what a client asks, at most
local SETTLE = 60            -- seconds until all has to be well again
local PATIENCE = tonumber(os.getenv "CROWN_TEST_PATIENCE") or 1 -- times that, on a machine that has more to do
local AGAIN = 5              -- seconds until it is looked whether somebody has to be started again
local CALM = 2.2             -- seconds in which nothing is broken, and reads have to be fresh
local A_RUN = 25             -- faults
local A_ROUND = 13           -- of them, until all has to be well

local World = {}
World.__index = World

--- A member starts.
function World:join(who)
  who.member = self.cluster:join(who.node, { url = self.server.url:gsub(":%d+/", ":" .. who.store.port .. "/"), child = true,
    listen = "127.0.0.1:" .. who.port, advertise = "127.0.0.1:" .. who.others.port, strict = self.strict })
  who.log:follow(who.member.candidate.log)
end

local function new_world(seed)
  local clock = WrongClock.new(0)
  local self = setmetatable({ random = new_random(seed), strict = seed % 3 ~= 0, server = Postgres.start { clock = clock },
    clock = clock, members = {}, said = {}, nodes = {}, wrong = {},
    busy = 0, asking = 0, quiet = true, began = crown.now(), serial = 0 }, World)
  self.cluster = Registry.new { url = self.server.url, name = "torture" }
  for i, node in ipairs(NODES) do
    local who = { node = node, port = port.free(), log = LogReader.new() }
    who.store = Way.open(function() return tonumber(self.server.url:match ":(%d+)/") end)
    who.others = Way.open(function() return who.port end)
    self.members[i], self.nodes[node] = who, who
    self:join(who)
  end
  self.ledger = Ledger.new(self.nodes, self.strict)
  return self
end

function World:say(format, ...)
  self.said[#self.said + 1] = ("%8.3f s  %s"):format(crown.now() - self.began, format:format(...))
end

local function blame(self, texts)
  for _, text in ipairs(texts) do
    self:say("WRONG: %s", text)
    self.wrong[#self.wrong + 1] = text
  end
end

-- A connection of the task's own, to the process that there is now.
local function twin_of(who, known)
  if known and known.candidate == who.member.candidate then return known end
  if known then known:close() end
  return who.member:twin()
end

local function client(self, who, number)
  local twin
  while not self.over do
    crown.sleep(self.random() * PAUSE)
    if not self.quiet then
      twin = twin_of(who, twin)
      local name = "n" .. (self.random(NAMES / CLIENTS) - 1) * CLIENTS + number
      self.serial = self.serial + 1
      local op = self.ledger:asks(who.node, name, self.random() < 0.6 and "register" or "unregister", who.node .. self.serial)
      self.asking = self.asking + 1
      self.ledger:answered(op, twin:ask(op.what, { name = name, value = op.value, timeout = 2 }))
      self.asking = self.asking - 1
    end
  end
  if twin then twin:close() end
end

-- What is read while something is broken may be as old as that.
local function reader(self, who)
  local twin
  while not self.over do
    crown.sleep(self.random() * PAUSE)
    twin = twin_of(who, twin)
    local name = "n" .. self.random(NAMES) - 1
    local from, before, calm = crown.now(), self.ledger:now(name), self.calm
    local value, owner = twin:ask("whereis", { name = name })
    if calm and self.calm == calm and owner ~= "gone" then
      local wrong = self.ledger:read(who.node, name, from, before, value, owner)
      if wrong then blame(self, { wrong }) end
    end
  end
  if twin then twin:close() end
end

local KINDS = {}
for name in pairs(faults) do KINDS[#KINDS + 1] = name end
table.sort(KINDS)

--- Who led last, as the children's ticks say.
function World:leader()
  local lives = ticks.lives(self.cluster.ticks)
  local last = lives[#lives]
  return last and self.nodes[last.node]
end

-- What takes all three is not mixed with other faults.
local function behind(self)
  while self.busy > 0 do crown.sleep(0.05) end
  local leader = self:leader()
  local who
  repeat who = self.members[self.random(#self.members)] until who ~= leader
  return who
end

--- Who has begun to lead since an instant; waits for it.
function World:leads_since(at, seconds)
  local until_at = crown.now() + seconds
  repeat
    local lives = ticks.lives(self.cluster.ticks)
    if #lives > 0 and lives[#lives].first > at then return self.nodes[lives[#lives].node] end
    crown.sleep(0.05)
  until crown.now() > until_at
end

local function suffer(self)
  local kind, seconds = KINDS[self.random(#KINDS)], self.random() ^ 2 * 4
  if self.random() < 0.3 then kind = "leader_dies_behind" end
  local who = kind == "leader_dies_behind" and behind(self) or self.random() < 0.5 and self:leader()
    or self.members[self.random(#self.members)]
  if who.suffers then return end
  who.suffers, self.busy = true, self.busy + 1
  self:say("%s: %s for %.2f s", kind, who.node, seconds)
  crown.spawn(function()
    local fine, ends = pcall(faults[kind], self, who)
    crown.sleep(seconds)
    if fine and ends then fine, ends = pcall(ends) end
    if not fine then self:say("%s failed: %s", kind, tostring(ends)) end
    who.suffers, self.busy = nil, self.busy - 1
  end)
end

local function look(self)
  local known = {}
  for node, who in pairs(self.nodes) do
    known[node] = who.member:ask "names"
    if not known[node] then return { node .. " cannot be asked" } end
  end
  return self.ledger:compare(known)
end

-- A runtime that is killed before its app has run through is not started again by its supervisor.
local function revive(self)
  local members = {}
  for i, who in ipairs(self.members) do
    if pcall(who.member.candidate.wait, who.member.candidate, 0.01) then self:join(who) end
    members[i] = who.member
  end
  return members
end

-- Waits until nothing is wrong any more, and says what still is.
local function settle(self)
  while self.busy > 0 do crown.sleep(0.05) end
  self.quiet = true
  while self.asking > 0 do crown.sleep(0.01) end
  local until_at = crown.now() + SETTLE * PATIENCE
  local fine, problem
  repeat fine, problem = pcall(self.cluster.await, self.cluster, revive(self), AGAIN) until fine or crown.now() > until_at
  if not fine then return blame(self, { ("not well after %g s: %s"):format(SETTLE * PATIENCE, problem) }) end
  local wrong = look(self)
  while #wrong > 0 and crown.now() < until_at do
    crown.sleep(0.2)
    wrong = look(self)
  end
  self:say "all is well again"
  blame(self, wrong)
  blame(self, self.ledger:breaches())
end

local function be_calm(self)
  self.calm, self.quiet = {}, false
  crown.sleep(CALM)
  self.calm = nil
end

local function play(self, count)
  settle(self)
  for _, who in ipairs(self.members) do
    for number = 0, CLIENTS - 1 do crown.spawn(client, self, who, number) end
    crown.spawn(reader, self, who)
  end
  self.quiet = false
  for i = 1, count do
    suffer(self)
    crown.sleep(self.random() * 1.2)
    if i % A_ROUND == 0 or i == count then
      settle(self)
      if #self.wrong > 0 then return end
      be_calm(self)
    end
  end
  settle(self)
end

local function finish(self)
  self.over = true
  for _, who in ipairs(self.members) do
    who.store:close()
    who.others:close()
  end
  local fine, problem = pcall(self.cluster.finish, self.cluster)
  if not fine then blame(self, { tostring(problem) }) end
  self.server:destroy()
end

-- What the children's ticks say, added to what they said before.
local function add_ticks(self, sum)
  local path = self.cluster.ticks
  sum.terms, sum.overlap = sum.terms + #ticks.lives(path), sum.overlap + ticks.overlap(path) * 1000
  for _, text in ipairs(ticks.faults(path)) do sum.epochs = sum.epochs + (judge.is_of_epochs(text) and 1 or 0) end
  for _, gap in ipairs(ticks.gaps(path)) do sum.gap = math.max(sum.gap, gap.seconds) end
end

local function report(self, seed, count)
  print(("\nregistry, seed %d:"):format(seed))
  for _, text in ipairs(self.wrong) do print("  " .. text) end
  print("what happened:\n  " .. table.concat(self.said, "\n  "))
  print(("again: make torture STORE=registry FAULTS=%d SEED=%d"):format(count, seed))
  os.execute(("cp -r %s /tmp/crown-kept-%d"):format(self.cluster.dir, require("crown.core").pid))
  print("the logs of the members are kept in /tmp/crown-kept-" .. require("crown.core").pid .. "\n")
end

--- Runs until there were so many faults.
-- @number count faults
-- @number seed of the first run
-- @treturn table `faults`, `terms`, `overlap`, `epochs`, `gap`, `runs`, `wrong`, as a store's torture has them
return function(count, seed)
  local sum = { faults = 0, terms = 0, overlap = 0, epochs = 0, gap = 0, runs = 0, wrong = 0 }
  while sum.faults < count do
    local size = math.min(A_RUN, count - sum.faults)
    local world = new_world(seed)
    local fine, problem = pcall(play, world, size)
    if not fine then blame(world, { tostring(problem) }) end
    finish(world)
    add_ticks(world, sum)
    local wrong = #world.wrong > 0
    if wrong then report(world, seed, size) end
    print(("registry   seed %-8d %3d faults %3d terms  %d writes  %d fresh reads  %s"):format(seed, size,
      #ticks.lives(world.cluster.ticks), world.ledger.told, world.ledger.reads, wrong and "WRONG" or "fine"))
    io.flush()
    sum.faults, sum.runs, sum.wrong = sum.faults + size, sum.runs + 1, sum.wrong + (wrong and 1 or 0)
    seed = seed + 1
  end
  return sum
end
