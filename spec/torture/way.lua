--- A candidate's way to its store: a TCP proxy of the torture's own, that holds back, delays, swallows, cuts and resets, each
-- direction by itself. What it holds back it delivers late, in order, as a network does; what it swallows never comes, as from
-- a proxy that loses it. Or it leads to somebody else, who plays tricks.
local crown = require "crown"
local Hostile = require "support.hostile"
local port = require "support.port"

local Way = {}
Way.__index = Way

local LOOK = 0.005 -- seconds between two looks whether the way is free again

-- Moves bytes one way until either side ends. Bytes wait while this direction is held, and each piece for its delay.
local function pump(self, pair, from, to, direction)
  while not pair.closed do
    local bytes = from:read("*s", 3600)
    if not bytes then break end
    local due = crown.now() + self.delay[direction]
    while not pair.closed and (self.held[direction] or crown.now() < due) do crown.sleep(LOOK) end
    if self.halved[direction] then
      to:write(bytes:sub(1, math.floor(#bytes / 2)))
      break
    end
    if self.swallow[direction] > 0 then
      self.swallow[direction] = self.swallow[direction] - 1
    elseif pair.closed or not to:write(bytes) then
      break
    end
  end
  pair:close()
end

local function new_pair(self, near, far)
  local pair = {}
  function pair.close()
    if pair.closed then return end
    pair.closed = true
    self.pairs[pair] = nil
    near:close()
    if far then far:close() end
  end
  self.pairs[pair] = true
  return pair
end

local function accept(self, near)
  self.used = true
  if self.refusing then return near:close() end
  if self.script then
    local pair = new_pair(self, near)
    Hostile.play(near, self.script)
    return pair.close()
  end
  while self.held.there do crown.sleep(LOOK) end
  local far = crown.tcp.connect("127.0.0.1", self.target(), { timeout = 5 })
  if not far or self.refusing then
    if far then far:close() end
    return near:close()
  end
  near:set_timeout(3600)
  far:set_timeout(3600)
  local pair = new_pair(self, near, far)
  crown.spawn(pump, self, pair, far, near, "back")
  pump(self, pair, near, far, "there")
end

--- Opens a way; `used` tells whether anybody has come by it.
-- @tparam function target the store's port, asked for at each connection: a store may fail over
function Way.open(target)
  local self = setmetatable({ target = target, port = port.free(), pairs = {} }, Way)
  self:free()
  self.listener = assert(crown.tcp.listen("127.0.0.1", self.port, function(near) accept(self, near) end))
  return self
end

--- Nothing is held, delayed, halved, swallowed or refused any more; what was held is delivered now.
function Way:free()
  self.swallow = { there = 0, back = 0 }
  self.held, self.halved, self.delay, self.refusing, self.script = {}, {}, { there = 0, back = 0 }, false, nil
end

--- Ends every connection.
function Way:reset()
  for pair in pairs(self.pairs) do pair:close() end
end

function Way:close()
  self:free()
  self.refusing = true
  self:reset()
  self.listener:close()
end

return Way
