--- One watch on etcd for many elections: over everything below a prefix, or, where there is none, over the keys of each of
-- them; one connection either way. It goes on where it broke off. A range that nobody holds any more is left out when it is
-- opened anew.
-- @internal crown.etcd.watch

local barrier = require "crown.link.barrier"
local conditions = require "crown.link.conditions"
local core = require "crown.core"
local json = require "crown.text.json"
local promise = require "crown.core.promise"
local retry = require "crown.core.retry"
local Shared = require "crown.link.shared"

local Watch = {}
Watch.__index = Watch

local WINDOW = 0.01 -- seconds in which ranges gather that are watched from then on
local QUIET_LEAST, QUIET_MOST = 1, 10 -- seconds without a word after which the stream is opened anew
local RANGES_AT_ONCE = 100 -- so many more of them, so many times as long

-- One answer: that a range is watched, that it is not any more, or what happened to keys. @return whether to read on; why not
local function hear(self, result)
  local range = self.ranges[tonumber(result.watch_id or 0)]
  if not range and result.canceled then -- all of them: its answer is for a watch -1
    local problem = "etcd: " .. tostring(result.cancel_reason)
    self.client:refused(self.stream, problem)
    return false, problem
  end
  if not range then return true end
  if result.canceled then
    self.again = range.from ~= nil -- at once, but not over and over
    range.from = nil -- what is between is lost: compacted
    self.on_missed()
    return false
  end
  -- Where a watch goes on, what happened meanwhile comes after the word that it is created, and might not come.
  if not (result.created and range.from) then range.from = tonumber(result.header.revision) + 1 end
  range.created = range.created or result.created
  for _, event in ipairs(result.events or {}) do self.on_event(event.type or "PUT", event.kv.key, event.kv.value) end
  return true
end

-- What this stream was asked for; what came later stands behind it.
local function is_created(self)
  for i = 1, self.opened do
    if not self.ranges[i].created then return false end
  end
  return true
end

-- Answers those whose ranges this stream was asked for. @return whether nobody is left, who needs another one
local function answer(self)
  local left = {}
  for _, waiting in ipairs(self.waiting) do
    if waiting.last <= self.asked then waiting.promise:resolve(true) else left[#left + 1] = waiting end
  end
  self.waiting = left
  return #left == 0
end

local function enter(self, state)
  self.state, self.since = state, core.now()
end

local function is_event(event)
  return type(event) == "table" and type(event.kv) == "table" and type(event.kv.key) == "string"
end

-- What a line of the stream says, if it is one of etcd's.
local function result_of(line)
  local found = json.object(line)
  local result = found and found.result
  if type(result) ~= "table" then return nil end
  if result.canceled then return result end -- of what was compacted, without a revision
  if type(result.header) ~= "table" or not tonumber(result.header.revision) then return nil end
  if result.events and type(result.events) ~= "table" then return nil end
  for _, event in ipairs(result.events or {}) do
    if not is_event(event) then return nil end
  end
  return result
end

local function quiet_most(self)
  return math.max(QUIET_LEAST, math.min(QUIET_MOST, 2 * self.timeout)) * math.max(1, #self.ranges / RANGES_AT_ONCE)
end

-- Where nothing happens etcd says nothing, and a load balancer that hangs goes on acknowledging. Nothing can be asked on a
-- stream over HTTP/1.1, so a new one, which goes on where this one is, has to be answered. @return whether it is well so far
local function renew(self, stream)
  if not self.whole then
    self.client:silent(stream)
    return nil, "no answer to a new watch"
  end
  if self:settled() then
    self.backoff:reset()
    self.problem = nil
  end
  self.again, self.renewed = true, true
  return true
end

-- @return nil and a message where the stream says what etcd does not, or nothing where it should
local function read(self, stream)
  while self.stream == stream do
    local line, _, code = stream:line(self.whole and quiet_most(self) or self.timeout)
    if code == "timeout" and self.stream == stream then return renew(self, stream) end
    if not line then return true end
    self.heard_at = core.now()
    local result = result_of(line)
    if not result then return nil, "unexpected message in a watch of etcd" end
    local on, problem = hear(self, result)
    if not on then return not problem or nil, problem end
    if not self.whole and is_created(self) then
      self.whole = true
      if not self.renewed then enter(self, "open") end
      if not core.atomic(answer, self) then
        self.again = true
        return true
      end
    end
  end
end

-- Leaves out what nobody holds any more, and ends it in the same step where nothing is left: who comes next begins anew.
local function creates(self)
  local held, list = {}, {}
  for _, range in ipairs(self.ranges) do
    if next(range.holders) then
      local i = #held + 1
      range.created = false
      held[i], list[i] = range, { key = range.key, range_end = range.range_end, watch_id = ("%d"):format(i),
        start_revision = range.from and ("%.0f"):format(range.from) }
    else
      self.known[range.key] = nil
    end
  end
  self.whole, self.stream, self.ranges, self.opened, self.asked = false, nil, held, #held, self.last
  if #held == 0 then self:close() end
  return list
end

-- While it is opened anew it is as before.
function Watch:settled()
  return (self.whole or self.renewed) and self.state == "open" and core.now() - self.since >= retry.SETTLED
end

local function run(self)
  while self.running do
    local list = core.atomic(creates, self)
    if not self.running then return end
    if not self.renewed then enter(self, "connecting") end
    local stream, problem = self.client:open_watch(list)
    self.stream = stream
    if stream then
      problem = select(2, barrier.call(read, self, stream)) or "the server ended the watch"
      stream:close()
    end
    if self.again then
      self.again = false
    elseif self.running then
      if self:settled() then self.backoff:reset() end
      self.problem, self.reconnects = problem, self.reconnects + ((self.whole or self.renewed) and 1 or 0)
      self.renewed = false
      enter(self, "broken")
      core.sleep(self.backoff:next())
    end
  end
end

-- Where ranges came meanwhile the stream is opened anew, with all of them; where it is just being opened, after that.
local function open(self)
  if self.whole and self.asked == self.last then return true end
  local one = promise()
  self.waiting[#self.waiting + 1] = { promise = one, last = self.last }
  if not self.running then
    self.running, self.renewed = true, false
    conditions.add(self)
    core.detach(run, self)
  elseif self.asked < self.last and self.stream then
    self.again = true
    self.stream:close()
  end
  local fine, problem, code = one:wait(self.timeout)
  return fine, not fine and (self.problem or problem) or nil, code
end

--- Makes one; nothing is asked yet.
-- @tparam table options `client`; `timeout` seconds; `on_event(what, key, value)`: "PUT" or "DELETE", key and value encoded;
-- `on_missed()`: some may have been missed. Neither may wait
-- @treturn Watch
function Watch.new(options)
  local self = setmetatable({ client = options.client, timeout = options.timeout, on_event = options.on_event,
    on_missed = options.on_missed, ranges = {}, known = {}, waiting = {}, backoff = retry.new(), reconnects = 0,
    last = 0, asked = 0 }, Watch)
  self.openings = Shared.new(function() return open(self) end, WINDOW)
  return self
end

local function hold(self, range, holder)
  local known = self.known[range.key]
  if not known then
    known = { key = range.key, range_end = range.range_end, holders = setmetatable({}, { __mode = "k" }) }
    self.known[range.key] = known
    self.ranges[#self.ranges + 1], self.last = known, self.last + 1
  end
  known.holders[holder] = true
  return known.created
end

--- Sees to it that a range is watched, for as long as somebody holds it.
-- @tparam table range `key` and `range_end`, encoded
-- @tparam[opt] table holder until it lets go, or nobody knows it any more; without one as long as the watch
-- @treturn boolean true when it is; or nil, message, code
function Watch:over(range, holder)
  if core.atomic(hold, self, range, holder or self) then return true end
  return self.openings:ask()
end

--- Lets go of a range. It is watched until the stream is opened anew: who comes back soon finds it watched.
-- @tparam table range
-- @tparam table holder
function Watch:let_go(range, holder)
  local known = self.known[range.key]
  if known then known.holders[holder] = nil end
end

--- How far it has come with a range: what happened up to there has been told.
-- @tparam table range
-- @treturn number the revision
function Watch:heard(range)
  local known = self.known[range.key]
  return known and known.from and known.from - 1 or 0
end

--- How it is: "connecting", "open", "proven" or "broken". See crown.link.conditions.
function Watch:condition()
  local proven = self:settled()
  return { store = "etcd watch", server = self.client:place(), state = proven and "proven" or self.state, since = self.since,
    heard = self.heard_at, reconnects = self.reconnects, problem = not proven and self.problem or nil }
end

--- Ends it.
function Watch:close()
  self.running = false
  conditions.remove(self)
  if self.stream then self.stream:close() end
end

return Watch
