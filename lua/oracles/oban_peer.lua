--- Follows the leadership that Oban keeps in Postgres: leads where Oban's own leader is, and never writes. What
-- cannot be asked counts as not leading. URL: `oban+postgres://user@host/database?name=Oban&node=app@host`. See
-- docs/oracle-oban.md.
-- @module crown.oracles.oban_peer

local admin = require "crown.postgres.admin"
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

local clients = {}

local function client_for(url, timeout)
  if clients[url] then return clients[url] end
  local client, problem = postgres.new(url, { timeout = timeout, label = "oban_peer", background = true,
    bounded = true })
  clients[url] = client
  return client, problem
end

--- No TTL is known beforehand, whatever the options say: Oban's row tells it.
function Peer.timing(opts)
  return false, tonumber(opts.check) or tonumber(opts.refresh) or DEFAULT_CHECK
end

function Peer.init(opts)
  local checked = postgres_url.options("oban_peer", opts, RULES)
  local client, problem = client_for(checked.url, checked.timeout)
  if not client then return nil, problem end
  local self = setmetatable({ client = client, oban = checked.oban_name or checked.name or "Oban",
    node = opts.given and opts.given.node or opts.node,
    sql = LEADER:format('"' .. checked.prefix .. '"'), send = opts.send, emit = opts.emit }, Peer)
  local _
  _, self.check = Peer.timing(checked)
  local function changed() self.send "changed" end
  client:listen(checked.prefix .. ".oban_leader", changed, changed)
  return self
end

-- Whether Oban leads here, now.
-- @return as a claim; or nil, message, code
local function look(self)
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
  return true, math.min(self.check, row.left / 3), { ttl = row.left, epoch = row.epoch }
end

function Peer:claim()
  local granted, second, third = look(self)
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
  return admin.list(checked, nil, LIST:format('"' .. checked.prefix .. '"'))
end

--- What the server says of itself, for `info`.
-- @tparam table opts `url`
-- @treturn table `{ fixed = the URL's ttl counts for nothing, facts =, warnings = }`, or nil and a message
function Peer.health(opts)
  local checked = postgres_url.options("oban_peer", opts, RULES)
  local found, problem, code = admin.health(checked, checked.prefix .. ".oban_peers")
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

return Peer
