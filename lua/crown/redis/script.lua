--- The one script that all elections' leases are kept by: claims, refreshes and releases of many leases in one call.
--
-- Keys: the store's, then for each lease three: the lease itself (a hash that expires), the epoch, which does not,
-- and the number of this token's last claim, which is kept for longer than any packet lives. The store names the memory it
-- was written in by its replication id, which is another one after a restart, a promotion, and a promotion back. Another
-- memory may have forgotten leases: it is doubted since it was first seen, and none is given out there before the longest
-- TTL that anybody knows of has passed since, whoever asks. Where nothing is known at all it was lost, or never was: then
-- what the asker allows for unknown leases has to pass too. The same doubt is noted when somebody finds that the server's
-- clock, by which leases end, was stepped forward: `doubt`. A step back is counted in the store, by the call that finds the
-- clock behind what it has to show. What was written after that ends too early when the clock is put right. Who asked last
-- before the step back cannot tell by the time: it knows another count, and that too is a doubt. Who comes anew knows none:
-- `behind` is by how much the clock was set back in all, and for so long after the end of a lease, and a day, a key says that it
-- may be acted on still. Who has been there for less than the longest TTL is not given that lease. Nor does who comes anew know
-- the time: the store keeps when a lease was last given out or prolonged (`seen`). By that a step looks smaller than it was, by
-- the time that has passed since. The day is for that. A claim by who has heard of a later epoch than is there is a doubt, too.
-- A second key of each lease (`held`) says who has it, and ends with it: where that one is there alone, somebody has deleted the
-- lease, and until it would have ended it is given to nobody else.
-- Epochs are at least the server's time in milliseconds, and above the last one that who claims has heard of, so that they rise
-- even where all was lost.
-- @internal crown.redis.script

return [[
local op, channel, time = ARGV[1], ARGV[3], redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local SLACK = 20 -- milliseconds: steps that are smaller are what the deadline's margin is for
local function whole(number) return string.format('%.0f', number) end
local LONGEST = 86400000 -- milliseconds: no TTL is longer, whatever somebody has written there

local count = #KEYS - 1
local store = redis.call('HMGET', KEYS[1], 'identity', 'since', 'longest', 'lost', 'set_back', 'behind', 'seen')
local identity = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local since, longest = tonumber(store[2]) or now, math.max(math.min(LONGEST, tonumber(store[3]) or 0), tonumber(ARGV[2]))
local lost, floor, is_empty = tonumber(store[4]) or 0, tonumber(ARGV[4]), not store[1] and not store[3]
local set_back, due, knew = tonumber(store[5]) or 0, tonumber(ARGV[5]), tonumber(ARGV[6])
local behind, age, seen = tonumber(store[6]) or 0, tonumber(ARGV[7]), tonumber(store[7]) or 0
due = math.max(due, seen - SLACK)
for i = 1, count do longest = math.max(longest, tonumber(ARGV[5 * i + 6])) end
if store[1] ~= identity or since > now or op == 'doubt' then since = now end
if knew >= 0 and knew ~= set_back then since = now end
local counted = now < due
if counted then set_back, behind = set_back + 1, behind + due - now end
if is_empty or lost > now then lost = now end
if is_empty and floor < 0 then since, lost = 0, 0 end
local function keep()
  redis.call('HSET', KEYS[1], 'identity', identity, 'since', whole(since), 'longest', whole(longest), 'lost', whole(lost),
    'set_back', whole(set_back), 'behind', whole(behind), 'seen', whole(now))
end
if store[1] ~= identity or whole(since) ~= store[2] or whole(longest) ~= store[3] or whole(lost) ~= store[4]
  or set_back ~= (tonumber(store[5]) or 0) then keep() end
local doubted = math.max(0, since + longest - now, lost + floor - now)

local used = false -- whether a lease was given out or prolonged

local function beside(lease, what) return string.sub(lease, 1, -#':lease' - 1) .. what end
local function unsure(lease) return beside(lease, ':unsure') end

local DAY = 86400000 -- milliseconds

-- When the clock is put right the lease ends too early, by as much as that was set back.
local function prolong(lease, token, ttl)
  used = true
  redis.call('SET', beside(lease, ':held'), token, 'PX', ttl) -- first: it is not to outlast the lease
  redis.call('PEXPIRE', lease, ttl)
  if behind > 0 then redis.call('SET', unsure(lease), '1', 'PX', whole(ttl + behind + DAY)) end
end

-- Who asks has heard of a later epoch than is there: somebody has deleted keys, or put others in their place, and who leads is
-- not known. It is noted once.
local function doubt_older(epochs, heard)
  if tonumber(heard) <= (tonumber(redis.call('GET', epochs)) or 0) then return end
  redis.call('SET', epochs, heard)
  since, doubted = now, math.max(doubted, longest)
  keep()
end

-- For how long who has come anew cannot tell whether a lease that is not there has ended too early.
local function unsure_for(lease)
  return age < longest and redis.call('GET', unsure(lease)) and longest - age or 0
end

-- For how long a lease that somebody has deleted would have lasted. Who had it asks for it when nothing acts by it any more.
local function deleted_for(lease, token)
  local mark = beside(lease, ':held')
  local who = redis.call('GET', mark)
  if not who or who == token then return 0 end
  local rest = redis.call('PTTL', mark)
  if rest >= 0 and rest <= longest then return rest end
  redis.call('PEXPIRE', mark, longest)
  return longest
end

-- Nobody has more left than the whole TTL: where it seems so the clock was set back. Where there is no end, the key was copied
-- or restored without it, or a right was missing as it was written: nobody would ever lead again.
local function left(lease)
  local rest, ttl = redis.call('PTTL', lease), tonumber(redis.call('HGET', lease, 'ttl')) or longest
  if rest == -2 or rest >= 0 and rest <= ttl then return rest end
  if not counted then
    set_back, behind, counted = set_back + 1, behind + math.max(0, rest - ttl), true
    keep()
  end
  prolong(lease, redis.call('HGET', lease, 'token'), ttl)
  return ttl
end

local function denied(lease, held, unsure)
  local was_empty = lost >= since and doubted >= (unsure or 0) and 1 or 0
  return { 0, held[2] or '', held[3] or '0', left(lease), math.max(doubted, unsure or 0), held[1] or '', was_empty }
end

-- What is known of a lease, and for how long it is to be sat out. While the store is doubted, one's own lease is no excuse: it
-- may be an old one, which another has had since.
local function look(lease, token)
  local held = redis.call('HMGET', lease, 'token', 'node', 'epoch', 'claim')
  if held[1] then return held, doubted end
  return held, math.max(doubted, unsure_for(lease), deleted_for(lease, token))
end

local ops = {}

local KEPT = 3600000 -- milliseconds

local function last_claim(mark) return tonumber(redis.call('GET', mark) or -1) end

local function grant(lease, epochs, mark, token, node, claim, ttl)
  local epoch = whole(math.max((tonumber(redis.call('GET', epochs)) or 0) + 1, now))
  redis.call('SET', epochs, epoch)
  redis.call('SET', mark, claim, 'PX', KEPT)
  redis.call('DEL', lease)
  redis.call('HSET', lease, 'token', token, 'node', node, 'epoch', epoch, 'claim', claim, 'ttl', ttl)
  prolong(lease, token, ttl)
  return epoch
end

function ops.claim(lease, epochs, mark, token, node, claim, ttl, heard)
  doubt_older(epochs, heard)
  local held, wait = look(lease, token)
  if wait > 0 or held[1] and held[1] ~= token then return denied(lease, held, wait) end
  if last_claim(mark) >= tonumber(claim) then return denied(lease, held) end
  return grant(lease, epochs, mark, token, node, claim, ttl)
end

-- The lease of a leader whom most servers know, to one that was away: under the number of its claim, unless that is over.
function ops.restore(lease, epochs, mark, token, node, claim, ttl)
  local held, wait = look(lease, token)
  local free = not held[1] or held[1] == token and tonumber(held[4]) < tonumber(claim)
  if wait > 0 or not free or last_claim(mark) > tonumber(claim) then return denied(lease, held, wait) end
  return grant(lease, epochs, mark, token, node, claim, ttl)
end

function ops.refresh(lease, epochs, mark, token, node, claim, ttl)
  local held = redis.call('HMGET', lease, 'token', 'node', 'epoch', 'claim', 'evicted')
  if held[1] ~= token or held[4] ~= claim then return denied(lease, held) end
  prolong(lease, token, ttl)
  return held[5] and { 1, held[3] } or held[3]
end

-- Also of a claim that is still on its way: that it is over is noted, half a number above it, and it comes too late.
local function free(lease, mark, token, claim)
  if last_claim(mark) < tonumber(claim) + 0.5 then redis.call('SET', mark, claim .. '.5', 'PX', KEPT) end
  local held = redis.call('HMGET', lease, 'token', 'claim')
  if held[1] ~= token or tonumber(held[2]) > tonumber(claim) then return false end
  return redis.call('DEL', lease, unsure(lease), beside(lease, ':held')) > 0
end

function ops.release(lease, epochs, mark, token, node, claim, ttl)
  if free(lease, mark, token, claim) then
    redis.call('PUBLISH', channel, 'freed ' .. string.match(lease, '{(.*)}'))
  end
  return '0'
end

-- What never was a leader's wakes nobody.
function ops.undo(lease, epochs, mark, token, node, claim, ttl)
  free(lease, mark, token, claim)
  return '0'
end

-- An epoch of another server of the same election that is higher than this one's.
function ops.raise(lease, epochs, mark, token, epoch, claim, ttl)
  local held = redis.call('HMGET', lease, 'token', 'node', 'epoch', 'claim')
  if held[1] ~= token or held[4] ~= claim then return denied(lease, held) end
  redis.call('SET', epochs, epoch)
  redis.call('HSET', lease, 'epoch', epoch)
  return epoch
end

function ops.doubt() return '0' end

local answers = {}
for i = 1, count do
  local at = 5 * i + 3
  local lease, token = KEYS[i + 1], ARGV[at]
  local base = string.sub(lease, 1, -#':lease' - 1)
  answers[i] = ops[op](lease, base .. ':epoch', base .. ':claim:' .. token, token, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3],
    ARGV[at + 4])
end
if used then redis.call('HSET', KEYS[1], 'seen', whole(now)) end
answers[count + 1], answers[count + 2], answers[count + 3] = longest, whole(now), set_back
return answers
]]
