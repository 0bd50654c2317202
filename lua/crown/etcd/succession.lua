--- Who comes next in a queue of etcd, and may begin to lead without a question.
--
-- A candidate has seen that the first key of its queue is the one right before its own. When the watch tells that this key has
-- gone, its own is the first: no key can come before it later. So it leads by what was true when its lease was kept last, as a
-- leader does between two refreshes, if
--
--  - the lease was kept after the queue was seen so, and etcd had forgotten nothing by then (crown.etcd.session, keep). What is
--    found to have gone back, or to count its leases anew, makes all forget what they saw
--  - that is no longer ago than a leader may go without a refresh.
--
-- Its term counts from then, not from its claim. The lease is kept again right after it, see docs/decisions.md.
--
-- Of a place: `next` is since when only the key before it is known to be before it, `first` the same once that one has gone.
-- @internal crown.etcd.succession

local core = require "crown.core"

local succession = {}

local INHERITED_MOST = 0.9 -- of the time from one refresh to the next

--- Takes note of a look at the queue.
-- @tparam table place `ahead`: the key right before its own, where that is waited for
-- @tparam table leader the key that was the first in it
-- @treturn boolean whether it is news that it is the next one
function succession.saw(place, leader)
  if not place.ahead then return false end -- it has gone since
  local was_next = place.next
  place.first, place.next = nil, place.ahead == leader.key and (was_next or core.now()) or nil
  return place.next ~= nil and not was_next
end

--- Takes note that the key before it has gone.
-- @tparam table place
function succession.gone(place)
  place.first, place.next = place.next, nil
end

--- Forgets what was seen.
-- @tparam table place
function succession.forget(place)
  place.first, place.next = nil, nil
end

--- Forgets what was seen of all queues: etcd may be another one.
-- @tparam table places
function succession.forget_all(places)
  for _, place in pairs(places) do succession.forget(place) end
end

--- Whether a place is the first and its lease was kept after that was to be seen.
-- @tparam table place
-- @number kept when its lease was kept last
-- @number delay from one refresh to the next
-- @treturn number that time, from which the lease counts; nil where etcd has to be asked
function succession.since(place, kept, delay)
  if not place.first or place.first >= kept or core.now() - kept > delay * INHERITED_MOST then return nil end
  return kept
end

return succession
