--- What Consul tells of one election: a question that its agent holds open until one of the election's keys changes. It is a
-- hint.
-- @internal crown.consul.watch

local barrier = require "crown.link.barrier"
local core = require "crown.core"
local lock = require "crown.consul.lock"
local place = require "crown.consul.place"
local retry = require "crown.core.retry"

local Watch = {}
Watch.__index = Watch

local WAIT = 10 -- seconds that the agent may hold a question open, and a sixteenth more
local APART, PAUSE = 0.05, 1 -- seconds from one question to the next, and where the indexes begin anew
local BACK_FIRST, BACK_MOST = 0.1, 5 -- seconds, where the agent does not answer

--- Begins one.
-- @tparam Client client
-- @string base of the election
-- @number timeout seconds for a question that is not held
-- @tparam function on_change gets what crown.consul.lock.all reads; nothing: changes are not told any more
-- @treturn Watch `is_live`: whether changes are told for now
function Watch.new(client, base, timeout, on_change)
  local self = setmetatable({ client = client, base = base, timeout = timeout, on_change = on_change, is_live = false }, Watch)
  core.detach(self.run, self)
  return self
end

-- @return seconds to wait; or nil and a message
local function hear(self)
  local path = ("%s?recurse&index=%.0f&wait=%ds"):format(place.path(self.base), self.index or 0, WAIT)
  local answer, problem = self.client:ask({ path = path, held = true }, WAIT + WAIT / 16 + self.timeout)
  if not answer then return nil, problem end
  local index = self.client.index(answer)
  local found = index and lock.all(lock.entries(answer), self.base)
  if not found then return self.client:strange() end
  local is_news, goes_on = not self.is_live or index ~= self.index, index >= (self.index or 0)
  self.index, self.is_live = goes_on and math.max(index, 1) or nil, true
  if is_news and not self.over then self.on_change(found) end
  return goes_on and APART or PAUSE
end

local function lose(self)
  local was_live = self.is_live
  self.is_live, self.index = false, nil
  if was_live and not self.over then self.on_change(nil) end
end

--- Hears until it is ended.
function Watch:run()
  local backoff = retry.new(BACK_FIRST, BACK_MOST)
  while not self.over do
    local pause = barrier.call(hear, self)
    if pause then backoff:reset() else lose(self) end
    core.sleep(pause or backoff:next())
  end
end

--- Ends it.
function Watch:stop() self.over = true end

return Watch
