--- Who an election of this runtime is to its store. The runtime's token alone would make two elections on one lock one and
-- the same holder, and both would lead.
-- @module crown.oracle.candidate

local candidate = {}

local taken = {}

local FNV_BASIS, FNV_PRIME = 2166136261, 16777619

-- FNV-1a, 32 bits, in halves so that no product leaves what a number holds exactly.
local function hash(text)
  local sum = FNV_BASIS
  for i = 1, #text do
    sum = bit.bxor(sum, text:byte(i)) % 2 ^ 32
    local high, low = math.floor(sum / 65536), sum % 65536
    sum = ((high * FNV_PRIME) % 65536 * 65536 + low * FNV_PRIME) % 2 ^ 32
  end
  return ("%08x"):format(sum)
end

--- Enters an election as a candidate for a lock.
-- @string store what names the store, as its options have it
-- @string lock the lock's name there
-- @tparam table opts what init gets: `crown_name`, `token`
-- @treturn string its token, the same from one runtime of this candidate to the next; or nil and a message: another election
-- of this runtime is on that lock
function candidate.enter(store, lock, opts)
  local key = ("%s\n%s\n%s"):format(store, lock, opts.token)
  local other = taken[key]
  if other and other ~= opts.crown_name then
    return nil, ("election '%s' of this runtime is on the lock '%s' already: each needs one of its own"):format(other, lock)
  end
  taken[key] = opts.crown_name
  return ("%s-%s"):format(opts.token, hash(opts.crown_name))
end

return candidate
