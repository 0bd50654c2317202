--- The status page's second view: what the stores say of all elections, of all hosts.
-- @internal crown.web.store_page

local html = require "crown.web.html"
local span = require "crown.text.span"
local view = require "crown.cron.view"

local store_page = {}

local MOST = 1000 -- elections of a store that are shown
local HEADING = { "Election", "Leader", "Epoch", "Lease", "Last run", "Orders and trouble" }
local KINDS = { "name", "", "epoch", "lease" } -- their CSS classes
local NONE = "–"

local function lease_of(one)
  if one.over then return "over" end
  if one.expires_in then return "ends in " .. span(one.expires_in) end
  return one.renewed_ago and ("renewed %s ago"):format(span(one.renewed_ago)) or NONE
end

-- What is wrong with it, or nil. Of a job the marks in the store tell when it was due, whichever host runs it.
local function wrong_with(one, now)
  local job = view.of(one, now)
  return one.trouble or job and job.overdue and "overdue for " .. span(now - job.overdue) or nil
end

local function level_of(one)
  if one.wrong or one.over then return "bad" end
  return one.ordered and "warn" or ""
end

local function cells_of(one)
  return { one.name, one.node or NONE, (tonumber(one.epoch) or 0) > 0 and ("%d"):format(one.epoch) or NONE, lease_of(one),
    one.ran or NONE, one.wrong or one.ordered or NONE }
end

-- Those that something is wrong with come first.
local function sorted(elections, now)
  local list, rest = {}, {}
  for _, told in ipairs(elections) do
    local one = setmetatable({ wrong = wrong_with(told, now) }, { __index = told })
    table.insert(level_of(one) ~= "" and list or rest, one)
  end
  for _, one in ipairs(rest) do list[#list + 1] = one end
  return list
end

local function row_of(one)
  local level = level_of(one)
  return html.row(HEADING, cells_of(one), function(i, text)
    if i == #HEADING and level ~= "" then return level end
    if i == 4 and one.over then return "lease bad" end
    return text == NONE and "none" or KINDS[i] or ""
  end)
end

local function section_of(one, now)
  local list = sorted(one.elections, now)
  local shown = { unpack(list, 1, math.min(#list, MOST)) }
  local led = 0
  for _, election in ipairs(list) do led = led + (election.node and not election.over and 1 or 0) end
  local said = one.problem and ('<p class="problem">%s</p>'):format(html.escape(one.problem))
    or ('<p class="soft">%d elections, %d led</p>'):format(#list, led)
  local rows = #list > 0 and html.table_of(nil, HEADING, html.map(shown, row_of)) or ""
  local more = #list > #shown and ('<p class="soft">and %d more: <a href="api/store">all as JSON</a></p>'):format(#list - #shown)
  return ("<h2>%s</h2>\n%s\n%s\n%s"):format(html.escape(one.store), said, rows, more or "")
end

-- Draws the page anew, unless somebody uses the keyboard in it.
local SCRIPT = [[
"use strict";
const live = document.querySelector("#live");
async function follow() {
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
    const main = document.querySelector("main");
    if (!main.contains(document.activeElement)) main.replaceWith(next);
    live.className = "on"; live.textContent = "live";
  } catch (problem) { live.className = "off"; live.textContent = "no answer"; }
  setTimeout(follow, document.hidden ? 60000 : 5000);
}
setTimeout(follow, 5000);
]]

--- Renders it.
-- @tparam table told of crown.election.stores.ask
-- @string version of crown-lua
-- @number pid of the runtime
-- @number now the wall clock, in seconds since 1970
-- @treturn string HTML
function store_page.render(told, version, pid, now)
  local sections = html.map(told, function(one) return section_of(one, now) end)
  local main = #told > 0 and sections or '<p class="soft">No election has been declared yet.</p>'
  return html.page { here = "store", title = "Elections in the store – crown-lua", heading = "Elections in the store",
    version = version, pid = pid, main = main, script = SCRIPT }
end

return store_page
