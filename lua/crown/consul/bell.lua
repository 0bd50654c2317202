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
local APART = 0.05 -- seconds from one question to the next
local ALL_APART = 1 -- seconds at least from one look of all followers to the next
local LAST = 8 -- rings of before that a ring repeats, for those who were between two questions then
local BACK_FIRST, BACK_MOST = 0.1, 5 -- seconds, where the agent does not answer

--- Makes one; nothing is asked yet.
-- @tparam Client client
-- @bool is_deaf until it hears
-- @treturn Bell `deaf`: whether nothing is heard for now
function Bell.new(client, is_deaf)
  return setmetatable({ client = client, deaf = is_deaf, id = nonce(), key = client.prefix .. place.BELL, last = {} }, Bell)
end

-- What a ring says is known here, with what it repeats.
local function note(self, index, news)
  local last = news.last or {}
  self.known, self.last = index, { unpack(last, math.max(1, #last - LAST + 2)) }
  self.last[#self.last + 1] = { index = index, after = news.after, by = news.by, name = news.name }
end

--- What rings it, as a part of a transaction. Where nobody has rung since the last time that is known here, it says so: then who
-- heard that one, or one of those that it repeats, has missed nothing.
-- @tparam table write as crown.register.session has it
-- @bool is_plain whether others have rung meanwhile
-- @treturn table an operation
-- @treturn table what it says, for `rang`
function Bell:ring(write, is_plain)
  local after = not is_plain and self.known or nil
  local news = { by = self.id, name = write.name, text = write.frees and write.text or nil, after = after,
    last = after and self.last or nil }
  return { Verb = after and "cas" or "set", Key = self.key, Value = base64.encode(json.encode(news)), Index = after }, news
end

--- Takes note that it was rung from here.
-- @number index of the transaction
-- @tparam table news as ring returned them
function Bell:rang(index, news) note(self, index, news) end

-- @return the entry, or false; or nil and a message
local function read(self, answer)
  if answer.status == 404 then return false end
  local list = json.list(answer.body)
  local entry = list and list[1]
  local index = type(entry) == "table" and tonumber(entry.ModifyIndex)
  if not index then return nil, select(2, self.client:strange()) end
  local text = type(entry.Value) == "string" and base64.decode(entry.Value)
  local news = text and json.object(text) or {}
  if type(news.last) ~= "table" then news.last = nil end
  return { index = index, news = news }
end

-- Thousands may follow.
local function have_all_look(self)
  local now = core.now()
  local wait = math.max(0, (self.all_looked or -math.huge) + ALL_APART - now)
  if wait > 0 then core.sleep(wait) end
  self.all_looked = now + wait
  self.fn(nil)
end

-- The rings that follow the one that was heard last. @return an array; nil where one was missed, or nobody can say
local function since(self, entry)
  local news, all = entry.news, {}
  for _, one in ipairs(news.last or {}) do all[#all + 1] = one end -- it may be longer than unpack takes
  all[#all + 1] = { index = entry.index, after = news.after, by = news.by, name = news.name, text = news.text }
  local at, missing = self.heard, {}
  for _, one in ipairs(all) do
    if type(one) == "table" and type(one.name) == "string" and one.after == at then
      missing[#missing + 1], at = one, one.index
    end
  end
  return at == entry.index and missing or nil
end

local function tell(self, entry)
  if not entry or entry.index == self.heard then return end
  local missing = since(self, entry)
  self.heard = entry.index
  note(self, entry.index, entry.news)
  if not missing then return have_all_look(self) end
  for _, one in ipairs(missing) do
    local text = type(one.text) == "string" and one.text
    self.fn(one.name, text and { text = text, version = ("%.0f"):format(entry.index) } or nil, one.by == self.id)
  end
end

-- @return seconds to the next question; or nil and a message
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
  if is_first then
    self.heard = entry and entry.index or 0
    self.known, self.last = self.heard, {}
    have_all_look(self)
  else
    tell(self, entry)
  end
  return APART
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
