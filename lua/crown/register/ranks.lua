--- Who is to lead an election first of those that wait for it, and who asks a leader to go. Each candidate has a level, 0 unless
-- its options say another one; the level of the last resort is below all others. Levels stand beside orders, in their field
-- `ranks`, by node: those of candidates that wait, and that of the leader. A level of 0 is not written.
--
-- A candidate leaves those above it the first claim, for a bounded time. It removes those that have not come as it claims. They
-- write themselves again when they wait. None of this permits a claim. It is pure data here: no clock, no store.
--
-- A rank: `level`; `wait`, the seconds for which it leaves others the first claim; `preempt`, the seconds that it waits until it
-- asks a leader of a lower level to go, or nil: never; `wanted`: the leader that it asks to go at once,
-- since that one has more shares (crown.election.balance); `is_last`: it leads as a last resort only; `since`, the instant from
-- which its own rules let it lead.
-- @internal crown.register.ranks

local json = require "crown.text.json"
local orders = require "crown.register.orders"
local printable = require "crown.text.printable"

local ranks = {}

--- The level of a candidate that leads only where nobody else does.
ranks.LAST = -1000000

local WAIT, LOOKS = 2, 2 -- seconds at least, and pauses between two looks of others, that they are left to claim first
local SOON = 1 -- seconds until a leader of the last resort is asked to go: who only looks in, as run --once does, asks nobody
local WITHIN, WITHIN_LOOKS = 1, 3 -- TTLs, and such pauses, in which a leader that was asked goes, and the other one comes

local function list_of(found)
  local list = found and found.ranks
  return type(list) == "table" and list or nil
end

--- The level of a node.
-- @tparam[opt] table found orders of a record
-- @string node
-- @treturn number
function ranks.of(found, node)
  local list = list_of(found)
  local level = list and node and list[node]
  return type(level) == "number" and level or 0
end

--- The level of a candidate.
-- @tparam[opt] table rank see above
-- @treturn number
function ranks.level(rank)
  if not rank then return 0 end
  return rank.is_last and ranks.LAST or rank.level
end

local function words_for(level)
  return level == ranks.LAST and "the last resort" or ("preference %d"):format(level)
end

-- Of those that wait above a level the highest; of several the first by name.
local function first_above(found, level, node, holder)
  local first, highest = nil, level
  for other, theirs in pairs(list_of(found) or {}) do
    local counts = type(theirs) == "number" and other ~= node and other ~= holder and theirs > level
    if counts and (theirs > highest or theirs == highest and other < first) then first, highest = other, theirs end
  end
  return first, highest
end

--- For how long a candidate leaves an election that nobody leads to others.
-- @tparam[opt] table found orders of the record
-- @tparam table me `node`; `rank`, or nil; `retry`, the seconds between two looks where nothing tells of changes, or nil
-- @string[opt] holder the node that led last and has not given back: it does not wait
-- @number free seconds for which the candidate has seen that nobody leads
-- @treturn number seconds; or nil: it may claim
-- @treturn string why
function ranks.wait(found, me, holder, free)
  local level = ranks.level(me.rank)
  local first, highest = first_above(found, level, me.node, holder)
  if not first and level > ranks.LAST then return nil end
  local left = (me.rank and me.rank.wait or math.max(WAIT, LOOKS * (me.retry or 0))) - free
  if left <= 0 then return nil end
  if not first then return left, "left to candidates that are healthy first" end
  return left, ("left to %s first, of %s"):format(printable(first), words_for(highest))
end

-- What does not fit is not known to others: the lowest levels.
local function fit(list, node)
  while #json.encode(list) > orders.MOST do
    local lowest
    for other, level in pairs(list) do
      local is_lower = other ~= node and (not lowest or level < list[lowest] or level == list[lowest] and other > lowest)
      if is_lower then lowest = other end
    end
    list[lowest] = nil
  end
  return next(list) and list or nil
end

local function changed(found, node, level, keeps)
  local one, list = {}, {}
  for field, value in pairs(found or one) do one[field] = value end
  for other, theirs in pairs(list_of(found) or list) do
    if type(theirs) == "number" and keeps(theirs) then list[other] = theirs end
  end
  list[node] = level ~= 0 and level or nil
  one.ranks = fit(list, node)
  return next(one) and one or nil
end

local function all() return true end

--- Orders with the level of a node that waits or leads.
-- @tparam[opt] table found
-- @string node
-- @number level 0: it is not there any more
-- @treturn table or nil: nothing is ordered
function ranks.with(found, node, level)
  if ranks.of(found, node) == level then return found end
  return changed(found, node, level, all)
end

--- Orders with the claim of a candidate: those above it have not come.
-- @tparam[opt] table found
-- @tparam table me `node`, `rank`
-- @treturn table or nil: nothing is ordered
function ranks.claimed(found, me)
  local level = ranks.level(me.rank)
  if level == 0 and not list_of(found) then return found end
  return changed(found, me.node, level, function(theirs) return theirs <= level end)
end

-- Seconds that have to pass until a candidate asks the leader to go; nil: it does not.
local function patience_of(rank, level, theirs, holder)
  if rank and rank.wanted == holder then return 0 end
  if theirs >= level then return nil end
  return theirs == ranks.LAST and SOON or rank and rank.preempt
end

-- @return whether the leader is asked to go now; the seconds until it will be, or nil
local function is_due(found, me, holder)
  local patience = patience_of(me.rank, ranks.level(me.rank), ranks.of(found, holder), holder)
  local is_ordered = found and (orders.is_paused(found, me.time / 1000) or found.to and found.to ~= holder)
  if not patience or is_ordered or holder == me.node then return false end
  local left = math.max(patience - me.waited, math.max(patience, me.within) - me.asked_ago)
  return left <= 0, left > 0 and left or nil
end

--- Notes that a candidate tells its level.
-- @tparam[opt] table rank
-- @number now
-- @treturn table for `told_ago`
function ranks.telling(rank, now) return { level = ranks.level(rank), at = now } end

--- Since when a candidate has told the level that it has now.
-- @tparam[opt] table told see `telling`
-- @tparam[opt] table rank
-- @number now
-- @treturn number seconds
function ranks.told_ago(told, rank, now)
  return told and told.level == ranks.level(rank) and now - told.at or math.huge
end

--- For how long others leave an election to a candidate that asks for it.
-- @number ttl in seconds
-- @number[opt] retry as in `wait`
-- @treturn number seconds
function ranks.within(ttl, retry) return math.max(WITHIN * ttl, WITHIN_LOOKS * (retry or 0)) end

--- What a candidate that waits writes beside the leader: its level, and a hand-over to itself where that is due.
-- @tparam[opt] table found orders of the record
-- @tparam table me `node`, `rank`, `time` of day in ms; in seconds `waited`, for how long it has waited and could have led;
-- `asked_ago`, since when it has asked last; `told_ago`, since when it has written its level last; `within`, for how long others
-- leave it the election
-- @string holder the node that leads
-- @treturn table orders, or nil: nothing is to be written
-- @treturn boolean whether they ask the leader to go
-- @treturn number seconds until they will, or nil
function ranks.asked(found, me, holder)
  local level = ranks.level(me.rank)
  local wanted, due, left = ranks.with(found, me.node, level), is_due(found, me, holder)
  if due then
    local why = me.rank and me.rank.wanted == holder and "it has fewer shares"
      or ("%s over %s"):format(words_for(level), words_for(ranks.of(found, holder)))
    local asking = orders.with(wanted, { to = me.node, within = me.within, since = math.floor(me.time / 1000), by = me.node,
      why = why })
    if asking then return asking, true end
  end
  -- Levels for which there is no room, and two candidates of one node's name, would write over each other without end.
  if wanted == found or (me.told_ago or math.huge) < me.within then return nil, false, left end
  return wanted or {}, false, left
end

--- Levels in words.
-- @tparam[opt] table found orders of a record
-- @treturn string such as "a 10, b 5", or nil: there are none
function ranks.words(found)
  local nodes, parts = {}, {}
  for node, level in pairs(list_of(found) or nodes) do
    if type(level) == "number" then nodes[#nodes + 1] = node end
  end
  table.sort(nodes, function(a, b)
    local one, other = found.ranks[a], found.ranks[b]
    if one == other then return a < b end
    return one > other
  end)
  for i, node in ipairs(nodes) do
    local level = found.ranks[node]
    parts[i] = ("%s %s"):format(printable(node), level == ranks.LAST and "last resort" or ("%d"):format(level))
  end
  return parts[1] and table.concat(parts, ", ")
end

return ranks
