--- The HTTP endpoint: metrics, health, who leads, and the status page. GET only, and nothing in it changes anything.
-- @module crown.web

local conditions = require "crown.link.conditions"
local core = require "crown.core"
local elections = require "crown.core.election"
local history = require "crown.web.history"
local http = require "crown.core.http"
local json = require "crown.text.json"
local metrics = require "crown.web.metrics"
local page = require "crown.web.page"
local usage = require "crown.check.usage"

local web = {}

local TEXT, JSON, HTML = "text/plain; charset=utf-8", "application/json", "text/html; charset=utf-8"

local PAGE = 500 -- elections at a time: what comes from C cannot be interrupted, and others want their turn

-- The status of the first elections, or of all.
local function statuses(most)
  local list = {}
  repeat
    local some = elections.all(#list, math.min(PAGE, most - #list))
    for _, one in ipairs(some) do list[#list + 1] = one end
  until #some < PAGE or #list == most
  return list
end

local function state(most)
  return { node = core.node(), version = core.version, pid = core.pid, total = elections.count(), elections = statuses(most),
    changes = history.list() }
end

local function as_json(most)
  return 200, JSON, json.line(state(most), "elections", "changes")
end

local function leader(name)
  local one = elections.find(name)
  if not one then return 404, TEXT, "no such election here\n" end
  local leads = one.phase == "leading" and one.acting
  return leads and 200 or 503, JSON, json.line { name = name, leading = leads or false, leader = one.leader,
    epoch = one.epoch }
end

local pages = {
  ["/"] = function() return 200, HTML, page.render(state(page.MOST)) end,
  ["/healthz"] = function() return 200, TEXT, "ok\n" end,
  ["/metrics"] = function()
    return 200, metrics.TYPE, metrics.render(statuses(math.huge), conditions.all(), elections.counts())
  end,
  ["/api/elections"] = function() return as_json(math.huge) end,
}

--- Answers a request.
-- @string path
-- @treturn number the status
-- @treturn string the content type
-- @treturn string the body
function web.answer(path)
  if pages[path] then return pages[path]() end
  local most = tonumber(path:match "^/api/elections/(%d+)$")
  if most then return as_json(most) end
  local name = path:match "^/leader/(.+)$"
  if name then return leader(name) end
  return 404, TEXT, "there are /, /metrics, /healthz, /leader/NAME, /api/elections and /api/elections/MOST\n"
end

--- Takes an address apart.
-- @string where "127.0.0.1:8080", "[::1]:8080", ":8080" or "8080"; without an address it is loopback
-- @treturn string the address
-- @treturn number the port
-- @raise a usage error
function web.parse(where)
  local address, port = where:match "^%[([%x:.]+)%]:(%d+)$"
  if not address then address, port = where:match "^([%d.]*):(%d+)$" end
  port = tonumber(port or where:match "^%d+$")
  if not port or port > 65535 then
    usage.error("--http: '%s' is not ADDR:PORT, such as 127.0.0.1:9090 or [::1]:9090", where)
  end
  return address and address ~= "" and address or "127.0.0.1", port
end

--- Serves, until the runtime ends.
-- @string where as web.parse takes it
-- @raise a usage error where that address cannot be had
function web.serve(where)
  local address, port = web.parse(where)
  local bound, problem = http.serve(address, port, web.answer)
  if not bound then usage.error("--http: %s", (problem:gsub("^http: ", ""))) end
  history.start()
  core.log("info", "http.listening", { address = address, port = bound })
end

return web
