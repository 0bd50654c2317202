--- What goes over a connection to MySQL: packets, and what they say. Numbers are little-endian.
-- @internal crown.mysql.wire

local wire = {}

local HEAD = 4 -- bytes before each packet: three of length, one number
local LONGEST = 2 ^ 20 -- bytes of a packet: a record has some hundred

--- A number in so many bytes.
-- @number value
-- @number size in bytes, at most 4
-- @treturn string
function wire.number(value, size)
  local bytes = {}
  for i = 1, size do
    bytes[i] = string.char(value % 256)
    value = math.floor(value / 256)
  end
  return table.concat(bytes)
end

--- A packet.
-- @number serial its number
-- @string body
-- @treturn string
function wire.packet(serial, body)
  return wire.number(#body, 3) .. string.char(serial % 256) .. body
end

-- --- reading

--- Reads a number.
-- @string text
-- @number at its first byte
-- @number size in bytes; of eight, what is above 2^53 loses its last digits
-- @treturn number or nil where the text ends before
function wire.read_number(text, at, size)
  if at + size - 1 > #text then return nil end
  local value = 0
  for i = at + size - 1, at, -1 do value = value * 256 + text:byte(i) end
  return value
end

local LENGTHS = { [0xfc] = 2, [0xfd] = 3, [0xfe] = 8 }

--- Reads a number of variable length.
-- @string text
-- @number at its first byte
-- @treturn number false for NULL; nil where it is none
-- @treturn number what comes after it
function wire.read_length(text, at)
  local first = text:byte(at)
  if not first or first == 0xff then return nil end
  if first == 0xfb then return false, at + 1 end
  if first < 0xfb then return first, at + 1 end
  return wire.read_number(text, at + 1, LENGTHS[first]), at + 1 + LENGTHS[first]
end

--- Reads the texts of a row.
-- @string body of a packet
-- @number count of columns
-- @treturn table an array, false for NULL; or nil where the packet has not just so many
function wire.read_row(body, count)
  local row, at = {}, 1
  for i = 1, count do
    local size, start = wire.read_length(body, at)
    if size == nil then return nil end
    row[i], at = size and body:sub(start, start + size - 1), start + (size or 0)
    if at > #body + 1 then return nil end
  end
  return at == #body + 1 and row or nil
end

--- Reads the text up to a zero byte.
-- @string text
-- @number at its first byte
-- @treturn string or nil where there is no zero byte
-- @treturn number what comes after that
function wire.read_text(text, at)
  local zero = text:find("\0", at, true)
  if not zero then return nil end
  return text:sub(at, zero - 1), zero + 1
end

--- Reads an error.
-- @string body of a packet that begins with 0xff
-- @treturn string what the server says
-- @treturn number the error's number
function wire.read_error(body)
  local number = wire.read_number(body, 2, 2) or 0
  return body:match("^#.....(.*)$", 4) or body:sub(4), number
end

-- --- packets out of what comes

local Packets = {}
Packets.__index = Packets

--- Makes an empty one.
-- @treturn Packets
function wire.packets()
  return setmetatable({ text = "", at = 1, pieces = {}, size = 0, wanted = HEAD }, Packets)
end

--- Adds bytes.
-- @string bytes
function Packets:feed(bytes)
  self.pieces[#self.pieces + 1], self.size = bytes, self.size + #bytes
end

--- Whether there is a part of a packet.
-- @treturn boolean
function Packets:is_within()
  return self.size > 0
end

-- What came is joined once there is enough of it.
local function join(self)
  if not self.pieces[1] then return end
  self.text, self.at, self.pieces = self.text:sub(self.at) .. table.concat(self.pieces), 1, {}
end

--- Takes the next packet out.
-- @treturn string its body; nil: it is not there yet; false: it is too long
-- @treturn number its number
function Packets:next()
  if self.size < self.wanted then return nil end
  join(self)
  local length = wire.read_number(self.text, self.at, 3)
  if length > LONGEST then return false end
  self.wanted = HEAD + length
  if self.size < self.wanted then return nil end
  local from = self.at + HEAD
  self.at, self.size, self.wanted = from + length, self.size - self.wanted, HEAD
  return self.text:sub(from, from + length - 1), self.text:byte(from - 1)
end

return wire
