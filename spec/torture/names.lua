--- Three members of a registry on a real Postgres, each behind a way of its own to the store and to the others. Clients register
-- and unregister on each without end, while members are killed, stopped, cut off and end, and the store crashes and answers late.
-- In the end what every node was told last is compared with what all nodes know, and the children's ticks with each other.
local crown = require "crown"
local new_random = require "torture.random"
local port = require "support.port"
local Postgres = require "support.postgres"
local Registry = require "support.registry"
local ticks = require "support.ticks"
local Way = require "torture.way"

local NODES = { "ann", "ben", "cat" }
local NAMES, CLIENTS = 12, 2 -- a client has its names for itself at its node
local SETTLE = 60            -- seconds until all has to be well again
local A_RUN = 25             -- faults

local World = {}
World.__index = World

local function join(self, who)
  who.member = self.cluster:join(who.node, { url = self.server.url:gsub(":%d+/", ":" .. who.store.port .. "/"), child = true,
    listen = "127.0.0.1:" .. who.port, advertise = "127.0.0.1:" .. who.others.port, strict = self.strict })
end

local function new_world(seed)
  local self = setmetatable({ random = new_random(seed), strict = seed % 2 == 0, server = Postgres.start(), members = {}, said = {},
    began = crown.now(), serial = 0 }, World)
  self.cluster = Registry.new { url = self.server.url, name = "torture" }
  for i, node in ipairs(NODES) do
    local who = { node = node, port = port.free(), wishes = {} }
    who.store = Way.open(function() return tonumber(self.server.url:match ":(%d+)/") end)
    who.others = Way.open(function() return who.port end)
    self.members[i] = who
    join(self, who)
  end
  return self
end

function World:say(format, ...)
  self.said[#self.said + 1] = ("%8.3f s  %s"):format(crown.now() - self.began, format:format(...))
end

-- A process that is another one has forgotten what it was told.
local function life_of(who)
  local last
  for one in who.member.candidate:output():gmatch "control port (%d+)" do last = one end
  return who.member, last
end

-- How often its log tells of an event.
local function times(who, event, words)
  local count = 0
  for line in who.member.candidate:output():gmatch("[^\n]*oracle%.registry%." .. event .. "[^\n]*") do
    if line:find(words) then count = count + 1 end
  end
  return count
end

local function times_lost(who, name) return times(who, "name_lost", "lost=" .. name .. "%f[%D]") end

-- Whether a node was told that it has a name no more, and may have been: where it is strict, only who was no member for a
-- while loses any.
local function is_excused(self, who, name, wish)
  if times_lost(who, name) == wish.lost then return false end
  return not self.strict or times(who, "thrown_out", "") > wish.thrown
end

local function client(self, who, number)
  while not self.quiet do
    crown.sleep(0.01 + self.random() * 0.2)
    local name = "n" .. (self.random(NAMES / CLIENTS) - 1) * CLIENTS + number
    self.serial = self.serial + 1
    local wish = { what = self.random() < 0.6 and "register" or "unregister", value = who.node .. self.serial,
      lost = times_lost(who, name), thrown = times(who, "thrown_out", "") }
    wish.member, wish.life = life_of(who)
    who.wishes[name] = wish
    local twin = wish.member:twin()
    local told = twin:ask(wish.what, { name = name, value = wish.value, timeout = 2 })
    twin:close()
    local member, life = life_of(who)
    wish.told = member == wish.member and life == wish.life and told or nil
    if wish.told then self.told = (self.told or 0) + 1 end
  end
end

local faults = {}

function faults.runtime_killed(_, who) who.member.candidate:hurt("KILL", "runtime") end

function faults.killed(self, who)
  who.member.candidate:hurt("KILL", "supervise", "runtime")
  return function() join(self, who) end
end

function faults.ends(self, who)
  who.member.candidate:signal "TERM"
  return function()
    pcall(who.member.candidate.wait, who.member.candidate, 20)
    join(self, who)
  end
end

function faults.stopped(_, who)
  local candidate = who.member.candidate
  candidate:hurt("STOP", "supervise", "runtime")
  return function() candidate:hurt("CONT", "supervise", "runtime") end
end

local function holds(which, directions)
  return function(_, who)
    for _, direction in ipairs(directions) do who[which].held[direction] = true end
    return function() who[which]:free() end
  end
end

faults.asks_the_store_late = holds("store", { "there" })
faults.hears_the_store_late = holds("store", { "back" })
faults.is_not_reached = holds("others", { "there", "back" })
faults.is_heard_late = holds("others", { "back" })

-- What the others send is long on its way: here is less than was acknowledged.
function faults.is_slow(_, who)
  who.others.delay.there = 0.4
  return function() who.others:free() end
end

local function cuts(which)
  return function(_, who)
    who[which].refusing = true
    who[which]:reset()
    return function() who[which]:free() end
  end
end

faults.has_no_store = cuts "store"
faults.is_cut_off = cuts "others"

function faults.store_crashes(self)
  if self.down then return end
  self.down = true
  self.server:down "immediate"
  return function()
    self.server:up()
    self.down = nil
  end
end

function faults.store_late_for_all(self)
  for _, who in ipairs(self.members) do who.store.held.back = true end
  return function()
    for _, who in ipairs(self.members) do who.store:free() end
  end
end

local KINDS = {}
for name in pairs(faults) do KINDS[#KINDS + 1] = name end
table.sort(KINDS)

local function leader_of(self)
  local lives = ticks.lives(self.cluster.ticks)
  local last = lives[#lives]
  for _, who in ipairs(self.members) do
    if last and who.node == last.node then return who end
  end
end

local function suffer(self)
  local kind, seconds = KINDS[self.random(#KINDS)], self.random() ^ 2 * 6
  local who = self.members[self.random(#self.members)]
  if self.random() < 0.5 then who = leader_of(self) or who end
  if who.suffers then return end
  who.suffers, self.busy = true, (self.busy or 0) + 1
  self:say("%s: %s for %.2f s", kind, who.node, seconds)
  crown.spawn(function()
    local fine, ends = pcall(faults[kind], self, who)
    crown.sleep(seconds)
    if fine and ends then fine, ends = pcall(ends) end
    if not fine then self:say("%s failed: %s", kind, tostring(ends)) end
    who.suffers, self.busy = nil, self.busy - 1
  end)
end

-- What is not as somebody was told, in words.
local function look(self)
  local wrong, known = {}, {}
  for _, who in ipairs(self.members) do
    known[who.node] = who.member:ask "names"
    if not known[who.node] then return { who.node .. " cannot be asked" } end
  end
  local function say(...) wrong[#wrong + 1] = (...):format(select(2, ...)) end
  for _, who in ipairs(self.members) do
    for name, wish in pairs(who.wishes) do
      local member, life = life_of(who)
      local holds_good = wish.told and member == wish.member and life == wish.life and not is_excused(self, who, name, wish)
      for _, other in ipairs(holds_good and self.members or {}) do
        local found = known[other.node][name]
        if wish.what == "unregister" and found and found.owner == who.node then
          say("%s gave %s up, and at %s it has it", who.node, name, other.node)
        elseif wish.what == "register" and not (found and found.owner == who.node and found.value == wish.value) then
          say("%s was told that it has %s with %s, and at %s it is %s's with %s", who.node, name, wish.value, other.node,
            found and found.owner or "nobody", found and tostring(found.value) or "nothing")
        end
      end
    end
  end
  for name, found in pairs(known[NODES[1]]) do
    for node, others in pairs(known) do
      if not others[name] or others[name].owner ~= found.owner then say("%s and %s do not agree about %s", NODES[1], node, name) end
    end
  end
  return wrong
end

local function play(self, count)
  local members = {}
  local function all()
    for i, who in ipairs(self.members) do members[i] = who.member end
    return members
  end
  self.cluster:await(all(), SETTLE)
  for _, who in ipairs(self.members) do
    for number = 0, CLIENTS - 1 do crown.spawn(client, self, who, number) end
  end
  for _ = 1, count do
    crown.sleep(self.random() * 1.5)
    suffer(self)
  end
  while self.busy > 0 do crown.sleep(0.05) end
  self:say "all is well again"
  self.quiet = true
  local fine, problem = pcall(self.cluster.await, self.cluster, all(), SETTLE)
  if not fine then return { "they do not agree who leads: " .. tostring(problem) } end
  local until_at = crown.now() + SETTLE
  while true do
    local wrong = look(self)
    if #wrong == 0 or crown.now() > until_at then return wrong end
    crown.sleep(0.2)
  end
end

local function finish(self)
  for _, who in ipairs(self.members) do
    who.store:close()
    who.others:close()
  end
  local fine, problem = pcall(self.cluster.finish, self.cluster)
  self.server:destroy()
  return fine and {} or { tostring(problem) }
end

local function report(self, seed, count, wrong)
  print(("\nregistry, seed %d:"):format(seed))
  for _, text in ipairs(wrong) do print("  " .. text) end
  print("what happened:\n  " .. table.concat(self.said, "\n  "))
  print(("again: make torture STORE=registry FAULTS=%d SEED=%d"):format(count, seed))
  os.execute(("cp -r %s /tmp/crown-kept-%d"):format(self.cluster.dir, require("crown.core").pid))
  print("the logs of the members are kept in /tmp/crown-kept-" .. require("crown.core").pid .. "\n")
end

--- Runs until there were so many faults.
-- @number count faults
-- @number seed of the first run
-- @treturn table `faults`, `terms`, `overlap`, `gap`, `unexplained`, `runs`, `wrong`, as a store's torture has them
return function(count, seed)
  local sum = { faults = 0, terms = 0, overlap = 0, gap = 0, unexplained = 0, runs = 0, wrong = 0 }
  while sum.faults < count do
    local size = math.min(A_RUN, count - sum.faults)
    local world = new_world(seed)
    local fine, wrong = pcall(play, world, size)
    if not fine then wrong = { tostring(wrong) } end
    world.quiet = true
    local terms = #ticks.lives(world.cluster.ticks)
    for _, text in ipairs(finish(world)) do wrong[#wrong + 1] = text end
    if #wrong > 0 then report(world, seed, size, wrong) end
    print(("registry   seed %-8d %3d faults %3d terms  %d writes  %s"):format(seed, size, terms, world.told or 0,
      #wrong == 0 and "fine" or "WRONG"))
    io.flush()
    sum.faults, sum.runs, sum.terms, sum.wrong = sum.faults + size, sum.runs + 1, sum.terms + terms, sum.wrong + math.min(#wrong, 1)
    seed = seed + 1
  end
  return sum
end
