--- Operators' orders in NATS: a bucket of their own beside the elections', BUCKET_orders, whose values do not end. The first
-- order makes it; where it is missing there are none. Choria's clients do not look there.
-- @internal crown.nats.orders

local base64 = require "crown.text.base64"
local core = require "crown.core"
local each = require "crown.link.each"
local json = require "crown.text.json"

local Orders = {}
Orders.__index = Orders

local FEW = 8 -- elections that are asked for one by one, without asking which of them have orders
local NO_STREAM, NO_MESSAGE, WRONG_REVISION = 10059, 10037, 10071
local DELETED = "KV-Operation: DEL\r\n"
local NO_BUCKET = "there is no bucket %s: its first candidate makes it"

--- What is published on the subject of evictions where orders have changed.
Orders.WORD = "orders"

--- Makes one.
-- @tparam Bucket bucket of crown.nats.bucket
-- @treturn Orders see crown.oracle.order_book
function Orders.new(bucket)
  local name = bucket.name .. "_orders"
  return setmetatable({ bucket = bucket, stream = "KV_" .. name, prefix = ("$KV.%s."):format(name) }, Orders)
end

-- @return JetStream's answer; or nil, message, code: its number where it refuses
local function request(self, subject, headers, data)
  local connection, problem, code = self.bucket.link:ready()
  if not connection then return nil, problem, code end
  local text
  text, problem, code = connection:request(subject, headers, data, self.bucket.timeout)
  if not text then return nil, problem, code end
  if type(text) == "number" then return { seq = text } end
  local answer = json.object(text)
  if not answer then return nil, "unexpected reply from JetStream", "protocol" end
  if not answer.error then return answer end
  return nil, connection:explained(tostring(answer.error.description)), answer.error.err_code or "store"
end

local function api(self, verb, body)
  return request(self, ("$JS.API.%s.%s"):format(verb, self.stream), nil, core.json.encode(body))
end

local function failed(problem, code) return nil, problem, type(code) == "number" and "store" or code end

-- @return `{ text =, version =, gone = }`; false where there is none; or nil, message, code
local function get(self, name)
  local answer, problem, code = api(self, "STREAM.MSG.GET", { last_by_subj = self.prefix .. name })
  if code == NO_MESSAGE then return false end
  if not answer then return nil, problem, code end
  local is_gone = (base64.decode(answer.message.hdrs or "") or ""):find(DELETED, 1, true) ~= nil
  return { text = base64.decode(answer.message.data or ""), version = answer.message.seq, gone = is_gone }
end

-- The elections that have, or had, orders.
local function ordered_ones(self, names)
  if names and #names <= FEW then return names end
  local info, problem, code = api(self, "STREAM.INFO", { subjects_filter = self.prefix .. ">" })
  if not info then return nil, problem, code end
  local wanted, some = {}, {}
  for _, name in ipairs(names or {}) do wanted[name] = true end
  for subject in pairs(type(info.state.subjects) == "table" and info.state.subjects or {}) do
    local name = subject:sub(#self.prefix + 1)
    if not names or wanted[name] then some[#some + 1] = name end
  end
  return some
end

--- As a store of orders has it.
function Orders:read(names)
  local found, values, lacks = {}, nil, nil
  for _, name in ipairs(names or {}) do found[name] = false end
  local some, problem, code = ordered_ones(self, names)
  if some then values, lacks = each(some, function(name) return get(self, name) end) end
  if lacks then problem, code = lacks[1], lacks[2] end
  if code == NO_STREAM then return found end
  if code then return failed(problem, code) end
  for i, name in ipairs(some) do
    local there = values[i]
    if there and not there.gone then found[name] = there end
  end
  return found
end

-- @return true; or nil, message, code
local function make(self)
  local bucket = self.bucket
  local info, problem, code = bucket:info()
  if code == bucket.MISSING then return nil, NO_BUCKET:format(bucket.name), "refused" end
  if not info then return nil, problem, code end
  local made
  made, problem, code = api(self, "STREAM.CREATE", { name = self.stream, subjects = { self.prefix .. ">" },
    max_msgs_per_subject = 1, discard = "new", storage = "file", num_replicas = info.replicas, retention = "limits",
    max_consumers = -1, max_msgs = -1, max_bytes = -1, max_msg_size = -1, allow_rollup_hdrs = true, deny_delete = true })
  return made and true, problem, code
end

-- The revision that a first order is written over.
-- @return it; false where something is ordered; or nil, message, code
local function free_revision(self, name)
  local there, problem, code = get(self, name)
  if code == NO_STREAM then
    there, problem, code = make(self)
    if not there then return nil, problem, code end
    return 0
  end
  if there == nil then return nil, problem, code end
  if not there then return 0 end
  return there.gone and there.version
end

--- As a store of orders has it.
function Orders:write(name, text, version)
  local revision, problem, code = version, nil, nil
  if not version then revision, problem, code = free_revision(self, name) end
  if not revision then return revision, problem, code end
  local headers = ("%sNats-Expected-Last-Subject-Sequence: %d\r\n"):format(text and "" or DELETED, revision)
  local written
  written, problem, code = request(self, self.prefix .. name, headers, text or "")
  if code == WRONG_REVISION then return false end
  if not written then return failed(problem, code) end
  local connection = self.bucket.link.connection
  if connection then connection:publish(("crown.evict.%s.%s"):format(self.bucket.name, name), nil, nil, Orders.WORD) end
  return true
end

return Orders
