--- What Consul tells of the elections of a prefix: one question that its agent holds open until one of their keys changes. An
-- agent allows one address 200 connections, so a runtime has one for all. It is a hint.
-- @internal crown.consul.watch

local barrier = require "crown.link.barrier"
local core = require "crown.core"
local lock = require "crown.consul.lock"
local place = require "crown.consul.place"
local retry = require "crown.core.retry"

local WAIT = 10 -- seconds that the agent may hold a question open, and a sixteenth more
local APART, PAUSE = 0.05, 1 -- seconds from one question to the next, and where the indexes begin anew
local BACK_FIRST, BACK_MOST = 0.1, 5 -- seconds, where the agent does not answer

local Watch = {}
Watch.__index = Watch

local Follower = {}
Follower.__index = Follower

--- Makes one; nothing is asked yet.
-- @tparam Client client
-- @treturn Watch
function Watch.new(client)
  return setmetatable({ client = client, followers = {}, is_live = false, marks = {} }, Watch)
end

-- The entries of each election, and a mark of each that changes with them; nil where the list is no answer of Consul's.
local function sorted(list)
  if not list then return nil end
  local lists, marks = {}, {}
  for _, entry in ipairs(list) do
    local base = type(entry) == "table" and type(entry.Key) == "string" and entry.Key:match "^(.*/)[^/]*$"
    if not base then return nil end
    lists[base] = lists[base] or {}
    table.insert(lists[base], entry)
    marks[base] = ("%s%s %s\n"):format(marks[base] or "", entry.Key:sub(#base + 1), tostring(entry.ModifyIndex))
  end
  return lists, marks
end

local function tell(self, lists, marks)
  self.marks = marks
  for follower in pairs(self.followers) do
    local mark = marks[follower.base] or ""
    if not follower.is_live or mark ~= follower.mark then
      follower.is_live, follower.mark = true, mark
      follower.on_change(lock.all(lists[follower.base] or {}, follower.base))
    end
  end
end

-- @return seconds to wait; or nil and a message
local function hear(self)
  local path = ("%s?recurse&index=%.0f&wait=%ds"):format(place.path(self.client.prefix), self.index or 0, WAIT)
  local answer, problem = self.client:ask({ path = path, held = true }, WAIT + WAIT / 16 + self.timeout)
  if not answer then return nil, problem end
  local index = self.client.index(answer)
  local lists, marks = sorted(index and lock.entries(answer))
  if not lists then return self.client:strange() end
  local goes_on = index >= (self.index or 0)
  self.index, self.is_live = goes_on and math.max(index, 1) or nil, true
  tell(self, lists, marks)
  return goes_on and APART or PAUSE
end

local function lose(self)
  self.is_live, self.index, self.marks = false, nil, {}
  for follower in pairs(self.followers) do
    local was_live = follower.is_live
    follower.is_live = false
    if was_live then follower.on_change(nil) end
  end
end

local function run(self)
  local backoff = retry.new(BACK_FIRST, BACK_MOST)
  while next(self.followers) do
    local pause = barrier.call(hear, self)
    if pause then backoff:reset() else lose(self) end
    core.sleep(pause or backoff:next())
  end
  self.is_running, self.is_live, self.index, self.marks = false, false, nil, {}
end

--- Follows an election. Who looks at it after this has missed nothing.
-- @string base of the election
-- @number timeout seconds for a question that is not held
-- @tparam function on_change gets what crown.consul.lock.all reads; nothing: changes are not told any more
-- @treturn Follower `is_live`: whether changes are told for now
function Watch:follow(base, timeout, on_change)
  local follower = setmetatable({ watch = self, base = base, on_change = on_change, is_live = self.is_live,
    mark = self.marks[base] or "" }, Follower)
  self.followers[follower] = true
  self.timeout = math.max(self.timeout or 0, timeout)
  if not self.is_running then
    self.is_running = true
    core.detach(run, self)
  end
  return follower
end

--- Ends it.
function Follower:stop()
  self.watch.followers[self] = nil
  self.is_live = false
end

return Watch
