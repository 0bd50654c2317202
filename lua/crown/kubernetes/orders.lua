--- Operators' orders in Kubernetes: an annotation of the election's Lease, which client-go leaves as it is. So it takes no other
-- right than the election does. Its text is its version: a Lease has another one at each renewal.
-- @internal crown.kubernetes.orders

local each = require "crown.link.each"
local lease = require "crown.kubernetes.lease"
local paths = require "crown.kubernetes.paths"

local Orders = {}
Orders.__index = Orders

local TRIES = 5 -- where the leader renews meanwhile
local NO_LEASE = "there is no Lease '%s' in the namespace '%s': its first candidate makes it"

--- Makes one.
-- @tparam function ask `(method, path, body)` → as the client's
-- @string namespace
-- @tparam[opt] function list → all Leases of the namespace
-- @treturn Orders see crown.oracle.order_book
function Orders.new(ask, namespace, list)
  return setmetatable({ ask = ask, namespace = namespace, list = list }, Orders)
end

--- What a Lease says.
-- @tparam table|boolean found the object
-- @treturn table or false
function Orders.answer(found)
  local text = found and lease.read(found).orders
  return text and { text = text, version = text } or false
end

-- @return the Lease; false where there is none; or nil, message, code
local function get(self, name)
  local found, problem, code = self.ask("GET", paths.lease(self.namespace, name))
  if not found and code == "not_found" then return false end
  if not found then return nil, problem, code end
  if not lease.is(found) then return nil, lease.STRANGE, "store" end
  return found
end

local function read_all(self)
  local all, problem, code = self.list()
  if not all then return nil, problem, code end
  local found = {}
  for _, one in ipairs(all) do found[one.metadata.name] = Orders.answer(one) or nil end
  return found
end

--- As a store of orders has it.
function Orders:read(names)
  if not names then return read_all(self) end
  local leases, failed = each(names, function(name) return get(self, name) end)
  if failed then return nil, failed[1], failed[2] end
  local found = {}
  for i, name in ipairs(names) do found[name] = Orders.answer(leases[i]) end
  return found
end

--- As a store of orders has it.
function Orders:write(name, text, version)
  local problem, code
  for _ = 1, TRIES do
    local found
    found, problem, code = get(self, name)
    if found == nil then return nil, problem, code end
    if not found then return nil, NO_LEASE:format(name, self.namespace), "refused" end
    local stands = Orders.answer(found)
    if (stands and stands.version) ~= version then return false end
    local made
    made, problem, code = self.ask("PUT", paths.lease(self.namespace, name), lease.ordering(found, text))
    if made then return true end
    if code ~= "conflict" then return nil, problem, code end
  end
  return nil, problem, "store"
end

return Orders
