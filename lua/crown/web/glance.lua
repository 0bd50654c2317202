--- What somebody has to know at a glance: how many elections are led here, and what is wrong.
-- @internal crown.web.glance

local advice = require "crown.web.advice"
local settings = require "crown.election.settings"

local glance = {}

local MOST_SHOWN = 100 -- elections in trouble that are told first

local CRASHES, WITHIN = 3, 300 -- so many ends of a command by itself, in so many seconds, are a loop

local function new()
  return { led = 0, away = {}, failing = {}, unfenced = {}, looping = {}, doubted = {}, unkillable = {}, overdue = {},
    failed = {}, troubled = {}, is_first = {} }
end

local function put_first(found, one)
  local key = settings.key(one.name, one.node)
  if found.is_first[key] or #found.troubled == MOST_SHOWN then return end
  found.is_first[key] = true
  table.insert(found.troubled, one)
end

local function look(found, one)
  if one.away then table.insert(one.answers and found.failing or found.away, one.name) end
  if one.child_unfenced then table.insert(found.unfenced, one.name) end
  if one.amnesia then table.insert(found.doubted, one.name) end
  if one.away or one.child_unfenced or one.amnesia then put_first(found, one) end
end

-- @tparam table ends by name of an election: a command's end is its job's, and no crash
local function look_at_changes(found, changes, now, ends)
  local crashes = {}
  for _, change in ipairs(changes) do
    local name, event = change.name, change.event
    if name and event == "child.exited" and not ends[name] and now - change.time < WITHIN then
      crashes[name] = (crashes[name] or 0) + 1
      if crashes[name] == CRASHES then table.insert(found.looping, name) end
    end
    if name and event == "child.unkillable" and now - change.time < WITHIN then table.insert(found.unkillable, name) end
  end
end

-- Those whose command is what is wrong, which their status does not say.
local function look_at_commands(found, find)
  for _, list in ipairs { found.unkillable, found.looping } do
    for _, name in ipairs(list) do
      local one = find(name)
      if one then put_first(found, one) end
    end
  end
end

local function names_of(list)
  table.sort(list)
  local text = table.concat(list, ", ", 1, math.min(#list, 3))
  return #list > 3 and ("%s and %d more"):format(text, #list - 3) or text
end

--- Looks at all elections.
-- @tparam function each_page calls a function with what crown.core.election.glance() gives of a page: how many lead, and the
-- statuses of those that something may be wrong with
-- @tparam table changes of crown.web.history.list
-- @number now the wall clock
-- @tparam[opt] table jobs as of crown.web.jobs
-- @tparam function find a name → the election's status, or nil
-- @treturn table `{ led =, alarms = { { level = "bad" or "warn", text =, first =, key = } … }, troubled = }`: what to do first;
-- the key of crown.web.advice; statuses of the first elections that something is wrong with
function glance.look(each_page, changes, now, jobs, find)
  local found, alarms = new(), {}
  each_page(function(led, some)
    found.led = found.led + led
    for _, one in ipairs(some) do look(found, one) end
  end)
  local ends = {}
  for _, job in ipairs(jobs or {}) do
    ends[job.name] = true
    local list = job.overdue and found.overdue or job.failed > 0 and found.failed
    if list then table.insert(list, job.name) end
  end
  look_at_changes(found, changes, now, ends)
  look_at_commands(found, find)
  for _, said in ipairs(advice) do
    local list = found[said.key]
    if #list > 0 then
      alarms[#alarms + 1] = { key = said.key, level = said.level, text = ("%s: %s"):format(names_of(list), said.text),
        first = said.first }
    end
  end
  return { led = found.led, alarms = alarms, troubled = found.troubled }
end

return glance
