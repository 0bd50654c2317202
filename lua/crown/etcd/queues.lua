--- The queues of candidates below a prefix, as `info` shows them.
-- @internal crown.etcd.queues

local base64 = require "crown.text.base64"
local keys = require "crown.etcd.keys"

local queues = {}

-- What leases still have, and were granted; nothing where this user may not ask. The elections of one runtime share one, which
-- is asked for once.
local function lease_reader(client)
  local known = {}
  return function(id)
    known[id] = known[id] or client:ask("/v3/lease/timetolive", { ID = id }) or {}
    return known[id].grantedTTL and tonumber(known[id].TTL or 0), tonumber(known[id].grantedTTL)
  end
end

-- The queues under the prefix, by their names: `{ name =, kvs = those with a lease, first =, endless = words or nil }`. What is
-- no queue has keys without leases only, of which none is a candidate's.
local function read(client, prefix)
  prefix = prefix ~= "" and prefix .. "/" or ""
  local body = prefix ~= "" and keys.range(prefix) or { key = base64.encode "\0", range_end = base64.encode "\0" }
  body.sort_order, body.sort_target = "ASCEND", "CREATE"
  local answer, problem, code = client:ask("/v3/kv/range", body)
  if not answer then return nil, problem, code end
  local by_name, found = {}, {}
  for _, kv in ipairs(answer.kvs or {}) do
    local key = base64.decode(kv.key):sub(#prefix + 1)
    local name = key:match "^(.*)/%x+$"
    if name then
      name = keys.name(name)
      local endless = keys.endless(kv)
      local queue = by_name[name] or { name = name, kvs = {}, first = kv, endless = endless }
      by_name[name] = queue
      if not endless then table.insert(queue.kvs, kv) end
      if not queue.listed and (not endless or keys.is_place(key)) then queue.listed, found[#found + 1] = true, queue end
    end
  end
  table.sort(found, function(a, b) return a.name < b.name end)
  return found
end

-- An election as its queue has it. Nobody leads behind a first key that no lease ends.
local function election_of(queue, read_lease)
  local one = { name = queue.name, epoch = tonumber(queue.first.create_revision), candidates = #queue.kvs > 0 and {} or nil }
  if not queue.endless then
    one.node = base64.decode(queue.first.value or "")
    one.expires_in, one.ttl = read_lease(queue.first.lease)
  end
  for i, kv in ipairs(queue.kvs) do one.candidates[i] = base64.decode(kv.value or "") end
  return one
end

--- Elections below a prefix.
-- @tparam Client client of crown.etcd.client
-- @string prefix "" for none
-- @treturn table an array of `{ name, node, epoch, expires_in, ttl, candidates }`, by name; or nil and a message
function queues.elections(client, prefix)
  local found, problem, code = read(client, prefix)
  if not found then return nil, problem, code end
  local elections, read_lease = {}, lease_reader(client)
  for i, queue in ipairs(found) do elections[i] = election_of(queue, read_lease) end
  return elections
end

--- Queues in which nobody can lead before somebody does something.
-- @tparam Client client
-- @string prefix "" for none
-- @treturn table an array of texts; none where the queues cannot be read
function queues.warnings(client, prefix)
  local warnings = {}
  for _, queue in ipairs(read(client, prefix) or {}) do
    if queue.endless then warnings[#warnings + 1] = ("'%s': %s"):format(queue.name, queue.endless) end
  end
  return warnings
end

return queues
