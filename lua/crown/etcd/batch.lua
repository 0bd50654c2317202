--- Questions of many elections in one transaction of etcd each.
-- @module crown.etcd.batch

local core = require "crown.core"
local promise = require "crown.core.promise"

local Batch = {}
Batch.__index = Batch

local WINDOW = 0.002 -- seconds that a question waits for company
local MOST = 100     -- in one transaction: etcd takes 128

--- Makes one.
-- @param client of crown.etcd.client
-- @treturn Batch
function Batch.new(client)
  return setmetatable({ client = client, waiting = {}, first = 1, last = 0 }, Batch)
end

local function settle(answer, asked)
  for i, one in ipairs(asked) do
    local there = answer.responses and answer.responses[i] and answer.responses[i].response_txn
    if there then
      one.answer:resolve(there.responses or {}, answer.header or {})
    else
      one.answer:resolve(nil, "etcd answered less than it was asked", "protocol")
    end
  end
end

local function ask(self, asked)
  local ops = {}
  for i, one in ipairs(asked) do ops[i] = { request_txn = { success = one.ops } } end
  local answer, problem, code = self.client:ask("/v3/kv/txn", { success = ops })
  if answer then return settle(answer, asked) end
  if code == "store" and #asked > 1 then -- what is refused to one of them is refused to all
    for _, one in ipairs(asked) do ask(self, { one }) end
    return
  end
  for _, one in ipairs(asked) do one.answer:resolve(nil, problem, code) end
end

local function take(self)
  local asked = {}
  while self.first <= self.last and #asked < MOST do
    local one = self.waiting[self.first]
    self.waiting[self.first], self.first = nil, self.first + 1
    if not one.wanted or one.wanted() then asked[#asked + 1] = one end
  end
  self.sending = #asked > 0
  return asked
end

-- One after the other: a connection each would be many when thousands start.
local function send(self)
  core.sleep(WINDOW)
  local asked = core.atomic(take, self)
  while #asked > 0 do
    ask(self, asked)
    asked = core.atomic(take, self)
  end
end

local function add(self, one)
  self.last = self.last + 1
  self.waiting[self.last] = one
  if self.sending then return end
  self.sending = true
  core.detach(send, self)
end

--- Asks; all operations count together, in their order.
-- @tparam table ops operations of a transaction, as the gateway has them
-- @tparam[opt] function wanted asked right before they are sent: whether anybody still waits
-- @treturn table the answers, one an operation; or nil
-- @treturn table the header of the transaction; or message, code
function Batch:ask(ops, wanted)
  local one = { ops = ops, wanted = wanted, answer = promise() }
  core.atomic(add, self, one)
  return one.answer:wait(math.huge)
end

return Batch
