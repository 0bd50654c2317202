--- Whether etcd still has all that it had: after it was emptied, restored from a snapshot, or started with older files, leases
-- may be missing that somebody acts on.
--
-- A key below the prefix names the memory. It is bound to a lease that nobody keeps alive and that would last for decades:
-- what has gone of it says for how long the memory has been what it is, by etcd's own clock, which no wall clock moves. (Go
-- counts what ends after 2157 by the wall clock. So a lease of centuries would not do.)
-- etcd counts each lease anew whenever a member begins to lead: so after a restart or a restore too, and the key that a
-- snapshot brings back is as young as the restore. A memory is believed when it is as old as the longest lease that anybody
-- may still act on. Its text has the longest TTL in use, in seconds, and, where all had been lost when it was written, how
-- old it has to be on that account.
-- @internal crown.etcd.memory

local base64 = require "crown.text.base64"
local core = require "crown.core"
local elections = require "crown.core.election"
local keys = require "crown.etcd.keys"
local printable = require "crown.text.printable"

local Memory = {}
Memory.__index = Memory

local FOREVER = 1000000000 -- seconds
local LONG = 900000000 -- seconds: who has a lease of less than that did not begin a memory
local TRIES = 3
local LOST = "etcd lost its memory while it was looked at"
local MOST = 86400 -- seconds: no TTL is longer, whatever somebody has written there
local SLACK = 1.5 -- seconds: etcd tells whole ones, and when it counts a lease anew it adds a second or more

-- What a runtime knows of each, by its `trust`: `lease` and `age` as they were last; `ours` and `born`: the one
-- that it began itself, and when.
local known = setmetatable({}, { __mode = "k" })

--- What is said where answers are of several terms of etcd's leader.
Memory.CHANGED = "etcd changed its leader while it was asked"

--- What is said where an answer is about another lease than the question.
Memory.OTHER = "etcd answered what it was not asked"

--- The key of the memory.
-- @string prefix of the elections, "" for none
-- @treturn string
function Memory.key(prefix)
  return prefix ~= "" and prefix .. "/.age" or "crown.age"
end

--- Makes one; nothing is asked yet.
-- @tparam table options `client`; `prefix` ("" for none); `trust`; `new_lease()` → a lease's number; `floor` seconds to wait
-- for where all was lost; `trust_empty`: whether a memory that this runtime itself begins is believed
-- @treturn Memory
function Memory.new(options)
  known[options.trust] = known[options.trust] or {}
  return setmetatable({ client = options.client, trust = options.trust, known = known[options.trust],
    new_lease = options.new_lease,
    floor = options.floor, trust_empty = options.trust_empty, prefix = options.prefix,
    key = base64.encode(Memory.key(options.prefix)) }, Memory)
end

local function text(longest, floor)
  local words = floor > 0 and (" %d"):format(math.ceil(floor)) or ""
  return base64.encode(("%d%s"):format(math.ceil(longest), words))
end

local function read(kv)
  local longest, floor = base64.decode(kv.value or ""):match "^(%d+) ?(%d*)$"
  return math.min(MOST, tonumber(longest) or 0), math.min(MOST, tonumber(floor) or 0)
end

-- Only what nobody has made, or changed, meanwhile is written. @return whether it was; or nil, message, code: also where the key
-- has gone
local function swap(self, comparison, put)
  comparison.key, comparison.result, put.key = self.key, "EQUAL", self.key
  local answer, problem, code = self.client:ask("/v3/kv/txn", { compare = { comparison }, success = { { request_put = put } },
    failure = { { request_range = { key = self.key } } } })
  if not answer then return nil, problem, code end
  if not answer.succeeded and not answer.responses[1].response_range.kvs then return nil, LOST, "store" end
  return answer.succeeded == true
end

-- For how long nobody new leads where a key that no runtime has written is replaced: its value may be the longest TTL of others.
local function waited_for(kv)
  local longest = read(kv)
  return ("before amnesia_wait has passed%s"):format(longest > 0 and (", and the %d s of its value: where no candidate had a ttl "
    .. "as long, stop all candidates and delete the key"):format(longest) or "")
end

-- What is told of such a key.
local function strange(self, kv, trouble)
  elections.emit("oracle.error", { store = "etcd", error = ("%s has %s, so it does not say how old etcd's memory is: it was "
    .. "written by hand, or copied by etcdctl make-mirror. It is replaced, and nobody new leads %s")
    :format(base64.decode(self.key), trouble, waited_for(kv)) })
end

local PAGE = "100" -- keys: where there is no memory there is hardly another key

-- Where the prefix is an election of another URL, a key of ours would stand in its queue for as long as a memory lasts.
-- @return true; or nil, message, code
local function is_no_election(self)
  if self.prefix == "" then return true end
  local range = keys.range(self.prefix .. "/")
  local answer, problem, code = self.client:ask("/v3/kv/range",
    { key = range.key, range_end = range.range_end, keys_only = true, limit = PAGE })
  if not answer then return nil, problem, code end
  for _, kv in ipairs(answer.kvs or {}) do
    if base64.decode(kv.key):sub(#self.prefix + 2):find "^%x+$" then
      return nil, ("%s is an election of another URL: use another prefix"):format(printable(self.prefix)), "usage"
    end
  end
  return true
end

-- Begins a memory where there is none, or where its key is none.
-- @tparam[opt] table kv the key that is to be replaced
-- @string[opt] trouble what is wrong with it
-- @return true; or nil, message, code
local function begin(self, kv, trouble)
  local apart, why, fault = is_no_election(self)
  if not apart then return nil, why, fault end
  local lease, first = self.new_lease(), self.trust_empty and not self.known.lease and not kv
  local longest = kv and read(kv) or 0
  local comparison = kv and { target = "MOD", mod_revision = kv.mod_revision } or { target = "CREATE", create_revision = "0" }
  local granted, problem, code = self.client:ask("/v3/lease/grant", { TTL = ("%d"):format(FOREVER), ID = lease })
  if not granted then return nil, problem, code end
  local written
  written, problem, code = swap(self, comparison,
    { value = text(math.max(longest, self.trust.longest), first and 0 or self.floor), lease = lease })
  if not written then self.client:ask("/v3/lease/revoke", { ID = lease }) end
  if written == nil then return nil, problem, code end
  if written and kv then strange(self, kv, trouble) end
  if written and first then self.known.ours, self.known.born = lease, core.now() end
  return true
end

-- Writes down a longer TTL, and that nobody can have been forgotten any more.
local function bring_up_to_date(self, kv, age)
  local longest, floor = read(kv)
  local rest = age >= floor and 0 or floor
  if longest >= self.trust.longest and rest == floor then return true end
  local written, problem, code = swap(self, { target = "MOD", mod_revision = kv.mod_revision },
    { value = text(math.max(longest, self.trust.longest), rest), ignore_lease = true })
  if written == nil then return nil, problem, code end
  return true -- who changed it meanwhile had something to write as well: the next look is here again
end

-- @return whether etcd has begun to count anew since the last look
local function judge(self, kv, age)
  local younger = self.known.lease ~= kv.lease or age < self.known.age - SLACK
  if self.known.lease and self.known.lease ~= kv.lease then self.trust:doubt() end
  self.known.lease, self.known.age = kv.lease, age
  local longest, floor = read(kv)
  self.trust:lasts(longest)
  local was_empty = kv.lease == self.known.ours and age >= core.now() - self.known.born - SLACK -- as it had to be
  if not was_empty then
    self.trust:doubt(age)
    self.trust:lost(floor - age)
  end
  return younger
end

-- @return the key, or false; and the header of the answer; or nil, message, code
local function look_up(self)
  local answer, problem, code = self.client:ask("/v3/kv/range", { key = self.key })
  if not answer then return nil, problem, code end
  return answer.kvs and answer.kvs[1] or false, answer.header
end

-- How old a memory is whose lease has so many seconds left.
local function age_by(left) return FOREVER - left - 1 end

-- How old the memory is: asked before what a majority answers, in one term of etcd's leader, so that no deposed one said it.
local function age_of(self, lease)
  local asked, problem, code = self.client:ask("/v3/lease/timetolive", { ID = lease })
  if not asked then return nil, problem, code end
  if asked.ID ~= lease then return nil, Memory.OTHER, "protocol" end
  local kv, header, why = look_up(self)
  if kv == nil then return nil, header, why end
  local left = tonumber(asked.TTL or 0)
  if not kv or kv.lease ~= lease or left <= 0 then return false end
  if tonumber(asked.grantedTTL or 0) < LONG then
    local begun
    begun, problem, code = begin(self, kv, "a lease of somebody else")
    if not begun then return nil, problem, code end
    return false
  end
  if asked.header.raft_term ~= header.raft_term or asked.header.cluster_id ~= header.cluster_id then
    return nil, Memory.CHANGED, "store"
  end
  return age_by(left), kv, header
end

local function has_lease(kv) return kv.lease and kv.lease ~= "0" end

--- What is wrong with the key of the memory, for who only looks.
-- @tparam Client client
-- @string prefix of the elections, "" for none
-- @treturn string words; nil where nothing is, or it cannot be read
-- @treturn number seconds for which nobody new leads, 0 where that is not known
function Memory.trouble(client, prefix)
  local key = Memory.key(prefix)
  local answer = client:ask("/v3/kv/range", { key = base64.encode(key) })
  local kv = answer and answer.kvs and answer.kvs[1]
  if not kv then return nil, 0 end
  local lease = has_lease(kv) and client:ask("/v3/lease/timetolive", { ID = kv.lease })
  if has_lease(kv) and not (lease and tonumber(lease.grantedTTL or 0) < LONG) then
    return nil, lease and math.max(0, math.max(read(kv)) - age_by(tonumber(lease.TTL or 0))) or 0
  end
  return ("%s has %s: the next candidate replaces it, and nobody new leads %s"):format(key,
    lease and "a lease of somebody else" or "no lease", waited_for(kv)), 0
end

-- @return the lease of the key, which is made where it is missing; or nil, message, code
local function lease_of(self)
  local kv, problem, code = look_up(self)
  if kv == false or kv and not has_lease(kv) then
    local begun
    begun, problem, code = begin(self, kv or nil, "no lease")
    if not begun then return nil, problem, code end
    kv, problem, code = look_up(self)
  end
  if kv and has_lease(kv) then return kv.lease end
  if kv == nil then return nil, problem, code end
  return nil, LOST, "store"
end

--- Looks whether what answers is the memory that it was, and tells `trust`. It is to be done before a grant counts.
-- @treturn table the header of the answer; or nil, message, code
-- @treturn boolean whether etcd was started anew since the last look, perhaps with older data, or another member leads it
function Memory:look()
  local lease = self.known.lease
  for _ = 1, TRIES do
    local age, kv, header = false, nil, nil
    if lease then age, kv, header = age_of(self, lease) end
    if age == nil then return nil, kv, header end
    if age then
      local younger = judge(self, kv, age)
      local fine, problem, code = bring_up_to_date(self, kv, age)
      if not fine then return nil, problem, code end
      return header, younger
    end
    local problem, code
    lease, problem, code = lease_of(self)
    if not lease then return nil, problem, code end
  end
  return nil, LOST, "store"
end

return Memory
