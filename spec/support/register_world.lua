--- A virtual cluster around the register's rule: a store with two verbs, runtimes with a session each whose clocks drift, and
-- what a core does around an oracle. A seed decides what goes wrong: requests that are lost, late, done twice or done long
-- after they were given up; looks that are not atomic; runtimes that are killed, stopped or cut off; trees that do not end;
-- records that vanish; a store that restarts, goes back or is emptied; operators' directives.
local Clock = require "support.virtual_clock"
local KINDS = require "support.register_kinds"
local servers = require "support.register_servers"
local chance, fault_at, row_of = servers.chance, servers.fault_at, servers.row_of
local core = require "support.register_core"
local acts = core.acts
local faults = require "support.register_faults"
local FAULTS, hurt, remember = faults.FAULTS, faults.hurt, faults.remember
local hosts = require "support.register_hosts"
local health = require "support.register_health"
local pairs = require("support.ordered_pairs").pairs
local new_token, start = hosts.new_token, hosts.start

local World = { KINDS = KINDS }
World.__index = World

local NAMES = { "a", "b" }
local SECONDS = 1000 -- of trouble
local HOSTS = 3
local SMALL_TTL = 2
local FLOOR = 24 -- the longest TTL there: amnesia_wait
local MOST_EVENTS = 3e6
local MORE_PATIENCE = 30 -- seconds, of who asks a leader to go
local STEADY = 30 -- seconds for which the right one leads where candidates are healthy or not
local TURNS = 12 -- TTLs in which a preferred host has its turn again

local function new(options)
  local world = setmetatable({ clock = Clock.new(1000000), nodes = {}, hosts = {}, count = 0, terms = 0, requests = 0, places = {},
    highest = {}, trouble = true, past = {}, names = NAMES, seconds = SECONDS, floor = FLOOR, shards = {}, servers = 1 }, World)
  for key, value in pairs(options) do world[key] = value end
  return world
end

local function add_servers(world)
  for server = 1, world.servers do
    for _, kind in ipairs { "elections" .. server, "sessions" .. server } do
      world.shards[kind], world.past[kind] = { rows = {}, memory = "m0" .. kind }, {}
    end
  end
end

local HOUR = 3600000 -- ms

local function new_host(world, host)
  world.hosts[#world.hosts + 1] = host
  host.number = #world.hosts
  start(world, host, new_token(world, host))
end

-- Chance by a seed.
local function dice(seed)
  local state = seed
  local function random(most)
    state = (state * 16807) % 2147483647
    local part = state / 2147483647
    return most and math.floor(part * most) + 1 or part
  end
  for _ = 1, 5 do random() end
  return random
end

-- Where one may not ask a leader to go for its preference, who leads in the end depends on health alone.
local function make_health(world, host)
  host.sick, host.last_resort = chance(world, 0.3), chance(world, 0.5)
  host.rank = { level = world.asks_by_rank and world.random(3) - 1 or 0,
    preempt = world.asks_by_rank and 15 + world.random() * MORE_PATIENCE or nil }
end

--- @tparam table options `seed`; `modules` of support.register_modules; `kind` of World.KINDS; `careless`: the store does not
-- compare; `trace(line)`
function World.new(options)
  local world = new { random = dice(options.seed), pause = 16 }
  world.split, world.sharded, world.fine, world.timed = chance(world, 0.5), chance(world, 0.3), chance(world, 0.5), chance(world, 0.3)
  local ahead = world.timed and HOUR or 400 -- ms; clocks that are further apart give an epoch twice, where the store has none
  world.noisy, world.eager, world.texts, world.mixed = chance(world, 0.6), chance(world, 0.1), chance(world, 0.5), chance(world, 0.5)
  for key, value in pairs(World.KINDS[options.kind]) do world[key] = value end
  for key, value in pairs(options) do world[key] = value end
  world.modules.random = dice(31 * options.seed + 7)
  if world.slot then ahead = 400 end -- what a host has run whose clock is ahead is over for the others
  add_servers(world)
  world.asks_by_rank = world.healthy and chance(world, 0.5)
  if world.cluster then world.at = { a = "elections1", ["@a"] = "elections1", b = "sessions1", ["@b"] = "sessions1" } end
  for _ = 1, HOSTS do
    local host = { rate = 0.99 + 0.01 * (world.random(3) - 1), offset = world.random() * 1000, ahead = world.random(ahead),
      ttl = world.mixed and (chance(world, 0.5) and 6 or 24) or 12, wants = { a = true, b = true } }
    if world.drift then host.rate, host.ttl = chance(world, 0.5) and 0.99 or 1.01, 24 end
    if world.blind then host.ttl = 6 end
    if world.preferred then host.rank = { level = world.random(3) - 1, preempt = 15 + world.random() * MORE_PATIENCE } end
    if world.healthy then make_health(world, host) end
    if world.yields then host.level = world.random(3) - 2 end
    new_host(world, host)
  end
  world.clock:after(5, function() hurt(world) end)
  remember(world)
  return world
end

-- "kill 2": the fault, and the host that it befalls.
local function befall(world, fault)
  local name, number = fault:match "^(%S+) ?(%d*)$"
  local host = world.hosts[tonumber(number) or 1]
  if not world.nodes[host.number].dead then FAULTS[name](world, host) end
end

--- Two runtimes and one election, in which nothing happens by chance: the first one leads, gives back, and wants to lead again.
-- `places` tells where faults may be, each with `name`, `at`, `order`, and `is_request` or `ticks`.
-- @tparam table options `modules`; `seconds`; `script`: by a place's name the fault that it gets; `ticks`: those of each second
function World.small(options)
  local world = new { random = function(most) return most and math.ceil(most / 2) or 0.5 end, names = { "a" }, floor = SMALL_TTL }
  for key, value in pairs(options) do world[key] = value end
  world.modules.random = world.random
  add_servers(world)
  world.shards.elections1.rows.a = { text = '{"v":1,"serial":1,"memory":"m0elections1","epoch":1}', version = 0 }
  for i = 1, 2 do
    new_host(world, { rate = i == 1 and 0.99 or 1.01, offset = 100 * i, ahead = 0, ttl = SMALL_TTL, wants = { a = true } })
  end
  for second = 1, world.seconds - 1 do
    world.clock:after(second, function()
      local fault = fault_at(world, ("second %d"):format(second), { ticks = world.ticks })
      if fault then befall(world, fault) end
    end)
  end
  for when, wants in pairs { [world.seconds * 0.3] = false, [world.seconds * 0.5] = true } do
    world.clock:after(when, function()
      world.hosts[1].wants.a = wants
      world.nodes[1].elections.a.wanted = wants
    end)
  end
  return world
end

-- One that wants to lead each election from now on: not another one that may be stuck.
local function calm(world)
  world.trouble = false
  world.back = nil
  world:take_back_orders()
  for _, host in ipairs(world.hosts) do
    world.nodes[host.number].stopped = nil
    if world.nodes[host.number].dead then start(world, host, new_token(world, host)) end
  end
  if world.healthy then
    for _, host in ipairs(world.hosts) do host.sick = chance(world, 0.6) end
  end
  for _, name in ipairs(world.names) do
    local all_come = world.preferred or world.shares or world.healthy
    local only = world.script and 2 or chance(world, 0.7) and not all_come and world.random(#world.hosts)
    for _, host in ipairs(world.hosts) do
      host.wants[name] = not only or only == host.number
      world.nodes[host.number].elections[name].wanted = host.wants[name]
    end
  end
end

-- Seconds until somebody leads when the trouble is over.
local function bound(world)
  return 2 * (2 * world.floor * 1.01 + 0.25) + world.floor * 1.01 + 60 + ((world.preferred or world.healthy) and 4 * MORE_PATIENCE or 0)
    + (world.shares and 30 * #world.names or 0) + (world.yields and TURNS * world.floor or 0)
end

local NOBODY = -math.huge -- the level of who may not lead

local function level_of(host) return health.level(host) or NOBODY end

-- The highest preference of those who want to lead: one that has it does so in the end.
local function highest_level(world, name)
  local highest = NOBODY
  for _, host in ipairs(world.hosts) do
    if host.wants[name] then highest = math.max(highest, level_of(host)) end
  end
  return highest
end

-- Where nobody may lead nobody does in the end.
local function is_led(world, name)
  local has_levels, highest, is_anybody = world.preferred or world.yields or world.healthy, highest_level(world, name), false
  for _, node in pairs(world.nodes) do
    if acts(node, name) then
      is_anybody = true
      if not has_levels or level_of(node.host) >= highest then return highest > NOBODY end
    end
  end
  return highest == NOBODY and not is_anybody
end

-- Whether no node leads more than one more than another.
local function are_even(world)
  local least, most = math.huge, 0
  for _, node in pairs(world.nodes) do
    local count = 0
    for _, name in ipairs(world.names) do count = count + (acts(node, name) and 1 or 0) end
    least, most = math.min(least, count), math.max(most, count)
  end
  return most - least <= 1
end

-- @return whether somebody leads each election, or has led it since the trouble was over
local function all_led(world, led, since)
  local all = true
  for _, name in ipairs(world.names) do
    led[name] = not world.healthy and led[name] or is_led(world, name)
    if not led[name] and since > bound(world) then
      error(("nobody leads %s that should for %.0f s: %s"):format(name, since, tostring(row_of(world, name).text)), 0)
    end
    all = all and led[name]
  end
  if not world.shares or not all then return all end
  local is_over = are_even(world)
  if not is_over and since > bound(world) then error(("shares are uneven for %.0f s"):format(since), 0) end
  return is_over
end

-- The operator lets candidates lead again, in each record.
function World:take_back_orders()
  for _, shard in pairs(self.shards) do
    for name, row in pairs(shard.rows) do
      local found = row.text and not self.modules.record.is_reserved(name) and self.modules.record.parse(row.text, name)
      if found and found.orders then
        local rest = found.orders.ranks and { ranks = found.orders.ranks } or nil
        local text = self.modules.record.text(self.modules.rule.order(found, rest), ("taken back %d"):format(servers.unique(self)))
        shard.rows[name] = { text = text, version = self.texts and text or servers.unique(self), since = self.clock.now,
          peer = row.peer, ends = row.ends, by = row.by, changed = row.changed }
      end
    end
  end
end

-- What records say of those who lead is what others go by.
local function check_told(world)
  for _, name in ipairs(world.healthy and world.names or {}) do
    local one = world.modules.record.parse(row_of(world, name).text, name)
    for _, node in pairs(world.nodes) do
      local told = acts(node, name) and (one.orders and one.orders.ranks or {})[node.token] or 0
      if acts(node, name) and told ~= level_of(node.host) then
        error(("%s leads %s by a level that it does not tell: %s"):format(node.label, name, row_of(world, name).text), 0)
      end
    end
  end
end

-- Steps until all are led as they should be; where candidates are healthy or not, for a while.
local function settle(world, ends, breathe)
  local led, since = {}, nil
  repeat
    world.clock:step()
    world.events = (world.events or 0) + 1
    if world.events % 1000 == 0 and breathe then breathe() end
    if world.events > MOST_EVENTS then error("too many events", 0) end
    if world.restarts and world.trouble and world.terms > #world.names then error("a term ended", 0) end
    local is_fine = world.clock.now > ends and all_led(world, led, world.clock.now - ends)
    since = is_fine and (since or world.clock.now) or nil
  until since and (not world.healthy or world.clock.now - since > STEADY)
  check_told(world)
end

-- @return whether one was unhealthy, and is healthy now
local function heal_one(world)
  for _, host in ipairs(world.healthy and world.hosts or {}) do
    if host.sick then
      host.sick = false
      return true
    end
  end
  return false
end

--- Trouble for a while; then somebody has to lead each election within a bound. Where candidates are not healthy, one after the
-- other becomes so after that, and again.
-- @tparam[opt] function breathe called now and then
-- @treturn World
function World:run(breathe)
  self.clock:after(self.seconds, function() calm(self) end)
  settle(self, self.clock.now + self.seconds, breathe)
  while heal_one(self) do settle(self, self.clock.now, breathe) end
  return self
end

return World
