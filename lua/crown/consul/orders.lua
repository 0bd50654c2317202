--- Operators' orders in Consul: the key PREFIX/NAME/orders, beside the election's lock.
-- @internal crown.consul.orders

local base64 = require "crown.text.base64"
local lock = require "crown.consul.lock"
local place = require "crown.consul.place"

local Orders = {}
Orders.__index = Orders

--- Makes one.
-- @tparam Client client
-- @number timeout seconds for each question
-- @treturn Orders see crown.oracle.order_book
function Orders.new(client, timeout)
  return setmetatable({ client = client, timeout = timeout }, Orders)
end

--- What stands there.
-- @tparam[opt] table found as crown.consul.lock reads it
-- @treturn table or false
function Orders.answer(found)
  return found and found.text ~= "" and { text = found.text, version = found.index } or false
end

--- As a store of orders has it.
function Orders:read(names)
  local client = self.client
  local only = names and #names == 1 and lock.key(lock.base(client.prefix, names[1]), "orders")
  local answer, problem, code = client:ask({ path = place.path(only or client.prefix) .. "?recurse&consistent" }, self.timeout)
  if not answer then return nil, problem, code end
  local list, all = lock.entries(answer), {}
  if not list then return client:strange() end
  for _, entry in ipairs(list) do
    local read = lock.read(entry)
    if not read then return client:strange() end
    local name, what = lock.of(tostring(entry.Key):sub(#client.prefix + 1))
    if what == "orders" and name then all[name] = Orders.answer(read) or nil end
  end
  if not names then return all end
  local found = {}
  for _, name in ipairs(names) do found[name] = all[name] or false end
  return found
end

--- As a store of orders has it.
function Orders:write(name, text, version)
  local key = lock.key(lock.base(self.client.prefix, name), "orders")
  local operation = text and { Verb = "cas", Key = key, Value = base64.encode(text), Index = version or 0 }
    or { Verb = "delete-cas", Key = key, Index = version or 0 }
  local done, problem, code = self.client:write({ operation }, self.timeout)
  if done == nil then return nil, problem, code end
  return done ~= false
end

return Orders
