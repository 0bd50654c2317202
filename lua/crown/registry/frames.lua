--- Frames on a connection: four bytes of length, the highest first, and as many bytes of JSON.
-- @internal crown.registry.frames

local core = require "crown.core"
local json = require "crown.text.json"

local frames = {}

local CUT = "the connection ended within a frame"

--- Bytes in a frame at most.
frames.MOST = 1048576

--- Makes a frame, in two parts, so that what is long is not copied.
-- @param value what JSON can hold
-- @treturn string its length
-- @treturn string the rest
function frames.parts(value)
  local text = json.encode(value)
  local size = #text
  return string.char(math.floor(size / 16777216) % 256, math.floor(size / 65536) % 256, math.floor(size / 256) % 256,
    size % 256), text
end

--- Makes a frame.
-- @param value what JSON can hold
-- @treturn string
function frames.encode(value)
  local head, text = frames.parts(value)
  return head .. text
end

--- Reads a frame.
-- @param stream a connection of crown.core.tcp
-- @number most bytes that it may have
-- @number silence seconds until its first byte
-- @number patience seconds from there to its last
-- @return what it holds, nil, nil and its bytes; or nil, message, code: "nonsense" for what is none
function frames.read(stream, most, silence, patience)
  local head, problem, code = stream:read(4, silence)
  if not head then return nil, problem, code end
  if #head < 4 then return nil, CUT, "closed" end
  local a, b, c, d = head:byte(1, 4)
  local size = ((a * 256 + b) * 256 + c) * 256 + d
  if size > most then return nil, ("a frame of more than %d bytes"):format(most), "nonsense" end
  local text
  text, problem, code = stream:read(size, patience)
  if not text then return nil, problem, code end
  if #text < size then return nil, CUT, "closed" end
  local fine, value = pcall(core.json.decode, text)
  if not fine or type(value) ~= "table" then return nil, "a frame that is not JSON", "nonsense" end
  return value, nil, nil, size
end

return frames
