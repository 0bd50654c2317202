--- The record by which an election is held in a store that compares and swaps: a JSON object.
--
-- `epoch` of the last grant; `serial`, which every write raises, so that a store that went back is noticed; `nonce`, so that
-- no two texts are the same, of which some stores make the version; `ttl` of the lease in seconds; while somebody holds it
-- `token`, `node` and `claim`, the number of the claim that won, and `evicted` when the holder was asked to go; `doubted` while
-- nobody may hold it, because the store has forgotten.
-- @internal crown.oracle.record

local json = require "crown.text.json"

local record = {}

local TTL_MOST = 86400

local TYPES = { nonce = "string", token = "string", node = "string", claim = "number", evicted = "boolean", doubted = "boolean" }

local function is_count(value)
  return type(value) == "number" and value >= 0 and value <= 2 ^ 53 and value % 1 == 0
end

local function is_whole(found)
  for field, wanted in pairs(TYPES) do
    if found[field] ~= nil and type(found[field]) ~= wanted then return false end
  end
  if type(found.ttl) ~= "number" or found.ttl < 0 or found.ttl > TTL_MOST then return false end
  if found.token and found.ttl == 0 then return false end -- it would be over while its holder leads
  return is_count(found.epoch) and is_count(found.serial) and (found.token == nil) == (found.claim == nil)
end

--- Reads a record.
-- @string text
-- @treturn table or nil and a message: it is no record of an election
function record.parse(text)
  local found = json.object(text)
  if not found or not is_whole(found) then
    return nil, "what the store holds is no record of an election"
  end
  return found
end

--- The text of a record that is written after another one.
-- @tparam table one gets its serial and nonce
-- @number serial of the one before
-- @string token the writer's
-- @number number that this token's writers have not used before
-- @treturn string
function record.text(one, serial, token, number)
  one.serial, one.nonce = serial + 1, ("%s %.0f"):format(token, number)
  return json.encode(one)
end

--- A record that is held.
-- @tparam table holder `token`, `node`, `claim`, `ttl`
-- @number epoch
-- @treturn table
function record.held(holder, epoch)
  return { token = holder.token, node = holder.node, claim = holder.claim, ttl = holder.ttl, epoch = epoch }
end

--- A record that nobody holds: anybody may claim at once.
-- @number epoch of the last grant
-- @number ttl in seconds
-- @treturn table
function record.empty(epoch, ttl)
  return { epoch = epoch, ttl = ttl }
end

--- A record that nobody holds, and nobody may claim before it has stood for its TTL.
-- @number epoch the highest that is known
-- @number ttl the longest that anybody may still act on
-- @treturn table
function record.doubted(epoch, ttl)
  return { epoch = epoch, ttl = ttl, doubted = true }
end

--- The same holder, asked to go.
-- @tparam table found
-- @treturn table
function record.evicted(found)
  local one = record.held(found, found.epoch)
  one.evicted = true
  return one
end

return record
