--- Leases as the API server stores them: what it checks, what it refuses and in which words, and what it tells watches. Strict, so
-- that what passes here passes there; kubernetes_peer_spec.lua asks both the same.
local json = require "crown.text.json"
local read_file = require "crown.text.read_file"
local write_file = require "support.write_file"

local Leases = {}
Leases.__index = Leases

local REMEMBERED = 1000 -- events; who asks for older ones is told that they are gone
local GROUP = "coordination.k8s.io"

--- Refuses something.
-- @number code
-- @string reason
-- @string message
-- @treturn number the code
-- @treturn table a Status object
local function status(code, reason, message)
  return code, { kind = "Status", apiVersion = "v1", metadata = {}, status = "Failure", message = message, reason = reason, code = code }
end
Leases.status = status

--- Opens a store with what a file has.
-- @string path where it is kept; nil: nowhere
-- @treturn Leases
function Leases.open(path)
  local text = path and read_file(path)
  local self = text and json.object(text) or { revision = 100, uids = 0, leases = {} }
  self.path, self.events, self.first = path, {}, self.revision
  self.watchers = {}
  return setmetatable(self, Leases)
end

local function save(self)
  if self.path then
    write_file(self.path, json.encode { revision = self.revision, uids = self.uids, leases = self.leases })
  end
end

local function key(namespace, name) return namespace .. "/" .. name end

local function tell(self, kind, object)
  local event = { type = kind, object = object, revision = self.revision }
  self.events[#self.events + 1] = event
  if #self.events > REMEMBERED then self.first = table.remove(self.events, 1).revision end
  for _, watcher in pairs(self.watchers) do watcher(event) end
end

local function is_whole(value) return type(value) == "number" and value % 1 == 0 end

-- What cannot even be read as a Lease: 400.
local function unreadable(spec)
  for _, name in ipairs { "acquireTime", "renewTime" } do
    local time = spec[name]
    if time ~= nil and not (type(time) == "string" and time:find "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%d%d%d%dZ$") then
      return ('parsing time "%s" as "2006-01-02T15:04:05.000000Z07:00"'):format(tostring(time))
    end
  end
  for _, name in ipairs { "leaseDurationSeconds", "leaseTransitions" } do
    if spec[name] ~= nil and not is_whole(spec[name]) then return ("json: cannot unmarshal into field %s of type int32"):format(name) end
  end
  if spec.holderIdentity ~= nil and type(spec.holderIdentity) ~= "string" then return "json: cannot unmarshal holderIdentity" end
end

-- What is a Lease and yet not valid: 422.
local function invalid(object)
  local spec = object.spec or {}
  if spec.leaseDurationSeconds and spec.leaseDurationSeconds <= 0 then
    return "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"
  elseif spec.leaseTransitions and spec.leaseTransitions < 0 then
    return "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"
  elseif not object.metadata.name:find "^[%l%d][%l%d.-]*$" then
    return "metadata.name: Invalid value: a DNS-1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
  end
end

-- @return the code and a Status object where it is refused
local function refused(object, namespace, name)
  if type(object) ~= "table" or object.kind ~= "Lease" or object.apiVersion ~= GROUP .. "/v1" or type(object.metadata) ~= "table" then
    return status(400, "BadRequest", "the object provided is unrecognized")
  end
  local problem = unreadable(object.spec or {})
  if problem then return status(400, "BadRequest", "Lease in version \"v1\" cannot be handled as a Lease: " .. problem) end
  local meta = object.metadata
  if meta.namespace ~= nil and meta.namespace ~= namespace or name and meta.name ~= name or type(meta.name) ~= "string" then
    return status(400, "BadRequest", "the name or the namespace of the object does not match the URL")
  end
  problem = invalid(object)
  if problem then
    return status(422, "Invalid", ('Lease.%s "%s" is invalid: %s'):format(GROUP, meta.name, problem))
  end
end

local function not_found(name)
  return status(404, "NotFound", ('leases.%s "%s" not found'):format(GROUP, name))
end

local function conflict(name, why)
  return status(409, "Conflict", ('Operation cannot be fulfilled on leases.%s "%s": %s'):format(GROUP, name, why))
end

local function store(self, object, namespace)
  self.revision = self.revision + 1
  object.metadata.namespace, object.metadata.resourceVersion = namespace, ("%d"):format(self.revision)
  self.leases[key(namespace, object.metadata.name)] = object
  save(self)
  return object
end

--- Answers a GET.
function Leases:get(namespace, name)
  local found = self.leases[key(namespace, name)]
  if not found then return not_found(name) end
  return 200, found
end

--- Answers a POST.
function Leases:create(namespace, object)
  local code, problem = refused(object, namespace)
  if code then return code, problem end
  local meta = object.metadata
  if meta.resourceVersion then
    return status(400, "BadRequest", "resourceVersion should not be set on objects to be created")
  elseif self.leases[key(namespace, meta.name)] then
    return status(409, "AlreadyExists", ('leases.%s "%s" already exists'):format(GROUP, meta.name))
  end
  self.uids = self.uids + 1
  meta.uid = ("%08x-0000-4000-8000-000000000000"):format(self.uids)
  meta.creationTimestamp = os.date "!%Y-%m-%dT%H:%M:%SZ"
  tell(self, "ADDED", store(self, object, namespace))
  return 201, object
end

local function is_same(one, other)
  return json.ordered { one.spec or {}, one.metadata } == json.ordered { other.spec or {}, other.metadata }
end

--- Answers a PUT, which makes a Lease that is not there.
function Leases:update(namespace, name, object)
  local code, problem = refused(object, namespace, name)
  if code then return code, problem end
  local found, meta = self.leases[key(namespace, name)], object.metadata
  if not found and meta.uid then return conflict(name, "Precondition failed: UID in precondition: " .. meta.uid) end
  if not found then
    meta.resourceVersion = nil
    return self:create(namespace, object)
  end
  if not meta.resourceVersion then
    return status(422, "Invalid", ('leases.%s "%s" is invalid: metadata.resourceVersion: must be specified for an update'):format(
      GROUP, name))
  elseif meta.uid and meta.uid ~= found.metadata.uid then
    return conflict(name, "Precondition failed: UID in precondition: " .. meta.uid)
  elseif meta.resourceVersion ~= found.metadata.resourceVersion then
    return conflict(name, "the object has been modified; please apply your changes to the latest version and try again")
  end
  meta.uid, meta.creationTimestamp, meta.namespace = found.metadata.uid, found.metadata.creationTimestamp, namespace
  if is_same(object, found) then return 200, found end
  tell(self, "MODIFIED", store(self, object, namespace))
  return 200, object
end

--- Answers a DELETE.
function Leases:delete(namespace, name)
  local found = self.leases[key(namespace, name)]
  if not found then return not_found(name) end
  self.leases[key(namespace, name)] = nil
  self.revision = self.revision + 1
  found.metadata.resourceVersion = ("%d"):format(self.revision)
  save(self)
  tell(self, "DELETED", found)
  return 200, { kind = "Status", apiVersion = "v1", metadata = {}, status = "Success" }
end

--- Answers a GET of all, in order and by pages.
-- @string namespace
-- @number limit
-- @string[opt] after the last name of the page before
function Leases:list(namespace, limit, after)
  local names = {}
  for _, one in pairs(self.leases) do
    local name = one.metadata.name
    if one.metadata.namespace == namespace and name > (after or "") then names[#names + 1] = name end
  end
  table.sort(names)
  local items = {}
  for i = 1, math.min(limit, #names) do items[i] = self.leases[key(namespace, names[i])] end
  local meta = { resourceVersion = ("%d"):format(self.revision), continue = #names > limit and names[limit] or nil }
  return 200, { kind = "LeaseList", apiVersion = GROUP .. "/v1", metadata = meta, items = items }
end

local function fits(event, namespace, name)
  local meta = event.object.metadata
  return meta.namespace == namespace and (not name or meta.name == name)
end

--- What a watch is told first.
-- @string namespace
-- @string[opt] name of the only Lease
-- @string[opt] version after which; nil: how things stand
-- @treturn table events; or nil: that version is too old
function Leases:since(namespace, name, version)
  local found = {}
  if not version then
    for _, one in pairs(self.leases) do
      local event = { type = "ADDED", object = one }
      if fits(event, namespace, name) then found[#found + 1] = event end
    end
    return found
  end
  if tonumber(version) < self.first then return nil end
  for _, event in ipairs(self.events) do
    if event.revision > tonumber(version) and fits(event, namespace, name) then found[#found + 1] = event end
  end
  return found
end

--- Tells changes from now on.
-- @param who the key by which that ends
-- @string namespace
-- @string[opt] name
-- @func fn called with an event; nil ends it
function Leases:watch(who, namespace, name, fn)
  self.watchers[who] = fn and function(event)
    if fits(event, namespace, name) then fn(event) end
  end
end

--- Forgets all events, as a server does whose etcd was compacted.
function Leases:compact()
  self.events, self.first = {}, self.revision + 1
  self.revision = self.revision + 1
  save(self)
end

return Leases
