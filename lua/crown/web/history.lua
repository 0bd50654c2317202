--- The last changes of leadership, for the status page.
-- @internal crown.web.history

local events = require "crown.election.events"
local json = require "crown.text.json"

local history = {}

local KEPT = 50
local WORTH_KEEPING = { "leadership.claimed", "leadership.acting", "leadership.lost", "leadership.evicted",
  "leadership.abdicated", "leadership.changed", "leadership.uncertain", "leadership.conflict", "monitor.leader_down",
  "oracle.error", "oracle.amnesia",
  "child.exited", "child.killed", "child.silent", "child.unfenced", "child.unkillable", "child.keeper_late", "runtime.restarted" }
local MOST_COUNTED = 1000 -- elections whose events are counted one by one: labels cost who scrapes them

local kept = {}
local text -- all of it as JSON, until the next change
local counts, counted, restarts = {}, 0, 0

local function count(event)
  if event.event == "runtime.restarted" then restarts = event.restarts or restarts end
  if not event.name then return end
  if not counts[event.name] then
    if counted == MOST_COUNTED then return end
    counts[event.name], counted = {}, counted + 1
  end
  local of = counts[event.name]
  of[event.event] = (of[event.event] or 0) + 1
end

local function keep(event)
  count(event)
  if event.event == "leadership.changed" and event.phase == "leading" then return end -- leadership.claimed has said it
  table.insert(kept, 1, { event = event.event, time = event.time, name = event.name, leader = event.leader,
    epoch = event.epoch, reason = event.reason or event.error, code = event.code, signal = event.signal, pid = event.pid })
  kept[KEPT + 1] = nil
  text = nil
end

--- Begins to keep changes.
function history.start()
  events.listen(WORTH_KEEPING, keep)
end

--- How often each of them happened to each election, of the first thousand that anything happened to.
-- @treturn table `{ [election] = { [event] = count } }`
function history.counts()
  return counts
end

--- How often the supervisor has restarted the runtime.
-- @treturn number
function history.restarts()
  return restarts
end

--- The last changes, the newest first.
-- @treturn table an array of `{ event, time, name, leader, epoch, reason }`
function history.list()
  return kept
end

--- The same as JSON.
-- @treturn string
function history.json()
  text = text or (#kept > 0 and json.valid(kept) or "[]")
  return text
end

return history
