--- What a candidate has seen of a Lease, by a clock of its own, and what follows from that. Times in a Lease are never
-- compared: a holder is over when its Lease has not changed for as long as it lasts, and what clocks may drift apart. Without
-- input or output.
-- @internal crown.kubernetes.sight

local lease = require "crown.kubernetes.lease"
local rule = require "crown.register.rule"

local Sight = {}
Sight.__index = Sight

--- Makes one.
-- @tparam table party `identity`; `ttl`, `amnesia_wait` in seconds; `trust_empty`
-- @treturn Sight `record`: the last one as crown.kubernetes.lease reads it, false where there is no Lease, nil where nobody has
-- looked; `version`: the last one; `shortest`: seconds of the shortest lease that another one held
function Sight.new(party)
  return setmetatable({ party = party, longest = party.ttl, doubted_until = -math.huge, epoch = 0 }, Sight)
end

-- Somebody may still lead by what is not there any more.
local function doubt(self, now, was_empty)
  local seconds = math.max(self.longest, self.party.amnesia_wait)
  self.doubted_until = math.max(self.doubted_until, now + rule.standing_time(seconds))
  self.was_empty = was_empty
end

local function saw_nothing(self, now)
  if self.record == false then return end
  local is_known = self.record ~= nil
  self.record = false
  if is_known or not self.party.trust_empty then doubt(self, now, not is_known) end
end

local function note_duration(self, record)
  if not record.holder or record.holder == self.party.identity or not record.duration then return end
  self.longest = math.max(self.longest, record.duration)
  self.shortest = math.min(self.shortest or math.huge, record.duration)
end

local function keep(self, record, now)
  local before = self.record
  if not before or before.mark ~= record.mark then
    self.since, self.is_renewed = now, before and before.holder == record.holder
  end
  self.record, self.version = record, record.version
  self.epoch, self.transitions = math.max(self.epoch, record.epoch), record.transitions
  note_duration(self, record)
end

--- Takes in an answer.
-- @tparam table|nil record nil where there is no Lease
-- @string[opt] known the version that was the last one when the question was sent
-- @number now in seconds, when the answer had come
function Sight:saw(record, known, now)
  if not record then return saw_nothing(self, now) end
  local before = self.record
  local is_another = before and before.uid ~= record.uid
  local has_gone_back = known and lease.is_before(record.version, known)
  if is_another or has_gone_back then
    doubt(self, now)
  elseif before and self.version and lease.is_before(record.version, self.version) then
    return -- overtaken by what was heard or written meanwhile
  end
  keep(self, record, now)
end

--- Takes in what a watch tells, and nothing older.
-- @tparam table record
-- @number now
-- @treturn boolean whether it is news
function Sight:heard(record, now)
  local before = self.record
  if not before or before.uid ~= record.uid or not lease.is_before(self.version, record.version) then return false end
  keep(self, record, now)
  return true
end

--- Seconds until the Lease is believed.
-- @number now
-- @treturn number 0 when it is
-- @treturn boolean whether it was missing at the very first look
function Sight:doubt_left(now)
  return math.max(0, self.doubted_until - now), self.was_empty
end

--- Seconds until its holder is over.
-- @number now
-- @treturn number at most 0 where it is, or where nobody else holds it
function Sight:left(now)
  local record = self.record
  if not record or not record.holder or record.holder == self.party.identity then return 0 end
  return rule.standing_time(record.duration or self.longest) - (now - self.since)
end

--- For how long a lease of ours counts: no longer than another one's, by which its peers may judge.
-- @treturn number seconds
function Sight:counted()
  return math.min(self.party.ttl, self.shortest or math.huge)
end

local TRANSITIONS_MOST = 2 ^ 31 - 1

--- The number of transitions to claim with: one more, and such that the epoch rises above all that are known.
-- @treturn number
function Sight:next_transitions()
  local record = self.record
  if not record then return self.transitions and self.transitions + 1 or 0 end
  local behind = self.epoch - record.epoch
  local wanted = record.transitions + math.max(0, behind) + 1
  return wanted <= TRANSITIONS_MOST and wanted or record.transitions + 1
end

return Sight
