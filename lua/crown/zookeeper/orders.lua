--- Operators' orders in ZooKeeper: a node for each election that ever had some, below PATH/@orders, where no recipe looks. A node
-- stays, and is empty where nothing is ordered, so that its versions only rise. Each change also writes PATH/@orders itself: one
-- watch of that tells a session of all its elections.
-- @internal crown.zookeeper.orders

local each = require "crown.link.each"
local memory = require "crown.zookeeper.memory"
local recipe = require "crown.zookeeper.recipe"
local url = require "crown.text.url"
local wire = require "crown.zookeeper.wire"

local Orders = {}
Orders.__index = Orders

--- The node of all orders.
-- @string path of the URL
-- @treturn string
function Orders.node(path) return path .. "/@orders" end

--- Makes one.
-- @tparam function ready → a connection and the seconds for one question; or nil, message, code
-- @string path of the URL
-- @string acl of nodes that are made
-- @tparam[opt] function watches `(connection)` → whether that is yet to tell of changes; without it nobody is told
-- @treturn Orders see crown.oracle.order_book
function Orders.new(ready, path, acl, watches)
  return setmetatable({ ready = ready, all = Orders.node(path), acl = acl, watches = watches }, Orders)
end

-- What a store of orders says of a failure.
local function failed(problem, code) return nil, problem, type(code) == "number" and "store" or code end

local function answer_of(found)
  return found and found.data ~= "" and { text = found.data, version = found.stat.version } or false
end

-- @return what stands there; false where there is no such node; or nil, message, code
local function get(self, ask, name)
  local found, problem, code = ask("get", recipe.base(self.all, name), false)
  if code == wire.NO_NODE then return false end
  return found, problem, code
end

-- Whether there are any orders at all; from now on the session is told of changes.
local function is_there(self, ask, connection)
  local watched = self.watches ~= nil and self.watches(connection)
  local found, problem, code = ask("exists", self.all, watched)
  if code == wire.NO_NODE then return false end
  return found and true, problem, code
end

local function asker(connection, timeout)
  return function(...) return connection:ask(timeout, ...) end
end

-- The elections of which it is worth while to ask.
local function ordered_ones(self, ask, names)
  if names and #names == 1 then return names end
  local children, problem, code = ask("children", self.all)
  if not children then return nil, problem, code end
  local wanted, some = {}, {}
  for _, name in ipairs(names or {}) do wanted[name] = true end
  for _, escaped in ipairs(children) do
    local name = url.decode(escaped)
    if not names or wanted[name] then some[#some + 1] = name end
  end
  return some
end

--- As a store of orders has it.
function Orders:read(names)
  local connection, timeout, why = self.ready()
  if not connection then return nil, timeout, why end
  local ask, found = asker(connection, timeout), {}
  for _, name in ipairs(names or {}) do found[name] = false end
  local there, problem, code = is_there(self, ask, connection)
  if there == nil then return failed(problem, code) end
  local some = {}
  if there then some, problem, code = ordered_ones(self, ask, names) end
  if not some then return failed(problem, code) end
  local nodes, lacks = each(some, function(name) return get(self, ask, name) end)
  if lacks then return failed(lacks[1], lacks[2]) end
  for i, name in ipairs(some) do
    local answer = answer_of(nodes[i])
    if answer or names then found[name] = answer end
  end
  return found
end

-- Writes over a node that is empty, or makes it.
-- @return true; false where something is ordered; or nil, message, code
local function begin(self, ask, name, text, connection, timeout)
  local there, problem, code = get(self, ask, name)
  if there == nil then return nil, problem, code end
  local node = recipe.base(self.all, name)
  if there then
    if there.data ~= "" then return false end
    return ask("set", node, text, there.stat.version)
  end
  local fine
  fine, problem, code = memory.make_path(connection, timeout, self.all, self.acl, "create", wire.PERSISTENT)
  if not fine then return nil, problem, code end
  return ask("create", node, text, self.acl, wire.PERSISTENT)
end

--- As a store of orders has it.
function Orders:write(name, text, version)
  local connection, timeout, why = self.ready()
  if not connection then return nil, timeout, why end
  local ask = asker(connection, timeout)
  local written, problem, code
  if version then
    written, problem, code = ask("set", recipe.base(self.all, name), text or "", version)
  else
    written, problem, code = begin(self, ask, name, text or "", connection, timeout)
  end
  if code == wire.BAD_VERSION or code == wire.NO_NODE or code == wire.EXISTS then return false end
  if not written then return written, problem, type(code) == "number" and "store" or code end
  ask("set", self.all, "", -1)
  return true
end

return Orders
