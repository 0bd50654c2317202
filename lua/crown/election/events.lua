--- Subscriptions to what happens: docs/events.md.
-- @internal crown.election.events

local elections = require "crown.core.election"
local subscription = require "crown.core.subscription"
local usage = require "crown.check.usage"

local events = {}
local subscribers = {}

-- Those that have ended with the term that made them are forgotten.
local function tell(list, event)
  local kept = 0
  for i = 1, #list do
    local one = list[i]
    list[i] = nil
    if one:tell(event) then
      kept = kept + 1
      list[kept] = one
    end
  end
end

-- Functions of this program's own, called at once: they may not wait.
local listeners = {}

local function sink(name, event)
  event.event = name
  for _, fn in ipairs(listeners[name] or {}) do fn(event) end
  tell(subscribers[name] or {}, event)
  tell(subscribers["*"] or {}, event)
end

-- Crown's telemetry has its names as lists: [:crown, :leadership, :claimed].
local function dotted(name)
  local words = {}
  for word in name:gmatch "[%w_]+" do words[#words + 1] = word end
  if words[1] == "crown" then table.remove(words, 1) end
  return table.concat(words, ".")
end

--- Subscribes to an event; inside a term until its end.
-- @string name "leadership.claimed", …, or "*" for all
-- @tparam function fn called in a task with a table: name, node, phase, oracle, leader, epoch, time, event, and
-- the event's own fields
function events.on(name, fn)
  if type(name) ~= "string" then usage.error("crown.on: an event's name expected, not a %s", type(name)) end
  if not elections.want(name) then
    usage.error("crown.on: there is no event '%s'%s; docs/events.md has the list", name,
      usage.suggest(dotted(name), elections.events()))
  end
  if type(fn) ~= "function" then
    usage.error("crown.on: a function expected for '%s', not a %s: crown.on('%s', function(event) … end)", name, type(fn), name)
  end
  local one, problem = subscription(fn)
  if not one then error("crown.on: " .. problem, 2) end
  elections.on_event(sink)
  subscribers[name] = subscribers[name] or {}
  table.insert(subscribers[name], one)
end

--- Listens to events without a task for each: for what keeps books of many elections.
-- @tparam table names of events
-- @tparam function fn called with each event as crown.on gives it; it may not wait
function events.listen(names, fn)
  for _, name in ipairs(names) do
    assert(elections.want(name))
    listeners[name] = listeners[name] or {}
    table.insert(listeners[name], fn)
  end
  elections.on_event(sink)
end

return events
