--- A bell for followers: a key that each write rings which others should hear of, in the same transaction. A follower's agent
-- holds one question for it open (a blocking query). It is a hint and no more: who hears it claims as ever, and while nothing is
-- heard the store is deaf, so that followers look again and again.
-- @internal crown.consul.bell

local barrier = require "crown.link.barrier"
local base64 = require "crown.text.base64"
local core = require "crown.core"
local json = require "crown.text.json"
local nonce = require "crown.text.nonce"
local place = require "crown.consul.place"
local retry = require "crown.core.retry"

local Bell = {}
Bell.__index = Bell

local WAIT = 10 -- seconds that the agent may hold a question open, and a sixteenth more
local APART, PAUSE = 0.05, 1 -- seconds from one question to the next, and after one that has all followers look
local BACK_FIRST, BACK_MOST = 0.1, 5 -- seconds, where the agent does not answer

--- Makes one; nothing is asked yet.
-- @tparam Client client
-- @bool is_deaf until it hears
-- @treturn Bell `deaf`: whether nothing is heard for now
function Bell.new(client, is_deaf)
  return setmetatable({ client = client, deaf = is_deaf, id = nonce(), key = client.prefix .. place.BELL }, Bell)
end

--- What rings it, as a part of a transaction. Where nobody has rung since the last time that is known here, it says so: then who
-- heard that one has missed nothing.
-- @tparam table write as crown.register.session has it
-- @bool is_plain whether others have rung meanwhile
-- @treturn table an operation
function Bell:ring(write, is_plain)
  local after = not is_plain and self.known or nil
  local news = { by = self.id, name = write.name, text = write.frees and write.text or nil, after = after }
  return { Verb = after and "cas" or "set", Key = self.key, Value = base64.encode(json.encode(news)), Index = after }
end

--- Takes note that it was rung from here.
-- @number index of the transaction
function Bell:rang(index) self.known = index end

-- @return the entry, or false; or nil and a message
local function read(self, answer)
  if answer.status == 404 then return false end
  local list = json.list(answer.body)
  local entry = list and list[1]
  local index = type(entry) == "table" and tonumber(entry.ModifyIndex)
  if not index then return nil, select(2, self.client:strange()) end
  local text = type(entry.Value) == "string" and base64.decode(entry.Value)
  return { index = index, news = text and json.object(text) or {} }
end

-- @return whether all followers look now
local function tell(self, entry)
  if not entry or entry.index == self.heard then return false end
  local news = entry.news
  local is_next = type(news.name) == "string" and news.after == self.heard
  self.heard, self.known = entry.index, entry.index
  if not is_next then
    self.fn(nil)
    return true
  end
  local text = type(news.text) == "string" and news.text
  self.fn(news.name, text and { text = text, version = ("%.0f"):format(entry.index) } or nil, news.by == self.id)
  return false
end

-- @return seconds to wait; or nil and a message
local function hear(self)
  local path = ("%s?index=%.0f&wait=%ds"):format(place.path(self.key), self.index or 0, WAIT)
  local answer, problem = self.client:ask({ path = path, held = true }, WAIT + WAIT / 16 + self.timeout())
  if not answer then return nil, problem end
  local index = self.client.index(answer)
  if not index then return nil, select(2, self.client:strange()) end
  local entry
  entry, problem = read(self, answer)
  if entry == nil then return nil, problem end
  if not self.index or index < self.index then self.heard = nil end -- a lower one: it begins anew
  local is_first = self.heard == nil
  self.index, self.deaf = index >= (self.index or 0) and math.max(index, 1) or nil, false
  if not is_first then return tell(self, entry) and PAUSE or APART end
  self.heard = entry and entry.index or 0
  self.known = self.heard
  self.fn(nil)
  return PAUSE
end

local function run(self)
  local backoff = retry.new(BACK_FIRST, BACK_MOST)
  while true do
    local pause = barrier.call(hear, self)
    if pause then
      backoff:reset()
    else
      local was_deaf = self.deaf
      self.deaf, self.index, self.heard = true, nil, nil
      if not was_deaf then self.fn(nil) end -- who relied on it looks from now on
    end
    core.sleep(pause or backoff:next())
  end
end

--- Listens from now on.
-- @tparam function fn as crown.oracle.driven has it
-- @tparam function timeout → seconds for one question
function Bell:listen(fn, timeout)
  self.fn, self.timeout = fn, timeout
  core.detach(run, self)
end

return Bell
