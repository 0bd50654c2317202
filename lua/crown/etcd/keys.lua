--- Keys, ranges and numbers as etcd's gateway has them.
-- @internal crown.etcd.keys

local base64 = require "crown.text.base64"
local crypto = require "crown.core.crypto"
local printable = require "crown.text.printable"
local url = require "crown.text.url"

local keys = {}

local LEASE_AND_DIGEST = 48 -- digits
local AGE = ".age" -- of a prefix: see crown.etcd.memory
local LEASE_DIGITS = 18 -- decimal ones of a lease's number, of 63 bits

--- The range of all keys that begin with a text.
-- @string text
-- @treturn table `key` and `range_end`, encoded
function keys.range(text)
  return { key = base64.encode(text), range_end = base64.encode(text:sub(1, -2) .. string.char(text:byte(-1) + 1)) }
end

--- The keys of an election: those of its candidates, and the wish that the leader go.
-- @string base the election's name below the prefix
-- @treturn table a range, encoded
function keys.election(base)
  return { key = base64.encode(base .. "."), range_end = base64.encode(base .. "0") } -- "." and "/", which "0" follows
end

--- The key of a candidate. Its number begins with no 0: version 0.1 ends the leases of keys with a 0 there a second early.
-- @string base the election's name below the prefix
-- @string lease 16 hexadecimal digits
-- @string digest 32 of them
-- @number count of keys so far, this one among them
-- @treturn string
function keys.place(base, lease, digest, count)
  return ("%s/%s%s%x"):format(base, lease, digest, count)
end

--- Whether a key is one that a candidate of ours has made, whatever has become of its lease.
-- @string key
-- @treturn boolean
function keys.is_place(key)
  return #(key:match "/(%x+)$" or "") > LEASE_AND_DIGEST
end

--- What to do about the first key of a queue that no lease ends: somebody has written over it.
-- @tparam table kv as etcd tells it
-- @treturn string words; nil where it has a lease
function keys.endless(kv)
  if kv.lease and kv.lease ~= "0" then return nil end
  local key = printable(base64.decode(kv.key))
  return ("the first key of the queue was written over without a lease, and nobody leads behind it: etcdctl del '%s'"):format(key)
end

--- Why nobody can lead while a key is the first one below an election, and what to do. Clients of etcd's own election wait behind
-- each key there, also behind one that is no candidate's: who passed it by would lead beside a candidate of theirs.
-- @string base the election's name below the prefix
-- @tparam table kv as etcd tells it
-- @treturn string words; nil where it is a candidate's key
function keys.obstacle(base, kv)
  local key = base64.decode(kv.key)
  local rest = key:sub(#base + 2)
  if rest == AGE or rest:find "/%x+$" then
    return ("below %s/ are elections of another URL, whose prefix that is: use another name"):format(base)
  end
  if rest:find "^%x+$" then return keys.endless(kv) end
  return ("the first key below %s/ is no candidate's, and nobody leads behind it: etcdctl del '%s'"):format(base, printable(key))
end

--- The number of a new lease: chosen here, so that it can be revoked also when its answer never came.
-- @treturn string decimal: more than a number holds
function keys.new_lease()
  local digits = {}
  for i, byte in ipairs { crypto.random(LEASE_DIGITS):byte(1, -1) } do digits[i] = i == 1 and byte % 9 + 1 or byte % 10 end
  return table.concat(digits)
end

--- The election's name below a prefix. What a name has of "/" is escaped: a prefix may have more parts.
-- @string prefix "" for none
-- @string name
-- @treturn string
function keys.base(prefix, name)
  name = name:gsub("[/%%]", function(character) return ("%%%02X"):format(character:byte()) end)
  return prefix ~= "" and prefix .. "/" .. name or name
end

--- The name that keys.base was given.
-- @string escaped
-- @treturn string
function keys.name(escaped)
  return url.decode(escaped)
end

--- Decimal text to hexadecimal, without loss: a lease's number is more than a Lua number holds.
-- @string decimal
-- @treturn string
function keys.hex(decimal)
  local digits = {}
  for digit in decimal:gmatch "%d" do digits[#digits + 1] = tonumber(digit) end
  local hex = ""
  while #digits > 0 do
    local rest, quotient = 0, {}
    for _, digit in ipairs(digits) do
      local value = rest * 10 + digit
      rest = value % 16
      if #quotient > 0 or value >= 16 then quotient[#quotient + 1] = math.floor(value / 16) end
    end
    hex, digits = ("0123456789abcdef"):sub(rest + 1, rest + 1) .. hex, quotient
  end
  return hex
end

return keys
