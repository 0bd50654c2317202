--- The options of the oracle on Kubernetes.
-- @internal crown.kubernetes.options

local lease = require "crown.kubernetes.lease"
local store_options = require "crown.oracle.options"
local usage = require "crown.check.usage"

local options = {}

local DEFAULT_TTL = 15
local PEERS_RETRY = 3 -- client-go asks each 2 s, up to 2.2 times that

--- Seconds after which a follower asks again where no watch tells it of changes.
options.RETRY = 2

local RULES = {
  url = { type = "string", default = "k8s:" },
  namespace = { type = { "string", "number" } },
  ttl = { type = "number", least = 3, most = 86400 },
  refresh = { type = "number", least = 1, most = 86400 }, -- client-go compares times in whole seconds
  retry = { type = "number", above = 0, most = 86400, default = options.RETRY },
  timeout = { type = "number", above = 0, most = 3600 },
  lock = store_options.lock(lease.name_problem),
  amnesia_wait = store_options.AMNESIA_WAIT,
  trust_empty = store_options.trust_empty(false),
  kubeconfig = { type = "string" },
  context = { type = { "string", "number" } },
  server = { type = "string", match = "^https?://", match_words = "it is the API server's URL, https://host:port" },
  token_file = { type = "string" },
  ca = { type = "string" },
  cert = { type = "string" },
  key = { type = "string" },
}

--- TTL and refresh delay that these options make, and after how long another one's follower asks again.
-- @tparam table opts
-- @treturn number seconds
-- @treturn number seconds
-- @treturn nil
-- @treturn number seconds
function options.timing(opts)
  local retry = math.max(tonumber(opts.retry) or 0, PEERS_RETRY)
  return store_options.timing({ ttl = opts.ttl, refresh = opts.refresh, retry = retry }, DEFAULT_TTL)
end

options.timeout = store_options.timeout

--- Checks what the user gives.
-- @tparam table opts as the oracle's functions get them
-- @treturn table the options, checked; or nil and a message
-- @raise a usage error that names the option
function options.check(opts)
  local checked = store_options.check("kubernetes", opts, RULES)
  local path = checked.url:match "^[%w+.-]+:/*([^?]*)"
  if path and path ~= "" then
    if checked.namespace and tostring(checked.namespace) ~= path then
      usage.error("oracle 'kubernetes': the namespace is '%s' in the URL and '%s' beside it: give it once", path,
        tostring(checked.namespace))
    end
    checked.namespace = path
  end
  checked.context = checked.context and tostring(checked.context)
  if checked.server and checked.context and not checked.kubeconfig then
    usage.error "oracle 'kubernetes': context names a part of a kubeconfig, and server goes before that: give one of both"
  end
  return checked
end

--- The namespace: the user's, or else the login's.
-- @tparam table checked
-- @tparam Client client of crown.kubernetes.client
-- @treturn string; or nil and a message
function options.namespace(checked, client)
  local found, problem = client:find()
  if not found then return nil, problem end
  local name = tostring(checked.namespace or found.namespace or "default")
  problem = lease.namespace_problem(name)
  if problem then return nil, ("'%s' %s"):format(name, problem) end
  return name
end

return options
