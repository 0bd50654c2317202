--- The terms of one election that this host has seen, as `crown-lua history NAME` shows them.
-- @internal crown.web.terms_page

local control = require "crown.control"
local elections = require "crown.core.election"
local html = require "crown.web.html"
local span = require "crown.text.span"
local terms = require "crown.election.terms"

local terms_page = {}

local MOST = 100 -- terms that are shown, the newest first
local HEADING = { "Began", "Leader", "Epoch", "Lasted", "Ended" }
local NONE = "–"

-- A term of another host is seen to end when the next one begins.
local function end_of(term, now)
  if term.reason then return term.reason end
  if term.ended then return "the next one was seen" end
  return now and now.leader == term.leader and now.epoch == term.epoch and "leads now" or "not seen to end"
end

local function cells_of(term, now)
  return { html.moment(term.began), term.leader or NONE, (term.epoch or 0) > 0 and ("%d"):format(term.epoch) or NONE,
    term.ended and (term.at_most and "< " or "") .. span(term.ended - term.began) or NONE, end_of(term, now) }
end

--- Renders it.
-- @string name of the election
-- @string version of crown-lua
-- @number pid of the runtime
-- @treturn string HTML; or nil: this host has seen no term of it
function terms_page.render(name, version, pid)
  local list, problems = terms.read(control.places(), name)
  local now = elections.find(name)
  if #list == 0 and not now then return nil end
  local rows = {}
  for i = #list, math.max(1, #list - MOST + 1), -1 do
    rows[#rows + 1] = html.row(HEADING, cells_of(list[i], now), function(_, text) return text == NONE and "none" or "" end)
  end
  local main = #rows > 0 and html.table_of("terms", HEADING, table.concat(rows, "\n"))
    or '<p class="soft">This host has seen no term of it yet.</p>'
  for _, problem in ipairs(problems) do main = ('<p class="problem">%s</p>\n'):format(html.escape(problem)) .. main end
  return html.page { title = html.escape(name) .. " – crown-lua", heading = "Terms of " .. html.escape(name), version = version,
    pid = pid, main = main, up = "../" }
end

return terms_page
