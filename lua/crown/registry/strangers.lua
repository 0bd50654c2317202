--- Connections that have proved nothing yet: so many at once, and half as many of one address, so that one host that opens
-- connections and says nothing does not keep members out. Where there is no room, whoever has been here longest makes way, and
-- has had a moment before: the others wait in the kernel for so long, in the order in which they came.
-- What goes wrong with strangers is told at most once a minute, for each address and reason.
-- @internal crown.registry.strangers

local core = require "crown.core"

local Strangers = {}
Strangers.__index = Strangers

local MOST = 64
local MOST_OF_ONE = 32    -- address
local MOMENT = 0.05       -- seconds in which nobody has to make way: members need a few milliseconds
local QUIET = 60          -- seconds between two words about the same
local TOLD_MOST = 256     -- words that are remembered; from then on all is told as of one address
local ANYBODY = "many addresses"
local CROWDED = "too many connections that have not proved that they know the secret"

--- Makes an empty one.
-- @tparam function emit `emit(event, fields)`
-- @treturn Strangers its `count` is how many there are
function Strangers.new(emit)
  return setmetatable({ emit = emit, count = 0, of = {}, line = {}, told = {}, words = 0 }, Strangers)
end

local function forget(self, now)
  for key, at in pairs(self.told) do
    if now - at >= QUIET then
      self.told[key] = nil
      self.words = self.words - 1
    end
  end
end

--- Says what is wrong with somebody.
-- @string address without a port
-- @string problem in words of our own
function Strangers:tell(address, problem)
  local now = core.now()
  if self.words >= TOLD_MOST then forget(self, now) end
  if self.words >= TOLD_MOST then address = ANYBODY end
  local key = address .. " " .. problem
  local at = self.told[key]
  if at and now - at < QUIET then return end
  if not at then self.words = self.words + 1 end
  self.told[key] = now
  self.emit("oracle.registry.link_cut", { peer = address, error = problem })
end

local function oldest(self, address)
  for i, one in ipairs(self.line) do
    if not address or one.address == address then return one, i end
  end
end

-- The address with the most of them, where that is not the whole of the trouble.
local function most_of(self)
  local found
  for address, count in pairs(self.of) do
    if not found or count > self.of[found] then found = address end
  end
  return found
end

local function leave(self, one, place)
  table.remove(self.line, place)
  self.count, self.of[one.address] = self.count - 1, self.of[one.address] - 1
  if self.of[one.address] == 0 then self.of[one.address] = nil end
end

-- The address of which somebody has to make way for the next one of an address; nil where there is room.
local function crowd_at(self, address)
  return (self.of[address] or 0) >= MOST_OF_ONE and address or self.count >= MOST and most_of(self) or nil
end

local function make_room(self, crowd)
  self:tell(crowd, CROWDED)
  local one, place = oldest(self, crowd)
  leave(self, one, place)
  one.stream:close()
end

--- Takes a connection in.
-- @param stream of crown.core.tcp
-- @string[opt] address its own, without a port; or whatever else so many may have in common
-- @treturn table for `leave`, with its `address`
-- @treturn number seconds until the next one may be taken in
function Strangers:enter(stream, address)
  address = address or (stream:peer() or "?"):gsub(":%d+$", "")
  local crowd = crowd_at(self, address)
  if crowd then make_room(self, crowd) end
  local one = { address = address, stream = stream, since = core.now() }
  self.line[#self.line + 1] = one
  self.count, self.of[address] = self.count + 1, (self.of[address] or 0) + 1
  crowd = crowd_at(self, address)
  return one, crowd and math.max(0, oldest(self, crowd).since + MOMENT - one.since) or 0
end

--- Somebody is a stranger no more, or is gone.
-- @tparam table one what `enter` returned
function Strangers:leave(one)
  for place, other in ipairs(self.line) do
    if other == one then return leave(self, one, place) end
  end
end

return Strangers
