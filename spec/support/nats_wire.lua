--- An independent NATS client of the specs' own: the protocol by hand, one question at a time. And buckets made by it.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local kv = require "crown.oracles.nats_kv"
local Player = require "support.oracle_candidate"

local json = crown.json

local Wire = {}
Wire.__index = Wire

function Wire.open(number, connect)
  local self = setmetatable({ connection = assert(crown.tcp.connect("127.0.0.1", number)) }, Wire)
  assert(self.connection:read "*l")
  self.connection:write(("CONNECT %s\r\nSUB answers 1\r\nPING\r\n"):format(connect or '{"verbose":false,"headers":true}'))
  repeat until self.connection:read "*l" == "PONG\r"
  return self
end

-- @return the answer's JSON
function Wire:ask(subject, head, data)
  local block = head and "NATS/1.0\r\n" .. head .. "\r\n\r\n" or ""
  self.connection:write(block ~= "" and ("HPUB %s answers %d %d\r\n%s%s\r\n"):format(subject, #block, #block + #data, block, data)
    or ("PUB %s answers %d\r\n%s\r\n"):format(subject, #data, data))
  while true do
    local line = assert(self.connection:read "*l")
    local size = line:match "^MSG answers 1%s+(%d+)\r$"
    if size then return json.decode((self.connection:read(tonumber(size) + 2))) end
  end
end

-- Choria's campaigner: creates when there is no value, updates at the last revision.
function Wire:campaign(bucket, key, name, revision)
  local answer = self:ask(("$KV.%s.%s"):format(bucket, key), ("Nats-Expected-Last-Subject-Sequence: %d"):format(revision), name)
  return not answer.error and answer.seq or nil
end

--- Makes a bucket for elections.
-- @string name
-- @number seconds its TTL
-- @tparam[opt] table more of the stream's configuration; `verb = "UPDATE"` changes one that is there
function Wire:make_bucket(name, seconds, more)
  local config = { name = "KV_" .. name, subjects = { "$KV." .. name .. ".>" }, max_msgs_per_subject = 1, discard = "new",
    max_age = seconds * 1e9, storage = "file", num_replicas = 1, retention = "limits", max_consumers = -1, max_msgs = -1,
    max_bytes = -1, max_msg_size = -1, allow_rollup_hdrs = true }
  for key, value in pairs(more or {}) do config[key] = value end
  local verb = config.verb or "CREATE"
  config.verb = nil
  local answer = self:ask(("$JS.API.STREAM.%s.KV_%s"):format(verb, name), nil, json.encode(config))
  assert(not answer.error, answer.error and answer.error.description)
end

--- A bucket that has been there for a while, with a leader and a follower who knows it.
-- @tparam Nats server of support.nats
-- @string name of the bucket
-- @treturn Player the leader
-- @treturn Player the follower
-- @treturn number the leader's epoch
-- @treturn Wire
function Wire.settled(server, name)
  local wire = Wire.open(server.port)
  wire:make_bucket(name, 2)
  local function member(node)
    return Player.new(kv, { name = "x", node = node, url = ("%s/%s"):format(server.url, name), ttl = 2, timeout = 1,
      amnesia_wait = 0 })
  end
  local one, two = member "one", member "two"
  local epoch = one:win()[4]
  eventually(function() return two:claim()[1] == "denied" end)
  return one, two, epoch, wire
end

return Wire
