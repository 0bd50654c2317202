--- What operators order of the candidates, at random: several orders a second, which race with one another and with all else.
local crown = require "crown"
local new_random = require "torture.random"

local orders = {}

local OPERATORS = 2
local PAUSE = 0.8      -- seconds between two orders of an operator, at most
local TAKE_BACK = 60   -- seconds until the last order has to be taken back
local STANDS_STILL = 1 -- seconds for which others leave a hand-over to its node

local function resume() return { "resume" } end

local function hand_over(world, random)
  local node = world.candidates[random(#world.candidates)].node
  return { "handover", "--wait", "0", "--within", STANDS_STILL, "--to", node }
end

local DRAWN = {
  function() return { "pause", "--wait", "0" } end,
  function() return { "pause", "--wait", "0", "--keep" } end,
  function() return { "pause", "--wait", "0", "--for", "1" } end,
  resume, resume, hand_over, hand_over,
}

local function operate(world, random, fault)
  while not fault.over do
    local words = DRAWN[random(#DRAWN)](world, random)
    words[#words + 1] = world.elections[random(#world.elections)]
    world:run(words)
    crown.sleep(random() * PAUSE)
  end
  fault.operators = fault.operators - 1
end

--- Operators order something again and again. What they have ordered last is taken back when it is over.
-- @treturn table a fault of a store
function orders.fault()
  return { weight = 2, beside = true, begin = function(world, random)
    local fault = { operators = OPERATORS }
    world.ordering = world.ordering + 1
    world:say "operators give orders"
    for _ = 1, OPERATORS do crown.spawn(operate, world, new_random(random(1000000)), fault) end
    return function()
      fault.over = true
      while fault.operators > 0 do crown.sleep(0.05) end
      world.ordering, world.ordered = world.ordering - 1, true
    end
  end }
end

--- Takes back all that was ordered, unless operators still order something: a store that has come back with what it had before
-- may have an order again that was taken back.
function orders.take_back(world)
  if not world.ordered or world.ordering > 0 then return end
  local until_then = crown.now() + TAKE_BACK
  for _, name in ipairs(world.elections) do
    repeat
      local answer = world:run { "resume", name }
      local known = answer and (answer.code == 0 or answer.code == 1) -- 1: there is none to take back
      if not known then crown.sleep(PAUSE) end
    until known or crown.now() > until_then
  end
end

return orders
