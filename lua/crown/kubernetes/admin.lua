--- What the verbs `info`, `evict` and `check` ask of Kubernetes.
-- @internal crown.kubernetes.admin

local Client = require "crown.kubernetes.client"
local eviction = require "crown.oracle.eviction"
local figure = require "crown.check.figure"
local lease = require "crown.kubernetes.lease"
local options = require "crown.kubernetes.options"
local Orders = require "crown.kubernetes.orders"
local paths = require "crown.kubernetes.paths"

local admin = {}

local TIMEOUT = 5 -- seconds for a question
local PAGE = 500 -- Leases in an answer
local TRIES = 5
local HOUR = 3600
local NEEDED = { "get", "create", "update" }
local USEFUL = {
  watch = "nobody tells a follower of a release: it asks each %s s (retry)",
  list = "'crown-lua info' cannot show all elections, 'crown-lua info NAME' can show one",
}

-- What a question needs.
local function open(opts)
  local checked, problem = options.check(opts)
  if not checked then return nil, problem, "usage" end
  local client = Client.of(checked)
  local namespace
  namespace, problem = options.namespace(checked, client)
  if not namespace then return nil, problem, "usage" end
  local self = { checked = checked, client = client, namespace = namespace }
  function self.ask(method, path, body)
    return client:ask(method, path, body, checked.timeout or TIMEOUT)
  end
  return self
end

-- @return an array of Leases; or nil, message, code
local function all(self)
  local found, after = {}, nil
  repeat
    local page, problem, code = self.ask("GET", paths.page(self.namespace, PAGE, after))
    if not page then return nil, problem, code end
    for _, one in ipairs(type(page.items) == "table" and page.items or {}) do
      one.kind = "Lease" -- which a list leaves out
      if lease.is(one) then found[#found + 1] = one end
    end
    after = type(page.metadata) == "table" and page.metadata.continue or nil
  until type(after) ~= "string" or after == ""
  return found
end

-- RBAC cannot name what is listed. So whoever may not list sees the one that is asked for, where there is one.
local function all_or_one(self, opts, name)
  name = name or opts.crown_name and tostring(self.checked.lock or opts.crown_name)
  local found, problem, code = all(self)
  if found or code ~= "store" or not name or lease.name_problem(name) then return found, problem, code end
  local one, _, why = self.ask("GET", paths.lease(self.namespace, name))
  if not one and why == "not_found" then return {} end
  if not one or not lease.is(one) then return nil, problem, code end
  return { one }
end

--- Elections of the namespace. Whether a holder still lives is not to be seen in one look.
-- @tparam table opts `url` and the others
-- @string[opt] name of the only one that is asked for: it is enough where others may not be seen
-- @treturn table an array of `{ name, node, epoch, ttl }`; or nil, message, code
function admin.list(opts, name)
  local self, problem, code = open(opts)
  if not self then return nil, problem, code end
  local found
  found, problem, code = all_or_one(self, opts, name)
  if not found then return nil, problem, code end
  local listed = {}
  for i, one in ipairs(found) do
    local record = lease.read(one)
    listed[i] = { name = one.metadata.name, node = record.holder and lease.node(record.holder), epoch = record.epoch,
      ttl = record.holder and record.duration }
  end
  return listed
end

--- Hands a tool the orders of the namespace.
-- @tparam table opts `url` and the others
-- @tparam function fn gets a store of orders
-- @string[opt] name as of `list`
-- @return what it returns; or nil, message, code
function admin.with_orders(opts, fn, name)
  local self, problem, code = open(opts)
  if not self then return nil, problem, code end
  return fn(Orders.new(self.ask, self.namespace, function() return all_or_one(self, opts, name) end))
end

-- @return the Lease and its record; false where there is none; or nil, message, code
local function read(self, name)
  local found, problem, code = self.ask("GET", paths.lease(self.namespace, name))
  if not found and code == "not_found" then return false end
  if not found then return nil, problem, code end
  if not lease.is(found) then return nil, lease.STRANGE, "store" end
  return found, lease.read(found)
end

-- Writes the wish into the Lease as it is, however often its leader writes meanwhile.
-- @return the record of who is to go; false where nobody leads; or nil, message, code
local function ask_to_go(self, name)
  local problem, code
  for _ = 1, TRIES do
    local found, record
    found, record, code = read(self, name)
    if found == nil then return nil, record, code end
    if not found or not record.holder then return false end
    local made
    made, problem, code = self.ask("PUT", paths.lease(self.namespace, name), lease.evicting(found, lease.wish(record)))
    if made then return record end
    if code ~= "conflict" then return nil, problem, code end
  end
  return nil, problem, code
end

--- Asks the leader to step down, and waits until it has. A leader by client-go hears no such wish.
-- @tparam table opts `url` and the others; `wait` seconds (10)
-- @string name of the election
-- @treturn table `{ node =, epoch = }` of who was evicted; or nil, message, code
function admin.evict(opts, name)
  local self, problem, code = open(opts)
  if not self then return nil, problem, code end
  local leader
  leader, problem, code = ask_to_go(self, name)
  if leader == nil then return nil, problem, code end
  if not leader then return eviction.nobody(name) end
  local gone
  gone, problem, code = eviction.await(name, opts.wait, function()
    local found, record = read(self, name)
    if found == nil then return false end
    return not found or record.holder ~= leader.holder or record.transitions ~= leader.transitions
  end, "the request stays until its term ends; one that leads by client-go does not hear it")
  if not gone then return nil, problem, code end
  return { node = lease.node(leader.holder), epoch = leader.epoch }
end

-- --- health

local function requests(self)
  local ttl, delay = options.timing(self.checked)
  return ("about %.0f an hour of a leader, %.0f of a follower, besides its watch"):format(HOUR / delay, HOUR / ttl)
end

local function warnings_of(self, record)
  local found, ttl = {}, options.timing(self.checked)
  if record.strategy then
    found[1] = ("its strategy is '%s': the control plane decides who holds it, and crown-lua does not take part"):format(
      record.strategy)
  end
  if record.holder and record.duration and record.duration ~= math.ceil(ttl) then
    found[#found + 1] = ("its holder '%s' has a lease of %s s, and here the ttl is %s s: peers judge by their own, so give all "
      .. "the same"):format(record.holder, figure.exact(record.duration), figure.exact(ttl))
  end
  return found
end

--- What the API server says of itself, and of the election's Lease.
-- @tparam table opts `url` and the others
-- @treturn table `{ facts =, warnings = }`; or nil, message, code
function admin.health(opts)
  local self, problem, code = open(opts)
  if not self then return nil, problem, code end
  local version
  version, problem, code = self.ask("GET", paths.VERSION)
  if not version then return nil, problem, code end
  local facts = { { "Kubernetes", tostring(version.gitVersion) }, { "Namespace", self.namespace },
    { "Requests", requests(self) } }
  if not opts.crown_name then return { facts = facts, warnings = {} } end
  local found, record = read(self, tostring(self.checked.lock or opts.crown_name))
  if not found then return { facts = facts, warnings = {} } end -- who may not read it hears that from `rights`
  facts[#facts + 1] = { "Lease", record.holder and ("held by '%s'"):format(record.holder) or "held by nobody" }
  return { facts = facts, warnings = warnings_of(self, record) }
end

-- --- rights

-- @return whether it is allowed; or nil, message, code
local function may(self, verb, name)
  local attributes = { namespace = self.namespace, verb = verb, group = "coordination.k8s.io", resource = "leases", name = name }
  local found, problem, code = self.ask("POST", paths.REVIEW, { apiVersion = "authorization.k8s.io/v1",
    kind = "SelfSubjectAccessReview", spec = { resourceAttributes = attributes } })
  if not found then return nil, problem, code end
  return type(found.status) == "table" and found.status.allowed == true
end

-- A role can name the Leases of get, update and watch; of create and list it cannot.
local function named(verb, name) return verb ~= "create" and verb ~= "list" and name or nil end

local function lacks_words(self, verb)
  return ("RBAC does not allow '%s' on leases (coordination.k8s.io) in the namespace '%s'"):format(verb, self.namespace)
end

--- What a candidate may not do, in RBAC's words.
-- @tparam table opts `url`, `lock`, `crown_name` and the others
-- @treturn table an array of texts, with `warning`; or nil, message, code
function admin.rights(opts)
  local self, problem, code = open(opts)
  if not self then return nil, problem, code end
  local name = tostring(self.checked.lock or opts.crown_name)
  problem = lease.name_problem(name)
  if problem then return { ("'%s' %s"):format(name, problem) } end
  local lacks = {}
  for _, verb in ipairs(NEEDED) do
    local allowed
    allowed, problem, code = may(self, verb, named(verb, name))
    if allowed == nil then return nil, problem, code end
    if not allowed then lacks[#lacks + 1] = lacks_words(self, verb) end
  end
  for _, verb in ipairs { "watch", "list" } do
    local allowed = may(self, verb, named(verb, name))
    if allowed == false and not lacks.warning then
      lacks.warning = ("%s; %s"):format(lacks_words(self, verb), USEFUL[verb]:format(figure.exact(self.checked.retry)))
    end
  end
  return lacks
end

return admin
