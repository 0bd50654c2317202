--- What happens when, drawn from a seed: one or two faults at once, each for a random while, with calm between them.
local faults = require "torture.faults"
local new_random = require "torture.random"

local schedule = {}

-- By the store's TTL: most faults end before a lease does, some last longer.
local LONGEST, CALM = 2.2, 0.9

local function weighted(list, random)
  local sum = 0
  for _, one in ipairs(list) do sum = sum + one.weight end
  local at = random() * sum
  for _, one in ipairs(list) do
    at = at - one.weight
    if at <= 0 then return one end
  end
  return list[#list]
end

local function menu_of(store, without)
  local menu = {}
  for name, fault in pairs(faults) do
    local is_drawn = (store.ports or not fault.on_way) and not without[name]
    if is_drawn then menu[#menu + 1] = { kind = "candidate", name = name, weight = fault.weight } end
  end
  if store.sick then menu[#menu + 1] = { kind = "candidate", name = "sick", weight = store.sick.weight } end
  for name, fault in pairs(store.faults) do
    if not without[name] then menu[#menu + 1] = { kind = "store", name = name, weight = fault.weight } end
  end
  table.sort(menu, function(a, b) return a.kind .. a.name < b.kind .. b.name end)
  return menu
end

-- What keeps a leader from hearing what has become of its lease.
local DEAF = { "freeze", "hold_requests", "hold_answers", "refuse", "stop" }

-- A store that forgets is at its worst while the leader does not hear of it: it acts on, and somebody else may ask first.
local function with_a_deaf_leader(store, found, at, random)
  local name = store.ports and DEAF[random(#DEAF)] or "stop"
  found[#found + 1] = { at = at - 0.1, seconds = store.ttl * (0.6 + random()), kind = "candidate", name = name, who = 1, leader = true,
    seed = random(1000000) }
end

--- Draws a schedule.
-- @tparam table store of torture.stores
-- @number seed
-- @number count how many faults
-- @number candidates how many there are
-- @tparam[opt] table without faults that are not drawn, by name
-- @treturn table an array of `{ at =, seconds =, kind =, name =, who =, seed = }`, times in seconds from the start
function schedule.draw(store, seed, count, candidates, without)
  local random, menu, found, at = new_random(seed), menu_of(store, without or {}), {}, 0
  while #found < count do
    at = at + store.ttl * (0.2 + CALM * random())
    for _ = 1, random(3) == 1 and 2 or 1 do
      local drawn = weighted(menu, random)
      if drawn.kind == "store" and #found < count - 1 and random(2) == 1 then with_a_deaf_leader(store, found, at, random) end
      found[#found + 1] = { at = at, seconds = store.ttl * (0.05 + LONGEST * random() ^ 2), kind = drawn.kind, name = drawn.name,
        who = random(candidates), leader = random(2) == 1, seed = random(1000000) }
    end
    local last = found[#found]
    at = last.at + last.seconds
  end
  return found
end

--- A schedule as a person reads it.
-- @treturn string a line a fault
function schedule.text(list)
  local lines = {}
  for i, fault in ipairs(list) do
    local on = fault.kind == "store" and "the store" or fault.leader and "the leader" or "candidate " .. fault.who
    lines[i] = ("%3d  at %6.2f s for %5.2f s  %s %s"):format(i, fault.at, fault.seconds, fault.name, on)
  end
  return table.concat(lines, "\n")
end

return schedule
