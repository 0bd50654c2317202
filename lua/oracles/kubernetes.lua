--- An election in a Lease of Kubernetes (coordination.k8s.io/v1), which client-go and all that is written with it share.
-- URL: `k8s:NAMESPACE?ttl=15`. See docs/oracle-kubernetes.md.
-- @module crown.oracles.kubernetes

local admin = require "crown.kubernetes.admin"
local candidate = require "crown.oracle.candidate"
local Client = require "crown.kubernetes.client"
local core = require "crown.core"
local Doubt = require "crown.oracle.doubt"
local eviction = require "crown.oracle.eviction"
local explain = require "crown.link.explain"
local grants = require "crown.oracle.lease"
local lease = require "crown.kubernetes.lease"
local options = require "crown.kubernetes.options"
local ordered = require "crown.oracle.ordered"
local Orders = require "crown.kubernetes.orders"
local paths = require "crown.kubernetes.paths"
local rule = require "crown.register.rule"
local Sight = require "crown.kubernetes.sight"
local Watch = require "crown.kubernetes.watch"

local Kubernetes = {}
Kubernetes.__index = Kubernetes

local JITTER = 1.1 -- times a pause is what the core makes of it at most
local TRIES = 3 -- where others write to the same Lease at the same time
local STRATEGY = "Lease %s/%s has the strategy '%s': the control plane decides who holds it (coordinated leader election), not "
  .. "crown-lua. Clear spec.strategy, or name another Lease by lock=NAME"

--- TTL and refresh delay that these options make, and after how long a follower of client-go's asks again.
Kubernetes.timing = options.timing

--- How many seconds it takes at most until somebody leads after a leader that has died.
function Kubernetes.failover(opts)
  local ttl = options.timing(opts)
  return rule.standing_time(math.ceil(ttl)) + (tonumber(opts.retry) or options.RETRY) * JITTER
end

-- What an election's functions need, besides what it hears.
local function state_of(checked, opts, client, place)
  local ttl, delay = options.timing(checked)
  local identity = lease.identity(opts.node, place.token)
  return setmetatable({ client = client, namespace = place.namespace, name = place.name, identity = identity, ttl = ttl,
    path = paths.lease(place.namespace, place.name), seconds = math.ceil(ttl), delay = delay, retry = checked.retry, stamped = 0,
    timeout = options.timeout(checked, ttl, delay), election = candidate.of(opts), doubt = Doubt.of("kubernetes", nil, checked),
    sight = Sight.new { identity = identity, ttl = ttl, amnesia_wait = checked.amnesia_wait,
      trust_empty = checked.trust_empty } }, Kubernetes)
end

function Kubernetes.init(opts)
  local checked, problem = options.check(opts)
  if not checked then return nil, problem end
  local client, place = Client.of(checked), { name = tostring(checked.lock or opts.crown_name) }
  problem = lease.name_problem(place.name)
  if problem then return nil, ("'%s' %s"):format(place.name, problem) end
  if opts.checking then return setmetatable({}, Kubernetes) end -- perhaps far from the cluster
  place.namespace, problem = options.namespace(checked, client)
  if not place.namespace then return nil, problem end
  place.token, problem = candidate.enter("k8s " .. client.key .. "\n" .. place.namespace, place.name, opts)
  if not place.token then return nil, problem end
  local self = state_of(checked, opts, client, place)
  self.watch = Watch.of(client, place.namespace)
  self.watch:add(place.name, self)
  return self
end

-- --- what is asked

-- A code of the client's is the contract's, or none.
local function failed(problem, code, seconds)
  local is_answer = code == "not_found" or code == "conflict" or code == "store"
  return nil, problem, is_answer and "store" or code, seconds
end

local function strange(self)
  return nil, explain.named(lease.STRANGE, "kubernetes", self.client.server), "store"
end

-- @return the Lease, false where there is none; or nil, message, code, seconds
local function look(self)
  local known, sent = self.sight.version, core.now()
  local found, problem, code, seconds = self.client:ask("GET", self.path, nil, self.timeout)
  if not found and code ~= "not_found" then return failed(problem, code, seconds) end
  if found and not lease.is(found) then return strange(self) end
  self.sight:saw(found and lease.read(found) or nil, known, core.now())
  self.orders:saw(Orders.answer(found), sent)
  self.object = found or nil
  return found or false
end

-- client-go compares times in whole seconds: what it is to notice has another one. It need not be the true one.
local function next_second(self)
  self.stamped = math.max(os.time(), self.stamped + 1)
  return self.stamped
end

-- @return the Lease as it was stored; or nil, message, code, seconds
local function write(self, method, object)
  local path, sent = method == "POST" and paths.leases(self.namespace) or self.path, core.now()
  local found, problem, code, seconds = self.client:ask(method, path, object, self.timeout)
  if not found then return nil, problem, code, seconds end
  if not lease.is(found) then return strange(self) end
  self.sight:saw(lease.read(found), nil, core.now())
  self.orders:saw(Orders.answer(found), sent)
  self.object = found
  return found
end

-- --- leading

local function is_ours(self, record)
  local term = self.term
  return term ~= nil and record and record.uid == term.uid and record.holder == self.identity
    and record.transitions == term.transitions
end

local function is_asked_to_go(self, record)
  return not self.told_to_go and record.evict == lease.wish(record)
end

local function granted(self, first)
  local ttl = self.sight:counted()
  local delay = math.min(self.delay, ttl / 3)
  return true, first and grants.first_delay(delay) or delay, grants.grant(ttl, self.term.epoch)
end

local function begin_term(self, found)
  local record = lease.read(found)
  self.term = { uid = record.uid, transitions = record.transitions, epoch = record.epoch }
  self.told_to_go = false
  return granted(self, true)
end

-- Who is known to hold the Lease, as a denial says it.
local function holder_of(record, more)
  if record then
    more.node, more.epoch = record.holder and lease.node(record.holder), record.epoch
  end
  return more
end

local function lost(self)
  local record = self.sight.record
  self.term = nil
  if not record then
    return self.doubt:denial(self.sight:doubt_left(core.now()), nil, { error = "somebody has deleted the Lease" })
  end
  return false, holder_of(record, { expires_in = math.max(0, self.sight:left(core.now())),
    error = record.holder and "the Lease is not this term's" or "somebody has taken the holder out of the Lease" })
end

-- --- claiming

-- Without a watch nobody tells of a release.
local function denied(self, left)
  local is_told, seconds = self.watch:is_live(), math.max(0, left)
  local by_itself = is_told or seconds <= self.retry
  return false, holder_of(self.sight.record, {
    expires_in = by_itself and seconds or nil, retry_in = not by_itself and self.retry or nil,
    unsure = not self.sight.is_renewed or nil })
end

local function doubted(self, left, was_empty)
  return self.doubt:denial(left, was_empty, holder_of(self.sight.record, { expires_in = left + candidate.apart() }))
end

-- Writes what a look has found to be free.
local function take(self, found)
  local term = { namespace = self.namespace, name = self.name, identity = self.identity, seconds = self.seconds,
    transitions = self.sight:next_transitions() }
  local object = found and lease.taken(found, term, next_second(self)) or lease.created(term, next_second(self))
  local ends_order, rest = self.orders:rest()
  if ends_order then object = lease.ordering(object, rest) end
  self.is_asking = true -- until it is known what became of it
  local made, problem, code, seconds = write(self, found and "PUT" or "POST", object)
  if made then
    self.is_asking = false
    return begin_term(self, made)
  end
  if code ~= "conflict" then return failed(problem, code, seconds) end
  self.is_asking = false
  found, problem, code, seconds = look(self)
  if found == nil then return nil, problem, code, seconds end
  return denied(self, self.sight:left(core.now()))
end

function Kubernetes:claim()
  self.term = nil
  local found, problem, code, seconds = look(self)
  if found == nil then return nil, problem, code, seconds end
  local sight, now = self.sight, core.now()
  if sight.record and sight.record.strategy then
    return nil, STRATEGY:format(self.namespace, self.name, sight.record.strategy), "store"
  end
  local left, was_empty = sight:doubt_left(now)
  if left > 0 then return doubted(self, left, was_empty) end
  left = sight:left(now)
  if left > 0 then return denied(self, left) end
  local wait, why = self.orders:barred(true)
  if wait then return false, { retry_in = wait, error = why } end
  return take(self, found)
end

function Kubernetes:refresh()
  if not self.term then return false end
  local problem, code, seconds
  for _ = 1, TRIES do
    local found
    found, problem, code, seconds = write(self, "PUT", lease.renewed(self.object, self.seconds, next_second(self)))
    if found then return granted(self) end
    if code ~= "conflict" and code ~= "not_found" then return failed(problem, code, seconds) end
    found, problem, code, seconds = look(self)
    if found == nil then return nil, problem, code, seconds end
    local record = self.sight.record
    if not is_ours(self, record) then return lost(self) end
    if is_asked_to_go(self, record) then return eviction.tell(self) end
  end
  return nil, "others write to the Lease all the time", "store"
end

-- Gives back what is ours, also by a claim that nobody has answered.
function Kubernetes:abdicate()
  local is_known = self.term ~= nil and self.object ~= nil
  if not is_known and not self.is_asking then return end
  self.term, self.is_asking = nil, false
  for _ = 1, TRIES do
    if not is_known and not look(self) then return end
    if lease.read(self.object).holder ~= self.identity then return end
    local _, _, code = write(self, "PUT", lease.released(self.object, next_second(self)))
    if code ~= "conflict" then return end
    is_known = false
  end
end

-- --- what is heard

--- Takes in what the watch tells; see crown.kubernetes.watch.
-- @tparam[opt] table object the Lease
function Kubernetes:heard(object)
  local record = object and lease.is(object) and lease.read(object)
  local version = self.sight.version
  if record and not (version and lease.is_before(record.version, version)) then
    self.orders:saw(Orders.answer(object), core.now())
  end
  if not record then
    self.election:send "look"
  elseif self.term then
    local is_news = version and lease.is_before(version, record.version)
    if is_news and (not is_ours(self, record) or is_asked_to_go(self, record)) then self.election:send "look" end
  elseif self.sight:heard(record, core.now()) and not record.holder then
    self.election:send "look"
  end
end

function Kubernetes:handle_info(message)
  if message ~= "look" then return end
  if self.term then return self:refresh() end
  return self:claim()
end

Kubernetes.list, Kubernetes.evict, Kubernetes.health, Kubernetes.rights = admin.list, admin.evict, admin.health, admin.rights

local function holder_now(self)
  if look(self) == nil then return nil end
  return self.sight:left(core.now()) > 0 and holder_of(self.sight.record, {})
end

return ordered.oracle(Kubernetes, { word = "kubernetes", feeds = true, visit = admin.with_orders, holder = holder_now,
  owner = function(self) return self.watch, self.name end,
  leads = function(self) return self.term ~= nil end,
  looks = function(self) return self.delay end,
  store = function(self)
    return Orders.new(function(method, path, body) return self.client:ask(method, path, body, self.timeout) end, self.namespace)
  end })
