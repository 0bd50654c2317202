--- What a register holds: JSON objects, one for each election under the election's name, one for each session under `@TOKEN`, and
-- in some stores one for all, `@store`.
--
-- A session's record: `v`, `serial`, `memory`, `ttl` in seconds, `node`, `at` (the number of this life), `over` (lives
-- up to this number have ended in order), `nonce`.
-- The store's: `v`, `serial`, `memory`, `longest` (a TTL that was in use), `node` that wrote it; `doubt`, the seconds for which
-- what is missing may have been lost, and `lost`, whether there was such a record before.
-- An election's record: `v`, `serial`, `memory`, `epoch` of the last grant, `nonce`; while a session holds it `by`, `at` (the
-- life in which that session claimed it) and `node`; `doubt`, the seconds for which nobody may claim it; `directive`, what an
-- operator wants of the holder; `orders`, what operators want of every candidate, see crown.register.orders; `runs`, what became
-- of the runs of a command, see crown.register.runs.
-- What a job has written, beside its election's record: `v`, `serial`, `memory`, `nonce`; see crown.register.outputs.
--
-- Each write raises `serial`, so that a store that went back is noticed; 0 is the serial of a doubt over nothing, see
-- crown.register.rule. It has a `nonce` of its own, so that no text comes
-- twice: some stores make the version of it. Unknown fields are kept. A record with a higher `v` is never overwritten.
-- @internal crown.register.record

local core = require "crown.core"
local json = require "crown.text.json"
local orders = require "crown.register.orders"
local printable = require "crown.text.printable"

local record = {}

record.VERSION = 1

local TTL_MOST = 31536000
local DOUBT_MOST = 3 * TTL_MOST
local SHOWN = 60 -- bytes of what cannot be read
local NEWER = "a newer version of crown-lua"

local TYPES = { memory = "string", nonce = "string", by = "string", node = "string", directive = "string" }

local KNOWN = {}
for field in ("v serial memory ttl node at over nonce longest doubt lost epoch by directive orders runs"):gmatch "%a+" do
  KNOWN[field] = true
end

local function is_count(value)
  return type(value) == "number" and value >= 0 and value <= 2 ^ 53 and value % 1 == 0
end

local function is_seconds(value, most)
  return type(value) == "number" and value > 0 and value <= most
end

local function is_session(found)
  return is_seconds(found.ttl, TTL_MOST) and is_count(found.at) and (found.over == nil or is_count(found.over))
end

local function is_store(found)
  return is_seconds(found.longest, TTL_MOST) and (found.doubt == nil or is_seconds(found.doubt, DOUBT_MOST))
end

local function is_election(found)
  if not is_count(found.epoch) then return false end
  if found.orders ~= nil and not orders.is(found.orders) then return false end
  if found.doubt ~= nil and (found.by or not is_seconds(found.doubt, DOUBT_MOST)) then return false end
  return found.by == nil or is_count(found.at) -- same (order): both only look
end

--- The name of the record of a whole store.
-- @string[opt] part of it
-- @treturn string
function record.store_name(part)
  return "@store" .. (part and "@" .. part or "")
end

local OUTPUT = "@output"

--- The name of the record of what an election's command has written.
-- @string name of the election
-- @treturn string
function record.output_name(name) return "@" .. name .. OUTPUT end

local function is_output(found) return type(found.output) == "string" end

--- The name of a session's record.
-- @string token of its runtime
-- @number ttl in seconds
-- @number[opt] number among the runtime's sessions with that TTL: the first one's name has none
-- @treturn string
function record.session_name(token, ttl, number)
  return ("@%s-%s%s"):format(token, tostring(ttl), (number or 1) > 1 and "+" .. number or "")
end

--- Whose session it is: the name without its number.
-- @string name of a session
-- @treturn string
function record.runtime(name)
  return (name:gsub("%+%d+$", ""))
end

local function kind_of(name)
  if not record.is_reserved(name) then return is_election end
  if name:sub(-#OUTPUT) == OUTPUT then return is_output end
  local is_of_all = name == record.store_name() or name:find(record.store_name "", 1, true) == 1
  return is_of_all and is_store or is_session
end

--- Whether a name is one of a session's record, or of the store's: no election may have it.
-- @string name
-- @treturn boolean
function record.is_reserved(name)
  return name:sub(1, 1) == "@"
end

--- Whether a name is one of a session's record.
-- @string name
-- @treturn boolean
function record.is_session(name)
  return record.is_reserved(name) and kind_of(name) == is_session
end

--- Reads a record.
-- @string text
-- @string name under which it stands
-- @treturn table or nil and a message: it is no record, or one of a later version of crown-lua
function record.parse(text, name)
  local fine, found = pcall(core.json.decode, text)
  if not fine or type(found) ~= "table" then return nil, "the store's value is not a record of an election" end
  if is_count(found.v) and found.v > record.VERSION then
    return nil, ("%s wrote the record of '%s'"):format(NEWER, name)
  end
  for field, wanted in pairs(TYPES) do
    if found[field] ~= nil and type(found[field]) ~= wanted then found.v = nil end
  end
  local is_whole = kind_of(name)
  if found.v ~= record.VERSION or not is_count(found.serial) or not is_whole(found) then
    return nil, "the store's value is not a record of an election"
  end
  return found
end

--- Whether others should hear of a write: of a session's record only that it has gone, or that the session is over.
-- @tparam table write as crown.register.session has it
-- @treturn boolean
function record.is_news(write)
  if not record.is_reserved(write.name) or not write.text then return true end
  local found = record.parse(write.text, write.name)
  return not found or found.over ~= nil
end

--- Reads the record of a store's answer. Where a peer that writes no records has written over it, none of ours holds it any more.
-- @tparam table answer `text`, or false where there is none; `peer`, see crown.register.rule; `trouble`: why the store cannot
-- tell what stands there
-- @string name
-- @treturn table the record, or false; or nil and a message
function record.read(answer, name)
  if not answer.text then return false end
  local found, problem = record.parse(answer.text, name)
  if answer.trouble then return nil, answer.trouble end
  if found and answer.peer then
    found.by, found.at, found.node, found.directive = nil, nil, nil, nil
    found.epoch = math.max(found.epoch, answer.peer.epoch)
  end
  return found, problem
end

--- What stands where a record cannot be read, and what to do. Nothing is written over that: it may be another program's.
-- @tparam table answer as `read` has it
-- @string name
-- @string why of `read`
-- @treturn string
function record.unreadable(answer, name, why)
  if answer.trouble then return why end
  if why:find(NEWER, 1, true) then return why .. ": use that version" end
  local text = printable(answer.text)
  local shown = #text > SHOWN and text:sub(1, SHOWN) .. "…" or text
  return ("'%s': %s: \"%s\"; is this the right store? If so, stop its candidates, delete that in the store, "
    .. "and start them again"):format(name, why, shown)
end

--- A record that is written over another one: its unknown fields are kept.
-- @tparam table|boolean base the one that it replaces, or false
-- @treturn table with a serial that is one higher
function record.after(base)
  local one = {}
  for field, value in pairs(base or one) do one[field] = value end
  one.v, one.serial, one.nonce = record.VERSION, (base and base.serial or 0) + 1, nil
  return one
end

-- Numbers of others are to be read again as what they were; to write ours so would take longer, and change nothing.
local function has_unknown(one)
  if one.orders or one.runs then return true end -- which may have fields of others
  for field in pairs(one) do
    if not KNOWN[field] then return true end
  end
end

--- The text of a record.
-- @tparam table one gets the nonce
-- @string nonce that no other text has
-- @treturn string
function record.text(one, nonce)
  one.nonce = nonce
  return has_unknown(one) and json.exact(one) or json.encode(one)
end

return record
