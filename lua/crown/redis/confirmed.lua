--- What a primary says that Sentinels named, where most of them name it still. An old one that was cut off, or frozen, takes
-- writes until it has been made a replica, beside the new one.
--
-- A lease counts from when it was asked for, and is confirmed by most Sentinels, asked no sooner than that. Two majorities have a
-- Sentinel in common. So nobody had a majority for another primary before this lease was asked for, and nobody without one
-- connects to the other: its script sits out the longest TTL from its first call there. By then the lease is over.
-- @internal crown.redis.confirmed

local reading = require "crown.redis.reading"
local together = require "crown.link.together"

local SHARE = 0.5 -- of the time-out, for the Sentinels' answers

-- @return true; or nil, a message, and whether they name another
local function confirm(store, connection)
  return store.sentinels:confirm(connection.place, store.timeout * SHARE)
end

-- What is not confirmed is not known. There is nothing to be had from a server that is the primary no more.
local function unconfirmed(connection, problem, is_another)
  if is_another then connection:close(problem) end
  return nil, problem, "store"
end

local function claim(store, connection, count, ask, undo)
  local answers, problem, code = ask()
  if not answers or not reading.grants(answers, count) then return answers, problem, code end
  if connection.closed then return nil, connection.closed, "closed" end -- another one may have brought the answer
  local fine, why, is_another = confirm(store, connection)
  if fine then return answers end
  undo()
  return unconfirmed(connection, why, is_another)
end

-- The Sentinels are asked while the refresh is on its way, so that it takes no longer.
local function refresh(store, connection, _, ask)
  local asked, said = together(ask, function() return confirm(store, connection) end)
  if not asked[1] then return unpack(asked, 1, 3) end
  if connection.closed then return nil, connection.closed, "closed" end
  if said[1] then return asked[1] end
  return unconfirmed(connection, said[2], said[3])
end

local WAYS = { claim = claim, restore = claim, refresh = refresh }

--- Asks, and has most Sentinels confirm what was granted. A claim is confirmed when it is granted, or taken back.
-- @tparam table store `home`, a client; `sentinels`, where it was found by some; `timeout` in seconds
-- @string op as crown.redis.leases has it
-- @number count of the leases that are asked for
-- @tparam function ask returns the script's answers; or nil, message, code
-- @tparam function undo takes back what was granted
-- @return what ask returned; or nil, message, code
return function(store, op, count, ask, undo)
  local way = store.sentinels and WAYS[op]
  if not way then return ask() end
  local connection, problem, code = store.home:ready()
  if not connection then return nil, problem, code end
  return way(store, connection, count, ask, undo)
end
