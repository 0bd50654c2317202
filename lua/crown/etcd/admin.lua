--- What the verbs `info` and `check` ask of an etcd, besides its elections.
-- @internal crown.etcd.admin

local base64 = require "crown.text.base64"
local figure = require "crown.check.figure"
local keys = require "crown.etcd.keys"
local Memory = require "crown.etcd.memory"

local admin = {}

local DENIED = "permission denied"

local function reads(client, range)
  return client:ask("/v3/kv/range", { key = range.key, range_end = range.range_end, keys_only = true, limit = "1" })
end

-- A transaction that never succeeds, since no key was made at a revision below 0: etcd looks at the rights, and writes nothing.
local function writes(client, key)
  return client:ask("/v3/kv/txn", { compare = { { key = key, target = "CREATE", result = "LESS", create_revision = "0" } },
    success = { { request_put = { key = key, value = "" } } } })
end

--- What a candidate may not do.
-- @tparam Client client of crown.etcd.client
-- @tparam table parsed its URL: `prefix`, `user`
-- @string base of the election: see crown.etcd.keys
-- @treturn table an array of texts; or nil, message, code where there was no answer
function admin.lacks(client, parsed, base)
  local memory, lacks = Memory.key(parsed.prefix), {}
  local all = parsed.prefix ~= "" and keys.range(parsed.prefix .. "/") or keys.election(base)
  local questions = {
    { reads, { key = base64.encode(memory) }, "read " .. memory }, { writes, base64.encode(memory), "write " .. memory },
    { reads, all, ("read %s/"):format(parsed.prefix ~= "" and parsed.prefix or base) },
    { writes, base64.encode(base .. "/check"), ("write %s/"):format(base) },
  }
  for _, one in ipairs(questions) do
    local answer, problem, code = one[1](client, one[2])
    if not answer and code ~= "store" then return nil, problem, code end
    if not answer and not problem:find(DENIED, 1, true) then return { problem } end -- who is not let in hears it each time
    if not answer then lacks[#lacks + 1] = ("%s may not %s"):format(parsed.user or "this candidate", one[3]) end
  end
  return lacks
end

--- Whether etcd lets leases be as short as a candidate's: its election time-out makes a least. A lease is granted and given back
-- for that, on which nothing depends.
-- @tparam Client client
-- @number ttl in seconds, as the user gave it; etcd knows whole ones only
-- @treturn string words; nil where it does, or does not say
function admin.least(client, ttl)
  local lease, whole = keys.new_lease(), math.ceil(ttl)
  local answer = client:ask("/v3/lease/grant", { TTL = ("%d"):format(whole), ID = lease })
  if not answer then return nil end
  client:ask("/v3/lease/revoke", { ID = lease })
  local lasts = tonumber(answer.TTL) or 0
  if lasts <= ttl then return nil end
  local why = lasts > whole and "its election time-out" or "whole seconds"
  return ("by %s etcd makes a ttl of %s s one of %d s: a failover takes up to %d s"):format(why, figure.exact(ttl), lasts, lasts)
end

local function alarms_of(status)
  local found = {}
  for _, problem in ipairs(status.errors or {}) do
    found[#found + 1] = ("%s: etcd takes no writes until that is mended"):format(tostring(problem))
  end
  return found
end

-- The first patch of each minor version in which a member that leads etcd no more, and has not noticed, ends no leases; later
-- minor versions have it from the start.
local MENDED = { ["3.4"] = 31, ["3.5"] = 13 }

-- One server alone has nobody whom its leases could be refreshed by meanwhile.
local function frozen_leader(version, members)
  local minor, patch = tostring(version):match "^(%d+%.%d+)%.(%d+)"
  local mended = minor and MENDED[minor]
  if not mended or tonumber(patch) >= mended or not members or members < 2 then return nil end
  return ("two may lead after a freeze of the member that leads etcd: use etcd %s.%d or later"):format(minor, mended)
end

--- What etcd says of itself. Who may not ask is told nothing, which is no failure.
-- @tparam Client client
-- @treturn table `{ facts =, warnings = }`; or nil, message, code
function admin.health(client)
  local status, problem, code = client:ask "/v3/maintenance/status"
  if not status and code ~= "store" then return nil, problem, code end
  if not status then return { facts = {}, warnings = {} } end
  local listed = client:ask("/v3/cluster/member/list", {})
  local count = listed and listed.members and #listed.members
  local words = "etcd " .. tostring(status.version)
  if count then words = ("%s, %d member%s"):format(words, count, count == 1 and "" or "s") end
  local warnings = alarms_of(status)
  if count and count % 2 == 0 then
    warnings[#warnings + 1] = ("%d members: one fewer would survive as many failures"):format(count)
  end
  warnings[#warnings + 1] = frozen_leader(status.version, count)
  return { facts = { { "Store", words } }, warnings = warnings }
end

return admin
