--- Questions of many elections in one transaction of etcd each.
-- @module crown.etcd.batch

local Gathered = require "crown.link.gathered"

local Batch = {}
Batch.__index = Batch

local WINDOW = 0.002 -- seconds that a question waits for company
local MOST = 100     -- in one transaction: etcd takes 128

local function settle(answer, asked)
  for i, one in ipairs(asked) do
    local there = answer.responses and answer.responses[i] and answer.responses[i].response_txn
    if there then one.answer:resolve(there.responses or {}, answer.header or {}) end
  end
end

local function ask(client, asked)
  local ops = {}
  for i, one in ipairs(asked) do ops[i] = { request_txn = { success = one.ops } } end
  local answer, problem, code = client:ask("/v3/kv/txn", { success = ops })
  if answer then return settle(answer, asked) end
  if code == "store" and #asked > 1 then -- what is refused to one of them is refused to all
    for _, one in ipairs(asked) do ask(client, { one }) end
    return
  end
  for _, one in ipairs(asked) do one.answer:resolve(nil, problem, code) end
end

--- Makes one.
-- @param client of crown.etcd.client
-- @treturn Batch
function Batch.new(client)
  local gathered = Gathered.new { window = WINDOW, most = MOST, ask = function(lot) ask(client, lot) end }
  return setmetatable({ gathered = gathered }, Batch)
end

--- Asks; all operations count together, in their order.
-- @tparam table ops operations of a transaction, as the gateway has them
-- @tparam[opt] function wanted asked right before they are sent: whether anybody still waits
-- @treturn table the answers, one an operation; or nil
-- @treturn table the header of the transaction; or message, code
function Batch:ask(ops, wanted)
  return self.gathered:ask { ops = ops, wanted = wanted }
end

return Batch
