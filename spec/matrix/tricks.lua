--- What a peer, or a proxy before it, does from some step on: what becomes of what the client asks then, and of the answers.
-- `deaf`: nothing that is asked gets through. `at_once(pair)`: done when the step is reached, the question passed on.
-- `answer(pair, bytes, client)`: does with an answer what it does; without it nothing is answered.
local crown = require "crown"
local reset = require "matrix.reset"

local tricks = {}

local LATE = 2.5 -- seconds, which is longer than any client here waits
local SLOW = 1   -- seconds for a byte

-- The same bytes each time, and none that a protocol begins an answer with.
local function garbage(size)
  local bytes, at = {}, 4711
  for i = 1, size do
    at = (at * 1103515245 + 12345) % 2 ^ 31
    bytes[i] = string.char(128 + math.floor(at / 65536) % 128)
  end
  return table.concat(bytes)
end

local function half(bytes) return bytes:sub(1, math.ceil(#bytes / 2)) end

tricks["is silent"] = { deaf = true }

tricks["acknowledges and says nothing"] = {}

tricks["says half an answer and stops"] = { answer = function(pair, bytes)
  if not pair.said then pair.near:write(half(bytes)) end
  pair.said = true
end }

tricks["closes after half an answer"] = { answer = function(pair, bytes)
  pair.near:write(half(bytes))
  pair.close()
end }

tricks["closes after the answer"] = { answer = function(pair, bytes)
  pair.near:write(bytes)
  pair.close()
end }

tricks["closes at once"] = { at_once = function(pair) pair.close() end }

tricks["says a byte a second"] = { answer = function(pair, bytes)
  for byte in bytes:gmatch "." do
    if pair.closed or not pair.near:write(byte) then return end
    crown.sleep(SLOW)
  end
end }

tricks["resets"] = { at_once = function(pair)
  reset(pair.near)
  pair.close()
end }

tricks["answers late"] = { answer = function(pair, bytes)
  crown.sleep(LATE)
  if not pair.closed then pair.near:write(bytes) end
end }

tricks["answers twice"] = { answer = function(pair, bytes) pair.near:write(bytes .. bytes) end }

tricks["answers with garbage"] = { answer = function(pair, bytes) pair.near:write(garbage(#bytes)) end }

tricks["says a huge length"] = { answer = function(pair, _, client)
  if not pair.said then pair.near:write(client.huge) end
  pair.said = true
end }

return tricks
