--- The one script that all elections' leases are kept by: claims, refreshes and releases of many leases in one call.
--
-- Keys: the store's, then for each lease three: the lease itself (a hash that expires), the epoch, which does not,
-- and the number of this token's last claim, which is kept for longer than any packet lives. The store names the
-- server process it was written by: another one, after a restart or a failover, may have forgotten leases, so none is
-- given out there before the longest TTL has passed. Epochs are at least the server's time in milliseconds, so that
-- they rise even where all was lost.
-- @module crown.redis.script

return [[
local op, run_id, time = ARGV[1], ARGV[2], redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function whole(number) return string.format('%.0f', number) end

local store = redis.call('HMGET', KEYS[1], 'run_id', 'trusted_at', 'longest')
local longest, trusted_at = tonumber(store[3]) or 0, tonumber(store[2]) or 0
local before = longest
local count = #KEYS - 1
for i = 1, count do longest = math.max(longest, tonumber(ARGV[4 * i + 3])) end
if store[1] ~= run_id then
  trusted_at = math.max(trusted_at, now + longest)
  redis.call('HSET', KEYS[1], 'run_id', run_id, 'trusted_at', whole(trusted_at), 'longest', whole(longest))
elseif longest > before then
  redis.call('HSET', KEYS[1], 'longest', whole(longest))
end
local distrust = math.max(0, trusted_at - now)

local function denied(lease, held)
  return { 0, held[2] or '', held[3] or '0', redis.call('PTTL', lease), distrust, held[1] or '' }
end

local ops = {}

local KEPT = 3600000 -- milliseconds

function ops.claim(lease, epochs, mark, token, node, claim, ttl)
  local held = redis.call('HMGET', lease, 'token', 'node', 'epoch')
  if held[1] and held[1] ~= token then return denied(lease, held) end
  local late = tonumber(redis.call('GET', mark) or -1) >= tonumber(claim)
  if late or distrust > 0 and not held[1] then return denied(lease, held) end
  local epoch = whole(math.max((tonumber(redis.call('GET', epochs)) or 0) + 1, now))
  redis.call('SET', epochs, epoch)
  redis.call('SET', mark, claim, 'PX', KEPT)
  redis.call('DEL', lease)
  redis.call('HSET', lease, 'token', token, 'node', node, 'epoch', epoch, 'claim', claim)
  redis.call('PEXPIRE', lease, ttl)
  return epoch
end

function ops.refresh(lease, epochs, mark, token, node, claim, ttl)
  local held = redis.call('HMGET', lease, 'token', 'node', 'epoch', 'claim', 'evicted')
  if held[1] ~= token or held[4] ~= claim then return denied(lease, held) end
  redis.call('PEXPIRE', lease, ttl)
  return held[5] and { 1, held[3] } or held[3]
end

-- Also of a claim that is still on its way: its number is noted, and it comes too late.
function ops.release(lease, epochs, mark, token, node, claim, ttl)
  if tonumber(redis.call('GET', mark) or -1) < tonumber(claim) then redis.call('SET', mark, claim, 'PX', KEPT) end
  local held = redis.call('HMGET', lease, 'token', 'claim')
  if held[1] == token and tonumber(held[2]) <= tonumber(claim) then
    redis.call('DEL', lease)
    redis.call('PUBLISH', ARGV[3], 'freed ' .. string.match(lease, '{(.*)}'))
  end
  return '0'
end

-- An epoch of another server of the same election that is higher than this one's.
function ops.raise(lease, epochs, mark, token, epoch, claim, ttl)
  if redis.call('HGET', lease, 'token') ~= token then return denied(lease, {}) end
  redis.call('SET', epochs, epoch)
  redis.call('HSET', lease, 'epoch', epoch)
  return epoch
end

local answers = {}
for i = 1, count do
  local at = 4 * i
  local lease, token = KEYS[i + 1], ARGV[at]
  local base = string.sub(lease, 1, -#':lease' - 1)
  answers[i] = ops[op](lease, base .. ':epoch', base .. ':claim:' .. token, token, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
end
return answers
]]
