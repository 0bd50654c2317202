--- The HTTP endpoint: metrics, health, who leads, and the status page. GET only, and nothing in it changes anything.
-- @internal crown.web

local conditions = require "crown.link.conditions"
local core = require "crown.core"
local elections = require "crown.core.election"
local glance = require "crown.web.glance"
local help = require "crown.web.help"
local history = require "crown.web.history"
local http = require "crown.core.http"
local jobs = require "crown.web.jobs"
local json = require "crown.text.json"
local kept = require "crown.web.kept"
local metrics = require "crown.web.metrics"
local own_rules = require "crown.text.own_rules"
local page = require "crown.web.page"
local settings = require "crown.election.settings"
local store_page = require "crown.web.store_page"
local stores = require "crown.election.stores"
local terms_page = require "crown.web.terms_page"
local usage = require "crown.check.usage"

local web = {}

local TEXT, JSON, HTML = "text/plain; charset=utf-8", "application/json", "text/html; charset=utf-8"

local TTL_UNKNOWN = 30 -- seconds, of an oracle that does not tell its TTL
local STORES_KEPT = 2 -- seconds that the answer of a store lasts
local PAGE = 500 -- elections at a time: what comes from C cannot be interrupted, and others want their turn
local BORN = ("%d.%x."):format(core.pid, os.time()) -- begins our stamps: another runtime's say nothing here

local function stamp()
  return BORN .. ("%d"):format(elections.stamp())
end

-- Calls fn with the statuses of the first elections, or of all, a page at a time.
local function each_page(most, fn)
  local done = 0
  repeat
    local some = own_rules.add(elections.all(done, math.min(PAGE, most - done)), elections.declared)
    fn(some)
    done = done + #some
  until #some < PAGE or done == most
end

local function statuses(most)
  local list = {}
  each_page(most, function(some)
    for _, one in ipairs(some) do list[#list + 1] = one end
  end)
  return list
end

-- The first elections, those that something is wrong with before all others, also where they are not among the first.
local function troubled_first(list, troubled)
  local is_there, sorted = {}, {}
  for i, one in ipairs(troubled) do
    is_there[settings.key(one.name, one.node)], sorted[i] = true, one
  end
  for _, one in ipairs(list) do
    if not is_there[settings.key(one.name, one.node)] then sorted[#sorted + 1] = one end
  end
  return { unpack(sorted, 1, math.min(#sorted, page.MOST)) }
end

-- Calls fn for each page of all elections with how many lead, and the statuses of those that may be in trouble: most are not, and
-- ten thousand statuses cost more than all else that is told of them.
local function each_glance(fn)
  local done = 0
  repeat
    local seen, led, troubled = elections.glance(done, PAGE)
    fn(led, own_rules.add(troubled, elections.declared))
    done = done + seen
  until seen < PAGE
end

local function seen_at_a_glance()
  return kept.get("glance", function() return glance.look(each_glance, history.list(), os.time(), jobs.all(), elections.find) end)
end

local function as_json(list, at, delta)
  local seen = seen_at_a_glance()
  local head = json.valid({ node = core.node(), version = core.version, pid = core.pid, total = elections.count(), stamp = at,
    delta = delta, led = seen.led, alarms = seen.alarms, troubled = seen.troubled }, "alarms", "troubled")
  return 200, JSON, ('%s,"elections":[%s],"changes":%s}\n'):format(head:sub(1, -2), list, history.json())
end

-- A list without its brackets; cjson writes an empty one as an object.
local function items(list)
  return json.valid(list):sub(2, -2)
end

local function whole(most)
  local at, parts = stamp(), {}
  each_page(most, function(some)
    if #some > 0 then parts[#parts + 1] = items(some) end
  end)
  return as_json(table.concat(parts, ","), at)
end

-- What has changed since a stamp of ours, or nil where that cannot be told.
local function changed(since)
  local number = since:sub(1, #BORN) == BORN and tonumber(since:match("^%d+$", #BORN + 1))
  local at, list = stamp(), number and elections.changed(number, PAGE)
  if not list then return nil end
  return as_json(items(own_rules.add(list, elections.declared)), at, true)
end

local function listed(most, since)
  local status, kind, body
  if since then status, kind, body = changed(since) end
  if status then return status, kind, body end
  return kept.get("elections " .. most, function() return whole(most) end)
end

local function leader(name)
  local one = elections.find(name)
  if not one then return 404, TEXT, "no such election here\n" end
  local leads = one.phase == "leading" and one.acting
  return leads and 200 or 503, JSON, json.line { name = name, leading = leads or false, leader = one.leader,
    epoch = one.epoch, acts_in = one.acts_in }
end

-- Why this candidate could not lead now, if it were its turn; or nothing.
local function hindrance(one)
  local known = elections.declared(one.name) or elections.declared(one.name, one.node)
  if one.away and one.away > (known and known.common.ttl or TTL_UNKNOWN) then
    return ("'%s': its store has %s for %.0f s: %s\n"):format(one.name,
      one.answers and "answered with a failure" or "given no answer", one.away,
      core.redact(one.failure or "no reason is known"))
  elseif one.amnesia then
    return ("'%s': its store may have forgotten who leads: this candidate claims again in %.0f s\n"):format(one.name,
      one.next_claim_in or 0)
  end
end

local function health(store)
  if store ~= "1" then return 200, TEXT, "ok\n" end
  local problem = kept.get("health", function()
    local problem = false
    each_glance(function(_, troubled)
      for _, one in ipairs(troubled) do problem = problem or hindrance(one) or false end
    end)
    return problem
  end)
  return problem and 503 or 200, TEXT, problem or "ok\n"
end

-- However many ask here, the stores are asked no more often.
local function stores_say()
  return kept.get("stores", stores.ask, STORES_KEPT)
end

local function stores_as_json()
  local parts = {}
  for i, one in ipairs(stores_say()) do parts[i] = json.valid(one, "elections") end
  return ('{"stores":[%s]}\n'):format(table.concat(parts, ","))
end

local function terms_of(name)
  return kept.get("terms of " .. name, function()
    local text = terms_page.render(name, core.version, core.pid)
    if not text then return 404, TEXT, "this host has seen no such election\n" end
    return 200, HTML, text
  end)
end

local pages = {
  ["/"] = function()
    return kept.get("page", function()
      local seen = seen_at_a_glance()
      return 200, HTML, page.render { node = core.node(), version = core.version, pid = core.pid,
        total = elections.count(), elections = troubled_first(statuses(page.MOST), seen.troubled), changes = history.list(),
        led = seen.led, alarms = seen.alarms, jobs = jobs.all() }
    end)
  end,
  ["/store"] = function()
    return kept.get("store", function()
      return 200, HTML, store_page.render(stores_say(), core.version, core.pid, os.time())
    end)
  end,
  ["/api/store"] = function()
    return kept.get("store as JSON", function() return 200, JSON, stores_as_json() end)
  end,
  ["/help"] = function() return 200, HTML, help.page(core.version, core.pid) end,
  ["/healthz"] = function(_, store) return health(store) end,
  ["/metrics"] = function()
    return kept.get("metrics", function()
      local bounds, latency = elections.latency()
      return 200, metrics.TYPE, metrics.render { elections = statuses(math.huge), connections = conditions.all(), bounds = bounds,
        latency = latency, counts = elections.counts(), by_election = history.counts(), restarts = history.restarts(),
        jobs = jobs.all() }
    end)
  end,
  ["/api/jobs"] = function()
    return kept.get("jobs", function() return 200, JSON, jobs.json() end)
  end,
  ["/api/elections"] = function(since) return listed(math.huge, since) end,
}

--- Has the endpoint tell of jobs too: see crown.web.jobs.
web.show_jobs = jobs.show

--- Answers a request.
-- @string path
-- @string[opt] since a stamp of an earlier answer: only what has changed is told
-- @string[opt] store "1": /healthz looks at the stores too
-- @treturn number the status
-- @treturn string the content type
-- @treturn string the body
function web.answer(path, since, store)
  if pages[path] then return pages[path](since, store) end
  local most = tonumber(path:match "^/api/elections/(%d+)$")
  if most then return listed(math.min(most, elections.count()), since) end
  local name = path:match "^/leader/(.+)$"
  if name then return leader(name) end
  name = path:match "^/history/([%w_.-]+)$"
  if name then return terms_of(name) end
  return 404, TEXT, "there are /, /store, /history/NAME, /help, /metrics, /healthz, /leader/NAME, "
    .. "/api/jobs, /api/store, /api/elections and /api/elections/MOST\n"
end

local function parse(where)
  local address, port = where:match "^%[([%x:.]+)%]:(%d+)$"
  if not address then address, port = where:match "^([%d.]*):(%d+)$" end
  port = tonumber(port or where:match "^%d+$")
  if not port or port > 65535 then return nil end
  return address and address ~= "" and address or "127.0.0.1", port
end

--- What is wrong with an address.
-- @string where "127.0.0.1:8080", "[::1]:8080", ":8080" or "8080"; without an address it is loopback
-- @treturn string or nil
function web.problem(where)
  return not parse(where) and ("'%s' is not ADDR:PORT, such as 127.0.0.1:9090 or [::1]:9090"):format(where) or nil
end

--- Serves, until the runtime ends.
-- @string where an address with which nothing is wrong
-- @raise a usage error where that address cannot be had
function web.serve(where)
  local address, port = parse(where)
  local bound, problem = http.serve(address, port, web.answer)
  if not bound then usage.error("--http or CROWN_HTTP: %s", (problem:gsub("^http: ", ""))) end
  history.start()
  core.log("info", "http.listening", { address = address, port = bound })
end

return web
