--- The options of the oracle on ZooKeeper.
-- @internal crown.zookeeper.options

local recipe = require "crown.zookeeper.recipe"
local Session = require "crown.zookeeper.session"
local store_options = require "crown.oracle.options"
local wire = require "crown.zookeeper.wire"
local zookeeper_url = require "crown.zookeeper.url"

local options = {}

local DEFAULT_TTL = 15

local RULES = {
  url = { type = "string" },
  recipe = { type = "string", values = { "curator", "kazoo" }, default = "curator" },
  ttl = { type = "number", least = 1, most = 86400 },
  timeout = { type = "number", above = 0, most = 3600 },
  acl = { type = "string", values = { "open", "creator" } },
  lock = store_options.lock(),
  amnesia_wait = store_options.AMNESIA_WAIT,
  trust_empty = store_options.trust_empty(false),
}
local CLIENTS = { ca = true, cert = true, key = true, server_name = true, insecure = true }

--- The lease and the refresh delay that a session makes, and the time of that session: ZooKeeper has the last word on it.
-- @tparam table opts
-- @treturn number seconds
-- @treturn number seconds
function options.timing(opts)
  local ttl = tonumber(opts.ttl) or DEFAULT_TTL
  return Session.LEASE * ttl, Session.DELAY * ttl
end

--- Seconds for one question.
-- @tparam table checked
-- @treturn number
function options.timeout(checked)
  return store_options.timeout(checked, options.timing(checked))
end

--- Checks what the user gives.
-- @tparam table opts as the oracle's functions get them
-- @treturn table the options, checked, with `parsed`, `kind`, `rights` = the ACL of new nodes; or nil and a message
-- @raise a usage error that names the option
function options.check(opts)
  local checked = store_options.check("zookeeper", opts, RULES, CLIENTS)
  local parsed, problem = zookeeper_url.parse(checked.url)
  if not parsed then return nil, problem end
  checked.ttl = checked.ttl or DEFAULT_TTL
  checked.parsed, checked.kind = parsed, recipe.of(checked.recipe)
  checked.acl = checked.acl or parsed.user and "creator" or "open"
  if checked.acl == "creator" and not parsed.user then
    return nil, "acl=creator needs a login in the URL: zookeeper://user:password@host"
  end
  checked.rights = checked.acl == "creator" and wire.CREATOR or wire.OPEN
  return checked
end

return options
