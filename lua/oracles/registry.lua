--- A registry: members that know each other, a leader among them, and names that it keeps for all. Who is a member and who
-- leads stands in Postgres; the names are in the members' memories, replicated over links of their own.
-- Options: `{ "registry", url = "postgres://…", listen = "10.0.0.5:7400", secret = "…" }`. See docs/registry.md.
-- @module crown.oracles.registry

local admin = require "crown.postgres.admin"
local Doubt = require "crown.oracle.doubt"
local Node = require "crown.registry.node"
local postgres_url = require "crown.postgres.url"
local secrets = require "crown.registry.secret"
local Store = require "crown.registry.store"
local store_options = require "crown.oracle.options"
local url = require "crown.text.url"
local usage = require "crown.check.usage"

local Registry = {}
Registry.__index = Registry

--- A candidate that ends is told so also where it follows: it leaves.
Registry.leaves = true

local DEFAULT_TTL = 15
local EVERYWHERE = { ["0.0.0.0"] = true, ["::"] = true, ["*"] = true }

local RULES = {
  url = postgres_url.RULE,
  ttl = { type = "number", least = 1, most = 86400 },
  refresh = { type = "number", above = 0, most = 86400 },
  timeout = { type = "number", above = 0, most = 3600 },
  listen = { type = "string", match = "^%[?[%x:.%w*-]+%]?:%d+$", match_words = "an address and a port: 10.0.0.5:7400" },
  advertise = { type = "string", match = "^%[?[%x:.%w-]+%]?:?%d*$", match_words = "a host, or a host and a port" },
  secret = { type = "string", check = function(value)
    if #value < secrets.LEAST then return ("must have at least %d bytes"):format(secrets.LEAST) end
  end },
  tls = { type = "table" },
  replicas = { type = "number", integer = true, least = 1, most = 100, default = 2 },
  replicate_timeout = { type = "number", above = 0, most = 3600, default = 1 },
  snapshot_timeout = { type = "number", above = 0, most = 3600, default = 5 },
  strict = { type = "boolean", default = false },
  amnesia_wait = store_options.AMNESIA_WAIT,
  trust_empty = store_options.trust_empty(true),
  schema = postgres_url.SCHEMA,
  most = { type = "number", integer = true, least = 1, most = 1e9, default = 1000000 },
}

--- TTL and refresh delay that these options make.
function Registry.timing(opts)
  return store_options.timing(opts, DEFAULT_TTL)
end

local REQUIRED = {
  url = "the Postgres that holds the registry",
  listen = "where the other members reach this one, 10.0.0.5:7400",
  secret = "the same on all nodes",
}

local function check(opts)
  local checked = postgres_url.options("registry", opts, RULES)
  for option, what in pairs(REQUIRED) do
    if not opts[option] then usage.error("oracle 'registry': %s: required: %s", option, what) end
  end
  checked.host, checked.port = url.address(checked.listen)
  if EVERYWHERE[checked.host] and not checked.advertise then
    usage.error("oracle 'registry': advertise: required, because %s does not tell the others where this node is",
      checked.listen)
  end
  if checked.host == "*" then checked.host = "0.0.0.0" end
  if checked.advertise and checked.advertise:find ":%d+$" then
    checked.advertise, checked.advertised_port = url.address(checked.advertise)
  end
  return checked
end

function Registry.init(opts)
  local checked = check(opts)
  checked.ttl, checked.refresh = Registry.timing(checked)
  checked.timeout = store_options.timeout(checked, checked.ttl)
  checked.registry, checked.node, checked.token = opts.crown_name, opts.node, opts.token
  checked.emit, checked.told = opts.emit, opts.send
  local self = setmetatable({ name = opts.crown_name, ttl = checked.ttl, delay = checked.refresh,
    doubt = Doubt.of("postgres", checked.url, checked) }, Registry)
  checked.leading = opts.leading or function() return self.leading end
  self.node = Node.new(checked)
  return self
end

local WEAK = "secret: short or simple, and whoever reaches the port can try them all; make one with 'openssl rand -hex 32'"

--- What works, and should be otherwise.
function Registry:warnings()
  return secrets.is_weak(self.node.options.secret) and { WEAK } or {}
end

-- Who is evicted leads until he has let go: see abdicate.
local function verdict(self, fine, detail)
  self.leading = fine == true or self.leading and fine == false and detail ~= nil and detail.evicted == true
  if fine == false and detail and detail.amnesia then
    if detail.expires_in then detail.error = self.doubt:words(detail.expires_in) end
    return false, detail
  end
  if not fine then return fine, detail end
  if not self.grant or self.grant.epoch ~= detail then self.grant = { ttl = self.ttl, epoch = detail } end
  return true, self.delay, self.grant
end

function Registry:claim()
  return verdict(self, self.node:claim())
end

function Registry:refresh()
  local fine, detail = self.node:refresh()
  if fine == nil then return nil, detail end
  return verdict(self, fine, detail)
end

function Registry:abdicate(ending)
  if not self.leading and not ending then return end
  self.leading = false
  self.node:abdicate(ending)
end

-- "assumed": this node has been chosen, and has the names; "changed": somebody else has, or nobody.
function Registry:handle_info(message)
  if self.leading then return self:refresh() end
  local member = self.node.member
  if message == "assumed" or (member and member.view.leader and member.view.leader ~= member.id) then return self:claim() end
end

-- Whoever may write to the row may write anything: it is looked at as it is only where its members are some.
local MEMBERS = ("(CASE WHEN %s THEN members ELSE '{}' END)"):format(Store.ARE_MEMBERS)
local LEFT = "(" .. MEMBERS .. " -> leader ->> 'expires_at')::float8 - extract(epoch FROM clock_timestamp())::float8"

local LIST = [[
SELECT registry AS name, substr(leader, length(registry) + 2) AS holder, epoch, coalesce(]] .. LEFT .. [[, 0) AS left,
  (SELECT coalesce(string_agg(substr(m.key, length(registry) + 2), E'\n' ORDER BY m.key), '')
    FROM jsonb_each(]] .. MEMBERS .. [[) m
    WHERE (m.value ->> 'expires_at')::float8 > extract(epoch FROM clock_timestamp())) AS candidates
FROM crown_registry_v1 ORDER BY registry]]

local EVICT = {
  mark = [[
UPDATE crown_registry_v1 SET evicted = TRUE, version = version + 1
WHERE registry = $1 AND leader IS NOT NULL AND ]] .. LEFT .. [[ > 0
RETURNING substr(leader, length(registry) + 2) AS holder, epoch, pg_notify('crown_registry_v1', 'evict ' || $1)]],
  leads = [[
SELECT substr(leader, length(registry) + 2) AS holder, epoch, coalesce(]] .. LEFT .. [[, 0) AS left
FROM crown_registry_v1 WHERE registry = $1]],
}

local FAULTY = "SELECT registry FROM crown_registry_v1 WHERE NOT " .. Store.ARE_MEMBERS .. " ORDER BY registry"

local function warnings(client)
  local found = {}
  for i, row in ipairs(client:query(FAULTY) or {}) do found[i] = Store.NO_MEMBERS:format(row.registry, row.registry) end
  return found
end

return admin.serve(Registry, { word = "registry", rules = RULES, table = "crown_registry_v1", part = "registry",
  list = LIST, evict = EVICT, warnings = warnings })
