--- Which slot of a Redis Cluster a key is in, and which node keeps each slot.
-- @internal crown.redis.slots

local url = require "crown.text.url"

local slots = {}

slots.COUNT = 16384

local POLYNOMIAL = 0x1021

-- CRC-16/XMODEM, as the cluster's specification has it.
local function crc16(text)
  local sum = 0
  for i = 1, #text do
    sum = bit.bxor(sum, bit.lshift(text:byte(i), 8))
    for _ = 1, 8 do
      local carry = bit.band(sum, 0x8000) ~= 0
      sum = bit.band(bit.lshift(sum, 1), 0xffff)
      if carry then sum = bit.bxor(sum, POLYNOMIAL) end
    end
  end
  return sum
end

--- The slot of a key: by what stands between the first braces, where something does.
-- @string key
-- @treturn number 0 to 16383
function slots.of(key)
  return crc16(key:match "^[^{]*{([^}]+)}" or key) % slots.COUNT
end

--- A node's name: where it is reached.
-- @tparam table place `{ host, port }`
-- @treturn string
function slots.name(place)
  return ("%s:%d"):format(place.host, place.port)
end

-- A node that does not know its own address, or does not tell it, is where it was asked.
local function place_of(entry, asked)
  if type(entry) ~= "table" then return nil end
  local host = entry[1]
  if host == nil or host == "" or host == "?" then host = asked.host end
  return url.place(host, entry[2])
end

local function whole(number)
  return type(number) == "number" and number >= 0 and number < slots.COUNT and number % 1 == 0
end

--- Reads what CLUSTER SLOTS answers.
-- @param answer
-- @tparam table asked the place that answered
-- @treturn table `{ keeper = by slot, a node's name; primaries = by name, a place; places = of all nodes, by name }`; or nil
-- and a message
function slots.read(answer, asked)
  local map = { keeper = {}, primaries = {}, places = {} }
  for _, range in ipairs(type(answer) == "table" and answer or {}) do
    local first, last = type(range) == "table" and range[1], type(range) == "table" and range[2]
    local primary = type(range) == "table" and place_of(range[3], asked)
    if not whole(first) or not whole(last) or not primary then return nil, "what a node says of the slots cannot be read" end
    local name = slots.name(primary)
    map.primaries[name] = primary
    for slot = first, last do map.keeper[slot] = name end
    for i = 3, #range do
      local place = place_of(range[i], asked)
      if place then map.places[slots.name(place)] = place end
    end
  end
  if next(map.primaries) == nil then return nil, "no node of the cluster keeps any slot" end
  return map
end

--- Reads "MOVED slot host:port" and "ASK slot host:port".
-- @string problem the server's words
-- @tparam table asked the place that answered
-- @treturn table the place that it names, or nil
function slots.redirection(problem, asked)
  local host, port = problem:match "^%u+ %d+ (.-):(%d+)$"
  if not host then return nil end
  return place_of({ host:match "^%[(.*)%]$" or host, port }, asked)
end

return slots
