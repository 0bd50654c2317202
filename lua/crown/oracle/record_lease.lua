--- A lease in one record of a store that only compares and swaps. No clocks are compared: a lease is over for this candidate
-- when it has seen one version of the record stand unchanged for the lease's TTL and a margin, by its own clock.
--
-- Its state has `read()` → text, version; false; or nil, message, code; `write(text, version)` → the new version, or true;
-- false; or nil, message, code; `now()`; `clock()`, the time of day in seconds, by which epochs begin where they were lost;
-- `floor`: seconds to wait at least where the store has forgotten; `token`, `node`, `ttl`, `delay`, `retry`, `trust_empty`;
-- `doubts` (crown.oracle.doubt), which says why nobody claims.
-- @internal crown.oracle.record_lease

local claim_number = require "crown.oracle.claim_number"
local Doubt = require "crown.oracle.doubt"
local eviction = require "crown.oracle.eviction"
local lease = require "crown.oracle.lease"
local record = require "crown.oracle.record"

local RecordLease = {}
RecordLease.__index = RecordLease

local LEAST_DOUBT = 1 -- seconds: a record that is lost again has a later first epoch

--- Makes a candidate's lease.
-- @tparam table self see above
-- @treturn RecordLease
function RecordLease.new(self)
  self.number, self.written, self.epoch, self.serial, self.longest = 0, 0, 0, 0, self.ttl
  self.doubts = self.doubts or Doubt.of "the store"
  return setmetatable(self, RecordLease)
end

-- Epochs that were lost are not given again: each count begins with the time in milliseconds, which goes on outside the store.
local function first_epoch(self)
  return self.clock() * 1000
end

-- @return the record and its version; false when there is none; or nil, message, code
local function look(self)
  local text, version, code = self.read()
  if text == nil then return nil, version, code end
  if text == false then
    self.stood = nil
    return false
  end
  local found, problem = record.parse(text)
  if not found then return nil, problem, "store" end
  if not self.stood or self.stood.version ~= version or self.stood.text ~= text then
    self.stood = { version = version, text = text, since = self.now() } -- it was written before it was read
  end
  if not found.doubted then self.longest = math.max(self.longest, found.ttl) end
  return found, version
end

-- Notes how far the record has come. No write lowers either number, so less of one is a store that went back.
-- @return whether it did
local function note(self, found)
  local back = found.serial < self.serial or found.epoch < self.epoch
  if back then self.went_back = true end
  self.serial, self.epoch = math.max(self.serial, found.serial), math.max(self.epoch, found.epoch)
  return back
end

-- Where the store does not name the new version, it is looked up.
local function version_of(self, one)
  local found, version = look(self)
  return found and found.nonce == one.nonce and version or nil
end

-- Writes a record in place of a version. @return true; false when it has changed meanwhile; or nil, message, code
local function put(self, one, version)
  self.written = claim_number(self.written)
  local text = record.text(one, self.serial, self.token, self.written)
  local new, problem, code = self.write(text, version)
  if not new then return new, problem, code end
  note(self, one)
  if new == true then
    self.version = version_of(self, one)
  else
    self.version, self.stood = new, { version = new, text = text, since = self.now() }
  end
  return true
end

-- The store has forgotten: nobody is granted anything before the longest lease that anybody may still act on is over. It
-- is written into the store, so that everybody waits. It counts only when it could be written: else the reading was old.
-- What it has forgotten may be a longer lease than any that is known.
local function doubt(self, version)
  local longest = math.max(self.longest, self.floor, LEAST_DOUBT)
  local wrote, problem, code = put(self, record.doubted(math.max(self.epoch, first_epoch(self)), longest), version)
  if wrote == nil then return nil, problem, code end
  if not wrote then return nil, "the record changed while it was looked at", "store" end
  return self.doubts:denial(lease.standing_time(longest), not self.went_back)
end

local function is_mine(self, found)
  return self.mine and found.token == self.token and found.claim == self.mine.claim
end

-- Seconds until a record may be claimed, as far as this candidate can tell.
local function left(self, found)
  if found.token == self.token then return 0 end -- a claim of ours whose term is over
  if not found.token and not found.doubted then return 0 end
  local ttl = found.doubted and math.max(found.ttl, self.longest) or found.ttl
  return math.max(0, lease.standing_time(ttl) - (self.now() - self.stood.since))
end

local function denied(self, found)
  local seconds = left(self, found)
  if found.doubted then return self.doubts:denial(seconds, not self.went_back, { epoch = found.epoch }) end
  return false, { node = found.node, epoch = found.epoch, retry_in = self.retry,
    expires_in = seconds <= self.retry and seconds or nil }
end

local function granted(self, delay)
  return true, delay, { ttl = self.ttl, epoch = self.mine.epoch }
end

local function lead(self)
  self.leading = true
  return granted(self, lease.first_delay(self.delay))
end

-- Until it is answered the claim may be written at any time: `version` stays the one it was made at, for `abdicate`.
local function take(self, epoch, version)
  self.number = claim_number(self.number)
  self.mine = record.held({ token = self.token, node = self.node, claim = self.number, ttl = self.ttl }, epoch)
  self.version = version
  local wrote, problem, code = put(self, self.mine, version)
  if wrote == nil then return nil, problem, code end
  if wrote then return lead(self) end
  local found, at, why = look(self)
  if found == nil then return nil, at, why end
  if found and is_mine(self, found) then -- it was sent twice
    note(self, found)
    self.version = at
    return lead(self)
  end
  self.mine = nil
  if not found or note(self, found) then return nil, "the record changed while it was claimed", "store" end
  return denied(self, found)
end

function RecordLease:claim()
  self.leading, self.mine, self.told_to_go = false, nil, false
  local found, version, code = look(self)
  if found == nil then return nil, version, code end
  if not found then
    if self.trust_empty and self.serial == 0 then return take(self, first_epoch(self), nil) end
    return doubt(self, nil)
  end
  if note(self, found) or found.doubted and found.ttl < self.longest then return doubt(self, version) end
  if left(self, found) > 0 then return denied(self, found) end
  return take(self, self.epoch + 1, version)
end

-- Something else than the version that was written last stands there, or that is not known.
local function judge(self)
  local found, version, code = look(self)
  if found == nil then return nil, version, code end
  if not found or note(self, found) then
    local verdict, second, why = doubt(self, version)
    if verdict == false then self.leading, self.mine = false, nil end
    return verdict, second, why
  end
  if not is_mine(self, found) then
    self.leading, self.mine = false, nil
    return denied(self, found)
  end
  self.version = version -- an earlier write of ours that was answered late, or a wish that we go
  if found.evicted and not self.told_to_go then return eviction.tell(self) end
  return true
end

function RecordLease:refresh()
  if not self.leading then return false end
  for _ = 1, 2 do
    if self.version then
      local wrote, problem, code = put(self, self.mine, self.version)
      if wrote == nil then return nil, problem, code end
      if wrote then return granted(self, self.delay) end
    end
    local verdict, second, code = judge(self)
    if not verdict then return verdict, second, code end
  end
  return nil, "the record changes faster than it can be written", "store"
end

--- Empties the record, as led by us, or as a claim without an answer may yet make it: it is written in place of the version
-- that the claim was made at, so that the claim comes too late.
function RecordLease:abdicate()
  local mine, version = self.mine, self.version
  self.leading = false
  if not mine then return end
  local wrote = version and put(self, record.empty(mine.epoch, self.ttl), version) or false
  if wrote == false then
    local found, at = look(self)
    if found == false then
      doubt(self, nil)
    elseif found and is_mine(self, found) then
      note(self, found)
      put(self, record.empty(mine.epoch, self.ttl), at)
    end
  end
  self.mine = nil
end

--- A message that the record has changed.
function RecordLease:handle_info(message)
  if message ~= "changed" then return end
  if not self.leading then return self:claim() end
  local found = look(self)
  if found and is_mine(self, found) and not found.evicted and found.serial == self.serial then return end
  self.version = nil
  return self:refresh()
end

return RecordLease
