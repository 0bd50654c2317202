--- Whether Consul still has all that it had. A key below the prefix says so: it is "fine", or "doubt", and a lock is taken only
-- in one transaction with a look that it stands. Who finds no such key writes a doubt, and so does who sees that indexes have
-- gone back. A doubt is waited for by everybody, each by a clock of its own, for as long as a lease may last.
-- @internal crown.consul.belief

local base64 = require "crown.text.base64"
local core = require "crown.core"
local json = require "crown.text.json"
local lease = require "crown.oracle.lease"
local lock = require "crown.consul.lock"
local nonce = require "crown.text.nonce"
local place = require "crown.consul.place"

local Belief = {}
Belief.__index = Belief

local KEY = "believed,"
local TRIES = 4 -- where others write it at the same time
local CHANGES = "the key that says whether Consul is believed changes all the time"

--- Makes one; nothing is asked yet.
-- @tparam Client client
-- @tparam table options `ttl` and `amnesia_wait` in seconds, `trust_empty`
-- @treturn Belief `doubts`: how many it has seen; what was known of indexes before the last one says nothing any more
function Belief.new(client, options)
  return setmetatable({ doubts = 0, client = client, key = client.prefix .. KEY, trusts = options.trust_empty,
    seconds = lease.standing_time(math.max(options.ttl, options.amnesia_wait)) }, Belief)
end

--- Notes that indexes have gone back.
function Belief:went_back() self.is_back = true end

-- @return what the key says, false where it is missing; or nil, message, code
local function read(self, timeout)
  local answer, problem, code = self.client:ask({ path = place.path(self.key) .. "?consistent" }, timeout)
  if not answer then return nil, problem, code end
  if answer.status == 404 then return false end
  local list = json.list(answer.body)
  local found = list and lock.read(list[1])
  if not found then return self.client:strange() end
  found.is_fine = (json.object(found.text) or {}).state == "fine"
  return found
end

-- @return whether it was written; or nil, message, code
local function write(self, state, found, timeout)
  local text = json.encode { state = state, nonce = nonce() }
  local done, problem, code = self.client:write({ { Verb = "cas", Key = self.key, Value = base64.encode(text),
    Index = found and found.index or 0 } }, timeout)
  if done == nil then return nil, problem, code end
  return done ~= false
end

-- What is to be written over what was found.
local function wanted(self, found, sent)
  if not found then
    self.was_empty = not self.was_there
    return self.trusts and self.was_empty and "fine" or "doubt"
  end
  if self.index and found.index < self.index then self.is_back = true end
  local is_news = found.index ~= self.index
  if is_news then self.index, self.since = found.index, core.now() end
  if found.is_fine then return self.is_back and "doubt" or nil end
  if is_news or self.is_back then -- the doubt that stands is counted from here
    self.doubts, self.is_back, self.since = self.doubts + 1, false, core.now()
  end
  return sent - self.since >= self.seconds and "fine" or nil
end

--- Looks whether it is believed.
-- @number timeout seconds for each question
-- @treturn number seconds until it is, 0 when it is; or nil, message, code
-- @treturn number|boolean the index of the key then; else whether it was missing at the very first look
function Belief:look(timeout)
  for _ = 1, TRIES do
    local sent = core.now()
    local found, problem, code = read(self, timeout)
    if found == nil then return nil, problem, code end
    local state = wanted(self, found, sent)
    self.was_there = self.was_there or found and found.is_fine
    if not state and found.is_fine then return 0, found.index end
    if not state then return math.max(0.001, self.seconds - (core.now() - self.since)), self.was_empty end
    local done
    done, problem, code = write(self, state, found, timeout)
    if done == nil then return nil, problem, code end
    if done and state == "doubt" then self.is_back = false end
  end
  return nil, CHANGES, "store"
end

--- What has to stand for a lock to be taken, as a part of a transaction.
-- @number index
-- @treturn table an operation
function Belief:stands(index) return { Verb = "check-index", Key = self.key, Index = index } end

return Belief
