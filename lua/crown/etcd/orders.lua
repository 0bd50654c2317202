--- Operators' orders in etcd: a key for each election, beside the keys of its candidates, which clients of etcd's own election do
-- not look at.
-- @internal crown.etcd.orders

local base64 = require "crown.text.base64"
local keys = require "crown.etcd.keys"

local Orders = {}
Orders.__index = Orders

local MARK = ".orders"
local MOST = 128 -- operations that etcd takes in one transaction

--- Makes one.
-- @tparam Client client of crown.etcd.client
-- @string prefix of the elections, "" for none
-- @treturn Orders see crown.oracle.order_book
function Orders.new(client, prefix)
  return setmetatable({ client = client, prefix = prefix }, Orders)
end

--- The key of an election's orders.
-- @string base the election's name below the prefix
-- @treturn string encoded
function Orders.key(base) return base64.encode(base .. MARK) end

--- What an answer to a range over that key says.
-- @tparam table range
-- @treturn table or false
function Orders.answer(range)
  local kv = range and range.kvs and range.kvs[1]
  return kv and { text = base64.decode(kv.value or ""), version = kv.mod_revision } or false
end

local function key_of(self, name) return Orders.key(keys.base(self.prefix, name)) end

local function read_all(self)
  local prefix = self.prefix ~= "" and self.prefix .. "/" or ""
  local range = prefix ~= "" and keys.range(prefix) or { key = base64.encode "\0", range_end = base64.encode "\0" }
  local answer, problem, code = self.client:ask("/v3/kv/range", range)
  if not answer then return nil, problem, code end
  local found = {}
  for _, kv in ipairs(answer.kvs or {}) do
    local name = base64.decode(kv.key):sub(#prefix + 1):match "^([^/]+)%.orders$"
    if name then found[keys.name(name)] = Orders.answer { kvs = { kv } } end
  end
  return found
end

local function read_some(self, names, first, last, found)
  local ops = {}
  for i = first, last do ops[#ops + 1] = { request_range = { key = key_of(self, names[i]) } } end
  local answer, problem, code = self.client:ask("/v3/kv/txn", { success = ops })
  if not answer then return nil, problem, code end
  for i = first, last do
    local one = (answer.responses or {})[i - first + 1]
    found[names[i]] = Orders.answer(one and one.response_range)
  end
  return found
end

--- As a store of orders has it.
function Orders:read(names)
  if not names then return read_all(self) end
  local found = {}
  for first = 1, #names, MOST do
    local fine, problem, code = read_some(self, names, first, math.min(#names, first + MOST - 1), found)
    if not fine then return nil, problem, code end
  end
  return found
end

--- As a store of orders has it.
function Orders:write(name, text, version)
  local key = key_of(self, name)
  local comparison = version and { target = "MOD", mod_revision = version } or { target = "CREATE", create_revision = "0" }
  comparison.key, comparison.result = key, "EQUAL"
  local change = text and { request_put = { key = key, value = base64.encode(text) } } or { request_delete_range = { key = key } }
  local answer, problem, code = self.client:ask("/v3/kv/txn", { compare = { comparison }, success = { change } })
  if not answer then return nil, problem, code end
  return answer.succeeded == true
end

return Orders
