--- Candidates with preferences, at random: each has one, asks a leader of a lower one to go, and is healthy or not; some lead as a
-- last resort where nobody is healthy.
local crown = require "crown"
local new_random = require "torture.random"
local write_file = require "support.write_file"

local ranks = {}

local EACH = 3 -- of so many runs one has candidates with preferences
local WAIT = 2 -- seconds: preference_wait, for which lower ones stand back
local LEVELS = 3
local PATIENCE = 20 -- seconds more in which the highest one leads when all is over

--- What a candidate is started with: a file says whether it is healthy.
ranks.APP = [[
local crown = require "crown"
local ttl = not arg[1]:find "^file:" and tonumber(os.getenv "TTL") or nil -- a file's lock has none
local function is_healthy()
  local file = io.open(os.getenv "HEALTH")
  if file then file:close() end
  return file ~= nil, "its file is gone"
end
crown.elect { name = "spec", oracle = { arg[1], ttl = ttl }, child = { unpack(arg, 2) },
  preference = tonumber(os.getenv "PREFERENCE"), preempt = tonumber(os.getenv "PREEMPT"),
  last_resort = os.getenv "LAST_RESORT" == "yes", healthy = { check = is_healthy, every = 0.2, fail = 1, pass = 1 } }
]]

-- An unhealthy candidate is healthy again at the end.
local SICK = { weight = 6, begin = function(world, who)
  if not os.remove(who.health) then return end
  world:say("%s is unhealthy", who.node)
  return function() write_file(who.health, "") end
end }

--- Gives the candidates of some runs preferences.
-- @tparam table store of torture.stores; one that takes orders gets `ranks`, and faults of candidates with them
-- @number seed
function ranks.draw(store, seed)
  local random = new_random(seed)
  if random(EACH) > 1 or not store.faults.orders or store.slots then return end
  store.ranks, store.sick = random, SICK
  store.cost = store.cost + WAIT + store.ttl -- lower ones stand back, and for who has asked all do
end

--- What a candidate gets from its environment.
-- @tparam table world
-- @tparam table who the candidate; it gets a `level`, and `health`, the path of its file
-- @tparam table environment
function ranks.give(world, who, environment)
  local random = world.store.ranks
  who.level, who.health = random(LEVELS) - 1, world.cluster.dir .. "/" .. who.node .. ".healthy"
  write_file(who.health, "")
  environment.PREFERENCE, environment.PREEMPT = who.level, 1 + random(3)
  environment.LAST_RESORT, environment.HEALTH = random(2) == 1 and "yes" or "no", who.health
  world:say("%s has a preference of %d%s", who.node, who.level, environment.LAST_RESORT == "yes" and ", and is a last resort" or "")
end

local function wrong_leader(leader, highest)
  return ("%s leads in the end, of a preference of %d, where one has %d"):format(leader and leader.node or "nobody",
    leader and leader.level or 0, highest)
end

--- Whether one of the highest preference leads, as it has to when all is over.
-- @tparam table world
-- @treturn string nil: one does; what is wrong
function ranks.wrong(world)
  if not world.store.ranks then return nil end
  local highest, leader = 0, world:leader()
  for _, who in ipairs(world.candidates) do highest = math.max(highest, who.level) end
  local until_then = crown.now() + world.store.cost + PATIENCE
  while not (leader and leader.level == highest) do
    if crown.now() > until_then then return wrong_leader(leader, highest) end
    crown.sleep(0.1)
    leader = world:leader()
  end
end

return ranks
