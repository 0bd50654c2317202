--- Questions of many elections in one transaction of etcd each.
-- @internal crown.etcd.batch

local explain = require "crown.link.explain"
local Gathered = require "crown.link.gathered"

local Batch = {}
Batch.__index = Batch

local WINDOW = 0 -- seconds that a question waits for company
local LEASE_ENDED = "requested lease not found" -- and all that a session puts bears its one lease
local LESS = "its reply has fewer parts than the request: is that etcd itself, or does a proxy answer in its place?"
local MOST = 128 -- operations that etcd takes in one transaction

-- Each has as many answers as it has operations, in their order.
local function settle(client, answer, asked)
  local at, answers = 0, answer.responses or {}
  for _, one in ipairs(asked) do
    local own = {}
    for i = 1, #one.ops do own[i] = answers[at + i] end
    at = at + #one.ops
    if #own == #one.ops then
      one.answer:resolve(own, answer.header or {})
    else
      one.answer:resolve(nil, explain.named(LESS, "etcd", client:place()), "protocol")
    end
  end
end

local function ask(client, asked)
  local ops = {}
  for _, one in ipairs(asked) do
    for _, op in ipairs(one.ops) do ops[#ops + 1] = op end
  end
  local answer, problem, code = client:ask("/v3/kv/txn", { success = ops })
  if answer then return settle(client, answer, asked) end
  -- What is refused to one of them is refused to all; only where its lease has ended it would be refused to each alone, too.
  if code == "store" and #asked > 1 and not problem:find(LEASE_ENDED, 1, true) then
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
-- @tparam table ops operations of a transaction, as the gateway has them, no more than it takes
-- @tparam[opt] function wanted asked right before they are sent: whether anybody still waits
-- @treturn table the answers, one an operation; or nil
-- @treturn table the header of the transaction; or message, code
function Batch:ask(ops, wanted)
  return self.gathered:ask { ops = ops, weight = #ops, wanted = wanted }
end

return Batch
