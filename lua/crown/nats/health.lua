--- What a JetStream bucket says of itself, for `info`: facts, and what is wrong with it as a store of elections.
-- @internal crown.nats.health

local Doubt = require "crown.oracle.doubt"
local figure = require "crown.check.figure"

local health = {}

local LEAST_SAFE, LEAST_REPLICATED = 5, 10 -- seconds of a TTL
local MOST_LAG = 100 -- writes that a replica may be behind, as Choria counts

local function peer_warnings(info, warn)
  if not info.peers then return end
  if not info.leader then warn "the bucket's stream has no leader: nobody can claim or refresh" end
  for _, peer in ipairs(info.peers) do
    if peer.offline then
      warn(("replica %s is offline"):format(peer.name))
    elseif not peer.current or peer.lag > MOST_LAG then
      warn(("replica %s is not up to date, %d writes behind"):format(peer.name, peer.lag))
    end
  end
end

local function warnings_of(info, problem)
  local warnings = {}
  local function warn(text) warnings[#warnings + 1] = text end
  if problem then warn("nobody can claim: " .. problem) end
  if info.ttl < LEAST_SAFE then warn(("the bucket's TTL is %s s: 5 s and more are safe"):format(figure.exact(info.ttl))) end
  if info.replicas > 1 and info.ttl < LEAST_REPLICATED then
    warn "a change of the stream's leader takes about 6 s: a TTL of 15 s and more rides it out"
  end
  peer_warnings(info, warn)
  return warnings
end

local function replicas_of(info)
  local names = { info.leader and info.leader .. " (leader)" }
  for _, peer in ipairs(info.peers or {}) do names[#names + 1] = peer.name end
  return #names > 0 and ("%d: %s"):format(info.replicas, table.concat(names, ", ")) or ("%d"):format(info.replicas)
end

--- Facts and warnings.
-- @string name of the bucket
-- @tparam table info of Bucket:info
-- @string[opt] problem why no election can be held in it
-- @number[opt] amnesia_wait seconds for which nobody new leads in a bucket that was just made, nil where it is trusted
-- @treturn table `{ ttl =, fixed = the URL's counts for nothing, facts =, warnings = }`
function health.of(name, info, problem, amnesia_wait)
  local facts = { { "Bucket", name }, { "Created", info.created }, { "Storage", info.storage },
    { "Max time", figure.exact(info.ttl) .. " s" }, { "Replicas", replicas_of(info) } }
  if amnesia_wait then Doubt.tell(facts, math.max(info.ttl, amnesia_wait) - (info.age or math.huge)) end
  return { ttl = info.ttl, fixed = true, warnings = warnings_of(info, problem), facts = facts }
end

return health
