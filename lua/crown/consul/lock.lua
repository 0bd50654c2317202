--- An election in the format of `consul lock`: the key PREFIX/NAME/.lock, which the session of who leads holds. Beside it are
-- keys of ours, which `consul lock` does not look at.
-- @internal crown.consul.lock

local base64 = require "crown.text.base64"
local json = require "crown.text.json"
local place = require "crown.consul.place"

local lock = {}

--- The flags by which clients of Consul know a lock, as text: more digits than a number of Lua has.
lock.FLAGS = "3304740253564472344"

local ABOUT = tonumber(lock.FLAGS)
local KEY, ORDERS, EVICTED = ".lock", "orders,", "evicted,"
local KEYS = { lock = KEY, orders = ORDERS, evicted = EVICTED }

--- The key below which an election's keys are.
-- @string prefix with its "/"
-- @string name of the election
-- @treturn string with its "/"
function lock.base(prefix, name) return prefix .. place.key(name) .. "/" end

--- One of an election's keys.
-- @string base
-- @string what "lock", "orders", "evicted"
-- @treturn string
function lock.key(base, what) return base .. KEYS[what] end

--- The election that a key belongs to.
-- @string key without the prefix
-- @treturn string its name; nil where it is no election's
-- @treturn string "lock", "orders" or "evicted"
function lock.of(key)
  local first, rest = key:match "^([^/]+)/([^/]+)$"
  for what, one in pairs(KEYS) do
    if rest == one then return place.name(first), what end
  end
end

--- What a leader writes into the key.
-- @string node
-- @string token of the candidate
-- @treturn string
function lock.value(node, token) return json.encode { node = node, token = token } end

--- Reads an entry of Consul's.
-- @tparam table entry
-- @treturn table `{ text =, index =, session = or nil, node =, token =, is_foreign = }`; or nil: it is none
function lock.read(entry)
  local index = type(entry) == "table" and tonumber(entry.ModifyIndex)
  if not index then return nil end
  local text = type(entry.Value) == "string" and base64.decode(entry.Value) or ""
  local said = json.object(text) or {}
  return { text = text, index = index, session = type(entry.Session) == "string" and entry.Session ~= "" and entry.Session or nil,
    node = type(said.node) == "string" and said.node or nil, token = said.token, is_foreign = entry.Flags ~= ABOUT }
end

--- The entries of an answer. A page of a proxy with status 200 is not an empty place.
-- @tparam table answer of crown.consul.client
-- @treturn table an array; or nil: it is no answer of Consul's
function lock.entries(answer)
  if answer.status ~= 200 then return {} end
  return json.list(answer.body)
end

--- Reads an election's keys.
-- @tparam[opt] table list of entries
-- @string base
-- @treturn table by "lock", "orders" and "evicted", those that are there; or nil: these are no entries
function lock.all(list, base)
  if not list then return nil end
  local found = {}
  for _, entry in ipairs(list) do
    local read = lock.read(entry)
    if not read or type(entry.Key) ~= "string" then return nil end
    for what, rest in pairs(KEYS) do
      if entry.Key == base .. rest then found[what] = read end
    end
  end
  return found
end

--- By what a leader knows that it is asked to go.
-- @tparam table held as lock.read gives it
-- @treturn string
function lock.wish(held) return held.session end

return lock
