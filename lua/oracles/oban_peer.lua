--- Follows the leadership that Oban keeps in Postgres: leads where Oban's own leader is, and never writes. What
-- cannot be asked counts as not leading. URL: `oban+postgres://user@host/database?name=Oban&node=app@host`. See
-- docs/oracle-oban.md.
-- @module crown.oracles.oban_peer

local admin = require "crown.postgres.admin"
local ordered = require "crown.oracle.ordered"
local Orders = require "crown.postgres.orders"
local postgres = require "crown.postgres"
local postgres_url = require "crown.postgres.url"

local Peer = {}
Peer.__index = Peer

local DEFAULT_CHECK = 15
local NOBODY_CHECK = 1 -- seconds between looks while Oban has no leader: its next one is due
local PREFIX = "^[%w_$-]+$"

local RULES = {
  url = postgres_url.RULE,
  oban_name = { type = "string" },
  name = { type = "string" },
  node = { type = "string" },
  prefix = { type = "string", match = PREFIX, match_words = "a schema's name", default = "public" },
  check = { type = "number", above = 0, most = 86400 },
  refresh = { type = "number", above = 0, most = 86400, not_beside = "check" },
  timeout = { type = "number", above = 0, most = 3600, default = 5 },
  ttl = { type = "number", above = 0, most = 86400 }, -- of the whole runtime; Oban's own counts here
}

-- Oban writes times of UTC without a zone. The row's node is compared each time: Oban's renewal extends whatever row is
-- there, also a successor's.
local LEADER = [[
SELECT node, node = $2 AS ours, (extract(epoch FROM started_at) * 1000000)::int8 AS epoch,
  extract(epoch FROM expires_at - timezone('UTC', clock_timestamp()))::float8 AS left
FROM %s.oban_peers WHERE name = $1]]

local PART = "oban"

local places = {} -- by URL: what elections of one database share

local function place_at(url, timeout)
  if places[url] then return places[url] end
  local client, problem = postgres.new(url, { timeout = timeout, label = "oban_peer", background = true, bounded = true })
  if not client then return nil, problem end
  places[url] = Orders.heard({ client = client }, PART)
  return places[url]
end

local function quoted(prefix) return '"' .. prefix .. '"' end

local function orders_on(client, prefix) return Orders.new(client, PART, quoted(prefix) .. ".oban_peers", quoted(prefix)) end

--- No TTL is known beforehand, whatever the options say: Oban's row tells it.
function Peer.timing(opts)
  return false, tonumber(opts.check) or tonumber(opts.refresh) or DEFAULT_CHECK
end

function Peer.init(opts)
  local checked = postgres_url.options("oban_peer", opts, RULES)
  local place, problem = place_at(checked.url, checked.timeout)
  if not place then return nil, problem end
  local self = setmetatable({ place = place, client = place.client, name = opts.crown_name, prefix = checked.prefix,
    oban = checked.oban_name or checked.name or "Oban",
    node = opts.given and opts.given.node or opts.node,
    sql = LEADER:format(quoted(checked.prefix)), send = opts.send, emit = opts.emit, above = 0 }, Peer)
  local _
  _, self.check = Peer.timing(checked)
  local function changed() self.send "changed" end
  place.client:listen(checked.prefix .. ".oban_leader", changed, changed)
  return self
end

-- A term of ours may end while Oban's goes on, by an order or a rule. The next one has a higher epoch all the same: by a
-- microsecond of `started_at`.
local function next_epoch(self, started)
  self.above = math.max(0, (self.highest or 0) + 1 - started)
  self.highest = started + self.above
end

-- Whether Oban leads here, now.
-- @tparam[opt] boolean claims whether that begins a term
-- @return as a claim; or nil, message, code
local function look(self, claims)
  local rows, problem, code = self.client:query(self.sql, self.oban, self.node)
  if not rows then
    self.emit("oracle.oban.query_error", { error = problem })
    return nil, problem, code
  end
  local row = rows[1]
  if not row or row.left <= 0 then return false, { retry_in = math.min(self.check, NOBODY_CHECK) } end
  if not row.ours then
    return false, { node = row.node, epoch = row.epoch, retry_in = math.min(self.check, row.left) }
  end
  if claims then next_epoch(self, row.epoch) end
  return true, math.min(self.check, row.left / 3), { ttl = row.left, epoch = row.epoch + self.above }
end

function Peer:claim()
  local granted, second, third = look(self, true)
  self.leading = granted
  return granted, second, third
end

-- Who cannot ask does not lead: nothing else would end its term before Oban has another leader.
function Peer:refresh()
  local granted, second, third = look(self)
  self.leading = granted
  if granted == nil then return false, { error = second } end
  return granted, second, third
end

-- There is nothing to give back: Oban's row is Oban's.
function Peer:abdicate() self.leading = false end

function Peer:handle_info(message)
  if message ~= "changed" then return end
  if self.leading then return self:refresh() end
  return self:claim()
end

local LIST = [[
SELECT name, node AS holder, (extract(epoch FROM started_at) * 1000000)::int8 AS epoch,
  extract(epoch FROM expires_at - timezone('UTC', clock_timestamp()))::float8 AS left
FROM %s.oban_peers ORDER BY name]]

--- Oban's leaders.
-- @tparam table opts `url`, `prefix`
-- @treturn table an array of `{ name, node, epoch, expires_in }`, or nil and a message
function Peer.list(opts)
  local checked = postgres_url.options("oban_peer", opts, RULES)
  return admin.list(checked, nil, LIST:format(quoted(checked.prefix)))
end

--- What the server says of itself, for `info`.
-- @tparam table opts `url`
-- @treturn table `{ fixed = the URL's ttl counts for nothing, facts =, warnings = }`, or nil and a message
function Peer.health(opts)
  local checked = postgres_url.options("oban_peer", opts, RULES)
  local found, problem, code = admin.health(checked, checked.prefix .. ".oban_peers", nil, function(client)
    return orders_on(client, checked.prefix):warnings "SELECT"
  end)
  if not found then return nil, problem, code end
  found.fixed = true
  found.facts[#found.facts + 1] = { "Max time", "Oban's interval, 30 s unless set; its table has only the ends" }
  return found
end

--- What this candidate lacks, for `check --store`.
-- @tparam table opts `url`, `prefix`
-- @treturn table an array of texts, or nil and a message
function Peer.rights(opts)
  local checked = postgres_url.options("oban_peer", opts, RULES)
  return admin.reading(checked, checked.prefix .. ".oban_peers")
end

local function holder_of(self)
  local rows = self.client:query(self.sql, self.oban, self.node)
  if not rows then return nil end
  local row = rows[1]
  return row and row.left > 0 and { node = row.node, epoch = row.epoch } or false
end

return ordered.oracle(Peer, { word = "oban", follows = "Oban", holder = holder_of,
  owner = function(self) return self.place, self.name end,
  leads = function(self) return self.leading == true end,
  patrol = function(self) return self.check end,
  store = function(self) return orders_on(self.client, self.prefix) end,
  visit = function(opts, fn)
    local checked = postgres_url.options("oban_peer", opts, RULES)
    return admin.visit(checked, function(client) return fn(orders_on(client, checked.prefix)) end)
  end })
