--- The status page: a plain table for whoever has no scripts; with them it follows /api/elections.
-- @internal crown.web.page

local barred = require "crown.text.barred"
local html = require "crown.web.html"
local jobs = require "crown.web.jobs"
local own_rules = require "crown.text.own_rules"
local known_leader = require "crown.text.known_leader"
local script = require "crown.web.script"

local page = {}

--- How many elections it shows.
page.MOST = 1000

local LABELS = { "Election", "State", "Leader", "Epoch", "Lease", "For", "Command", "Store", "Last change" }
local KINDS = { "name", "state", "leader", "epoch", "lease", "for", "command", "store", "change" } -- their CSS classes
local NONE = "–"

local escape, map, moment = html.escape, html.map, html.moment

local function seconds(value)
  return value and ("%.1f s"):format(value) or NONE
end

-- What a store that may have forgotten makes wait for is nobody's lease.
local function lease_of(one)
  if one.expires_in and not one.amnesia then return "ends in " .. seconds(one.expires_in) end
  return one.phase ~= "leading" and one.next_claim_in and "next claim in " .. seconds(one.next_claim_in) or NONE
end

local function phase_of(one)
  local badge = ('<span class="badge %s">%s</span>'):format(one.phase, one.phase)
  if one.acts_in then return ('%s <span class="soft">acts in %s</span>'):format(badge, seconds(one.acts_in)) end
  local why = barred(one, seconds)
  return why and ('%s <span class="soft">may not lead: %s</span>'):format(badge, escape(why)) or badge
end

local function epoch_of(one)
  return one.epoch > 0 and ("%d"):format(one.epoch) or NONE
end

local function store_of(one)
  if one.answers then return ("%s: answers with a failure for %s"):format(one.oracle, seconds(one.away)) end
  if one.away then return ("%s: no answer for %s"):format(one.oracle, seconds(one.away)) end
  return one.amnesia and one.oracle .. ": may have forgotten who leads" or one.oracle
end

local function child_of(one)
  if one.child then return ("pid %d%s"):format(one.child, one.child_unfenced and ", works on without leading" or "") end
  if one.child_signal then return ("ended by signal %d"):format(one.child_signal) end
  return one.child_code and ("ended with %d"):format(one.child_code) or NONE
end

local function change_text(change)
  local parts = { (change.event:gsub("%.", ": ", 1)), change.leader and "leader " .. change.leader,
    (change.epoch or 0) > 0 and ("epoch %d"):format(change.epoch), change.reason }
  local text = {}
  for i = 1, 4 do
    if parts[i] then text[#text + 1] = parts[i] end
  end
  return table.concat(text, " · ")
end

local function soft(text) return text and (' <span class="soft">%s</span>'):format(escape(text)) or "" end

-- Of several candidates of one election here, each has a node of its own.
local function name_of(one, node)
  local link = ('<a href="history/%s">%s</a>'):format(escape(one.name), escape(one.name))
  return link .. soft(one.node ~= node and one.node) .. soft(own_rules.words(one))
end

local function row_of(one, latest, node)
  local change = latest[one.name]
  local cells = { name_of(one, node), phase_of(one),
    escape(known_leader(one, seconds) or NONE), epoch_of(one), lease_of(one), seconds(one.since), child_of(one),
    escape(store_of(one)),
    change and escape(moment(change.time) .. " " .. change_text(change)) or NONE }
  local alarm = { command = one.child_unfenced and " bad", store = one.away and " bad" or one.amnesia and " warn" }
  for i, cell in ipairs(cells) do
    local running = KINDS[i] == "command" and one.child
    local class = KINDS[i] .. (alarm[KINDS[i]] or cell == NONE and " none" or running and " running" or "")
    cells[i] = ('<td data-label="%s" class="%s">%s</td>'):format(LABELS[i], class, cell)
  end
  table.insert(cells, 3, '<td class="break"></td>')
  return "<tr>" .. table.concat(cells) .. "</tr>"
end

local function change_of(change)
  return ('<li class="%s"><time>%s</time>%s%s</li>'):format(change.event:match "%.(.*)$", moment(change.time),
    change.name and escape(change.name) .. " · " or "", escape(change_text(change)))
end

-- What is wrong, what to do first, and where more of it stands.
local function alarm_of(alarm)
  if not alarm.key then return ('<li class="%s">%s</li>'):format(alarm.level, escape(alarm.text)) end
  return ('<li class="%s">%s<p>%s <a href="help#%s">More</a></p></li>'):format(alarm.level, escape(alarm.text),
    escape(alarm.first), alarm.key)
end

local NOT_TOLD = "-" -- of crown.cron.cells

local function job_row(heading, one)
  return html.row(heading, one.cells, function(i, cell)
    return i == #one.cells and jobs.level(one) or cell == NOT_TOLD and "none" or ""
  end)
end

local function more_of(count, path)
  return count > 0 and ('<p class="soft">and %d more: <a href="%s">all as JSON</a></p>'):format(count, path) or ""
end

local function jobs_of(list)
  if not list then return "" end
  local shown = { unpack(list, 1, math.min(#list, page.MOST)) }
  local rows = map(shown, function(one) return job_row(list.heading, one) end)
  return ("<h2>Jobs</h2>\n%s\n%s"):format(html.table_of("jobs", list.heading, rows), more_of(#list - #shown, "api/jobs"))
end

local function js_array(list)
  return ('["%s"]'):format(table.concat(list, '", "'))
end

local SCRIPT = script:gsub("@(%u+)@", { LABELS = js_array(LABELS), KINDS = js_array(KINDS) })

local MAIN = [[
<ul id="alarms" role="status">
$alarms
</ul>
<input id="filter" type="search" placeholder="Filter by name, state, leader or oracle" aria-label="Filter" hidden>
$elections
$more
$jobs
<h2>Last changes</h2>
<ol>
$changes
</ol>
<p id="empty" class="soft"$hidden>Nothing has changed since this page is served.</p>]]

local function latest_of(changes)
  local latest = {}
  for _, change in ipairs(changes) do
    if change.name and not latest[change.name] then latest[change.name] = change end
  end
  return latest
end

--- Renders the page.
-- @tparam table state `node`, `version`, `pid`, `elections`, `changes`, `total`; `led` and `alarms` of crown.web.glance; `jobs`
-- of crown.web.jobs, or nil
-- @treturn string HTML
function page.render(state)
  local latest, led = latest_of(state.changes), ("%d of %d led here"):format(state.led, state.total)
  local alarms = #state.alarms > 0 and state.alarms or { { level = "good", text = ("All is well: %s."):format(led) } }
  local rows = map(state.elections, function(one) return row_of(one, latest, state.node) end)
  local main = MAIN:gsub("%$(%l+)", { alarms = map(alarms, alarm_of), elections = html.table_of("elections", LABELS, rows),
    changes = map(state.changes, change_of), jobs = jobs_of(state.jobs), hidden = #state.changes > 0 and " hidden" or "",
    more = more_of(state.total - #state.elections, "api/elections") })
  return html.page { here = "./", title = escape(("%s%s – %s"):format(#state.alarms > 0 and "⚠ " or "", led, state.node)),
    heading = "Elections on " .. escape(state.node), version = state.version, pid = state.pid, main = main, script = SCRIPT }
end

return page
