--- The last changes of leadership, for the status page.
-- @module crown.web.history

local events = require "crown.election.events"
local json = require "crown.text.json"

local history = {}

local KEPT = 50
local WORTH_KEEPING = { "leadership.claimed", "leadership.lost", "leadership.evicted", "leadership.abdicated",
  "leadership.uncertain", "leadership.conflict", "monitor.leader_down", "oracle.error", "oracle.amnesia", "child.exited",
  "child.killed", "child.unkillable", "runtime.restarted" }

local kept = {}
local text -- all of it as JSON, until the next change

local function keep(event)
  table.insert(kept, 1, { event = event.event, time = event.time, name = event.name, leader = event.leader,
    epoch = event.epoch, reason = event.reason or event.error })
  kept[KEPT + 1] = nil
  text = nil
end

--- Begins to keep changes.
function history.start()
  for _, name in ipairs(WORTH_KEEPING) do events.on(name, keep) end
end

--- The last changes, the newest first.
-- @treturn table an array of `{ event, time, name, leader, epoch, reason }`
function history.list()
  return kept
end

--- The same as JSON.
-- @treturn string
function history.json()
  text = text or (#kept > 0 and json.encode(kept) or "[]")
  return text
end

return history
