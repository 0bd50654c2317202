--- Subscriptions to what happens: docs/events.md.
-- @module crown.election.events

local core = require "crown.core"
local elections = require "crown.core.election"
local usage = require "crown.check.usage"

local events = {}
local subscribers = {}

local function tell(list, event)
  for _, fn in ipairs(list or {}) do core.spawn(fn, event) end
end

local function sink(name, event)
  event.event = name
  tell(subscribers[name], event)
  tell(subscribers["*"], event)
end

--- Subscribes to an event.
-- @string name "leadership.claimed", …, or "*" for all
-- @tparam function fn called in a task with a table: name, node, phase, oracle, leader, epoch, time, event, and
-- the event's own fields
function events.on(name, fn)
  if type(name) ~= "string" or type(fn) ~= "function" then
    error("crown.on: an event's name and a function expected", 2)
  end
  if not elections.want(name) then
    usage.error("crown.on: there is no event '%s'%s", name, usage.suggest(name, elections.events()))
  end
  if next(subscribers) == nil then elections.on_event(sink) end
  subscribers[name] = subscribers[name] or {}
  table.insert(subscribers[name], fn)
end

return events
