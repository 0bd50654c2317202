--- Names that are registered once among all members of a registry: `require "crown.registry"`.
-- @module crown.registry

local core = require "crown.core"
local elector = require "crown.registry.elector"
local elect = require "crown.elect"
local messages = require "crown.registry.messages"
local Node = require "crown.registry.node"
local schema = require "crown.check.schema"
local usage = require "crown.check.usage"
local json = require "crown.text.json"

local decode = core.json.decode

local registry = {}

local DEFAULT_TIMEOUT, TIMEOUT = 5, { least = 0 } -- seconds, and what may be given
local OPTIONS = { "timeout" }
local ROWS_AT_ONCE = 1000 -- that are looked at before others get their turn

--- A registry, as this node sees it.
-- @type Registry
local Registry = {}
Registry.__index = Registry

local TOKEN_SHOWN = 8 -- digits of a join's token: enough to tell two joins apart
local ELECTION = { name = true, child = true, follower_child = true, handlers = true, stop_timeout = true, retry = true,
  claim_delay = true, cool_down = true }

--- Takes part in a registry: joins it, and leads it when chosen. Its election is `self.election`.
-- @tparam table options `name`; `url`, `listen`, `secret` and what else the oracle takes (docs/registry.md); `child`,
-- `handlers` and the other options of an election
-- @treturn Registry
-- @raise a usage error that names the option
function registry.open(options)
  if type(options) ~= "table" then usage.error("crown.registry.open: a table of options expected, not a %s", type(options)) end
  local election, own = {}, { "registry" }
  for key, value in pairs(options) do
    if ELECTION[key] then election[key] = value else own[key] = value end
  end
  election.oracle = own
  local elected = elect(election)
  local self = registry.of(options.name)
  if self then self.election = elected end
  return self
end

--- The registry of an election of this runtime whose oracle is "registry".
-- @string name the election's
-- @treturn Registry or nil and a message
function registry.of(name)
  local node = Node.of(name)
  if not node then return nil, ("this runtime takes no part in a registry '%s'"):format(tostring(name)) end
  return setmetatable({ name = name, node = node }, Registry)
end

local function check_name(name)
  if type(name) ~= "string" or name == "" then error("a name must be a string that is not empty", 3) end
  if not messages.is_name(name) then
    error(("a name has at most %d bytes, and no control characters"):format(messages.NAME_MOST), 3)
  end
end

-- Raises what is wrong where the caller's caller is.
local function timeout_of(options)
  if options == nil then return DEFAULT_TIMEOUT end
  if type(options) ~= "table" then error(("options must be a table, not a %s"):format(type(options)), 3) end
  for key in pairs(options) do
    if key ~= "timeout" then error(("unknown option '%s'%s"):format(tostring(key), usage.suggest(tostring(key), OPTIONS)), 3) end
  end
  local timeout = options.timeout
  if timeout == nil then return DEFAULT_TIMEOUT end
  if type(timeout) ~= "number" then error(("timeout must be a number, not a %s"):format(type(timeout)), 3) end
  local problem = schema.range_problem(timeout, TIMEOUT)
  if problem then error("timeout " .. problem, 3) end
  return timeout
end

local function holder(other)
  return { owner = elector.node_of(other.owner), value = other.value and decode(other.value) }
end

--- Registers a name for this node. It stays until it is unregistered, or until this runtime is a member no more; a runtime
-- that was cut off registers its names again when it is back.
-- @string name at most 255 bytes
-- @param[opt] value what JSON can hold, at most 64 KiB; true. Numbers arrive exactly
-- @tparam[opt] table options `timeout` seconds (5)
-- @return true once it is held by as many members as `replicas` says; false and `{ owner = node, value = }` where another
-- has it; or nil, message, code ("timeout", "uncertain", "full")
function Registry:register(name, value, options)
  check_name(name)
  if value == nil then value = true end
  local fits, text = pcall(json.exact, value)
  if not fits then error("a value must fit JSON: " .. text:gsub("^Cannot serialise,? ", ""), 2) end
  if not messages.is_value(text) then
    error(("a value has at most %d bytes as JSON, which can be read again"):format(messages.VALUE_MOST), 2)
  end
  local fine, other, code = self.node:write({ what = "register", name = name, value = text }, timeout_of(options))
  if fine == false then return false, holder(other) end
  return fine, other, code
end

--- Gives a name of this node up.
-- @string name
-- @tparam[opt] table options `timeout` seconds (5)
-- @return true, also where nobody had it; false and `{ owner = node, value = }` where it is another's; or nil, message, code
function Registry:unregister(name, options)
  check_name(name)
  local fine, other, code = self.node:write({ what = "unregister", name = name }, timeout_of(options))
  if fine == false then return false, holder(other) end
  return fine, other, code
end

local function member_of(self)
  return self.node.member
end

--- Who has a name, as far as this node knows: it asks nobody.
-- @string name
-- @return its value and its owner's node; or nil
function Registry:whereis(name)
  if type(name) ~= "string" then error(("a name must be a string, not a %s"):format(type(name)), 2) end
  local member = self.node.member
  if not member then return nil end
  local value, _, _, node = member.replica.names:find(name)
  if not value then return nil end
  return decode(value), node
end

-- Some rows of a walk, from its place on; returns where it goes on.
local function look(replica, names, place, prefix, found)
  if names ~= replica.names then return nil end -- all the names have become others
  local stop = math.max(0, place - ROWS_AT_ONCE)
  for i = math.min(place, names:places()), stop + 1, -1 do
    local name, value, owner, _, gone = names:at(i)
    if not gone and name:sub(1, #prefix) == prefix then found[name] = { value, owner } end
  end
  return stop
end

local function walk(replica, prefix)
  local names, found = replica.names, {}
  local place = names:places()
  while place and place > 0 do place = core.atomic(look, replica, names, place, prefix, found) end
  if not place then return walk(replica, prefix) end
  return found
end

--- All names, as far as this node knows.
-- @string[opt] prefix those that begin with it
-- @treturn table by name: `{ value =, owner = node }`
function Registry:names(prefix)
  if prefix ~= nil and type(prefix) ~= "string" then error(("prefix must be a string, not a %s"):format(type(prefix)), 2) end
  local found, member = {}, member_of(self)
  for name, entry in pairs(member and walk(member.replica, prefix or "") or {}) do
    found[name] = { value = decode(entry[1]), owner = elector.node_of(entry[2]) }
  end
  return found
end

--- Tells of each name that changes at this node from now on: what it has become, not each step on the way, and possibly more
-- than once. A leader's own copy may be ahead of what it has acknowledged.
-- @tparam function fn `fn(name, value, owner)` in a task, one after the other; without value and owner where nobody has it
-- @treturn Watch with `:cancel()`; made inside a term, it ends with it
function Registry:on_change(fn)
  if type(fn) ~= "function" then error("on_change: a function expected", 2) end
  local watch, problem = self.node:watch(fn)
  if not watch then error("on_change: " .. problem, 2) end
  return watch
end

--- The members, as this node last heard; also while the registry changes over.
-- @treturn table an array of `{ id, node, address, joined_at (seconds of the store's clock), joined_seconds (whole ones),
-- join_token (its first 8 digits), leader }`, by id
function Registry:members()
  local member = member_of(self)
  local view, found = member and member.view, {}
  for id, one in pairs(view and view.members or {}) do
    found[#found + 1] = { id = id, node = elector.node_of(id), address = one.address, joined_at = one.joined_at,
      joined_seconds = math.floor(one.joined_at), join_token = one.token:sub(1, TOKEN_SHOWN),
      leader = id == view.leader }
  end
  table.sort(found, function(a, b) return a.id < b.id end)
  return found
end

--- Who leads, as this node last heard; also while the registry changes over.
-- @treturn string the leader's node, or nil
-- @treturn number the epoch
function Registry:leader()
  local member = member_of(self)
  local view = member and member.view
  if not view or not view.leader then return nil end
  return elector.node_of(view.leader), view.epoch
end

return registry
