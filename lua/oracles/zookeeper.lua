--- An election in ZooKeeper as Curator's LeaderLatch or kazoo's Election has it: each candidate makes a node in the election's
-- directory, which goes with its session; the lowest number leads. URL: `zookeeper://host:port,host:port/PATH?recipe=kazoo`. See
-- docs/oracle-zookeeper.md.
-- @module crown.oracles.zookeeper

local admin = require "crown.zookeeper.admin"
local candidate = require "crown.oracle.candidate"
local core = require "crown.core"
local Doubt = require "crown.oracle.doubt"
local eviction = require "crown.oracle.eviction"
local explain = require "crown.link.explain"
local lease = require "crown.oracle.lease"
local memory = require "crown.zookeeper.memory"
local options = require "crown.zookeeper.options"
local ordered = require "crown.oracle.ordered"
local Orders = require "crown.zookeeper.orders"
local recipe = require "crown.zookeeper.recipe"
local Session = require "crown.zookeeper.session"
local Trust = require "crown.oracle.trust"
local wire = require "crown.zookeeper.wire"
local zookeeper_url = require "crown.zookeeper.url"

local ZooKeeper = { leaves = true } -- also a follower has a place in the queue
ZooKeeper.__index = ZooKeeper

local TICK = 2 -- seconds by which a server may be late to end a session
local TRIES = 4 -- where nodes go while we look
local CHANGES = "the election's directory changes all the time"

ZooKeeper.timing = options.timing

--- How many seconds it takes at most until somebody leads after a leader that has died.
function ZooKeeper.failover(opts)
  return options.timing(opts) / Session.LEASE + TICK
end

local function new_session(checked)
  local trust = Trust.of("zookeeper " .. checked.url)
  trust:lasts(checked.ttl)
  return { parsed = checked.parsed, ttl = checked.ttl, timeout = options.timeout(checked), acl = checked.rights, trust = trust,
    doubt = Doubt.of("zookeeper", checked.url, checked), amnesia_wait = checked.amnesia_wait, trust_empty = checked.trust_empty }
end

function ZooKeeper.init(opts)
  local checked, problem = options.check(opts)
  if not checked then return nil, problem end
  local name = tostring(checked.lock or opts.crown_name)
  local base = recipe.base(checked.parsed.path, name)
  if opts.checking then return setmetatable({}, ZooKeeper) end
  local token
  token, problem = candidate.enter("zookeeper " .. checked.url, base, opts)
  if not token then return nil, problem end
  local key = ("%s\n%s\n%.17g\n%.17g\n%s\n%.17g\n%s"):format(checked.url, opts.token, checked.ttl, options.timeout(checked),
    checked.acl, checked.amnesia_wait, tostring(checked.trust_empty))
  local session = Session.of(key, function() return new_session(checked) end)
  return setmetatable({ session = session, kind = checked.kind, node = opts.node, base = base, name = name,
    owner = recipe.owner(("%s\n%s\n%s"):format(checked.url, base, token)), send = opts.send }, ZooKeeper)
end

-- An answer of ZooKeeper's is the store's; what the user has to mend is told as it is.
local function failed(problem, code)
  return nil, problem, type(code) == "number" and "store" or code
end

local function named(self, words)
  local link = self.session.link
  return nil, explain.named(words, "zookeeper", link and link.server or zookeeper_url.label(self.session.parsed)), "store"
end

-- --- the place in the queue

local function leave(self)
  local place = self.place
  self.place, self.epoch = nil, nil
  if place then self.session:leave(place) end
end

local function create(self, connection, place)
  local session = self.session
  local path = ("%s/%s"):format(self.base, self.kind.front(place.guid))
  place.is_pending = true
  local made, problem, code = connection:ask(session.timeout, "create", path, self.node, session.acl, wire.EPHEMERAL_SEQUENTIAL)
  if code == wire.NO_NODE then
    local kind, flags = unpack(self.kind.directory)
    made, problem, code = memory.make_path(connection, session.timeout, self.base, session.acl, kind, flags)
    if made then
      made, problem, code = connection:ask(session.timeout, "create", path, self.node, session.acl, wire.EPHEMERAL_SEQUENTIAL)
    end
  end
  if code ~= "closed" and code ~= "timeout" then place.is_pending = false end
  if not made then return nil, ("%s: %s"):format(self.base, problem), code end
  place.path, place.name = made.path, made.path:sub(#self.base + 2)
  return true
end

-- Nodes of this candidate's that are not its place: of a runtime that has died, of whose trees nothing is left or this one would
-- not run, or of a claim of this one that nobody answered. They would be waited for. @return whether there were any
local function delete_own(self, connection, queue)
  local any = false
  for _, one in ipairs(queue) do
    local place = self.place
    local is_own = one.guid:sub(1, #self.owner) == self.owner
    if is_own and (one.guid ~= place.guid or place.name and place.name ~= one.name) then
      any = true
      connection:ask(self.session.timeout, "delete", ("%s/%s"):format(self.base, one.name))
    end
  end
  return any
end

local function find(queue, place)
  for i, one in ipairs(queue) do
    if one.guid == place.guid and (not place.name or place.name == one.name) then return i end
  end
end

-- The queue, as one server has it since our node was made there: what is lower and was made before it, is in it.
local function look(self, connection)
  local names, problem, code = connection:ask(self.session.timeout, "children", self.base)
  if code == wire.NO_NODE then return {} end
  if not names then return nil, ("%s: %s"):format(self.base, problem), code end
  local queue
  queue, problem = recipe.queue(self.kind, self.base, names)
  if queue then return queue end
  leave(self)
  return named(self, problem)
end

local function take_place(self, connection)
  local place = self.place
  if not place or place.gone or place.leading then
    leave(self)
    place = self.session:enter(self.base, recipe.guid(self.owner), self.send)
    self.place = place
  elseif place.path then
    return true
  end
  local queue, problem, code = look(self, connection) -- a node among another recipe's would be counted there
  if not queue then return nil, problem, code end
  local at = place.is_pending and find(queue, place)
  if at then -- it was made by a claim that nobody answered
    place.name, place.path, place.is_pending = queue[at].name, ("%s/%s"):format(self.base, queue[at].name), false
    return true
  end
  return create(self, connection, place)
end

-- --- leading

local function holder_of(self, connection, name)
  local found = connection:ask(self.session.timeout, "get", ("%s/%s"):format(self.base, name), false)
  return found and { node = recipe.read_data(found.data), epoch = wire.number(found.stat.czxid) } or {}
end

-- Our own node, which we are told of from now on.
-- @return what stands there, false where it is not ours; or nil, message, code
local function look_at_own(self, connection)
  local place, session = self.place, self.session
  session:watches(place, place.path)
  local found, problem, code = connection:ask(session.timeout, "get", place.path, true)
  if code == wire.NO_NODE then return false end
  if not found then return nil, problem, code end
  if found.stat.owner ~= session.id then return false end -- a session that is over made it
  place.watched = connection
  return found
end

local function lead(self, connection, sent)
  local session, place = self.session, self.place
  local found, problem, code = look_at_own(self, connection)
  if found == nil then return failed(problem, code) end
  if not found then
    place.gone = true
    return nil, "our node has gone while we were in the queue", "store"
  end
  local fine
  fine, problem, code = session.beats:ask()
  if fine then fine, problem, code = session:is_fresh(sent) end
  if not fine then return failed(problem, code) end
  if session.trust:left() > 0 then return session.trust:denial(session.doubt) end
  if place.gone or place.watched ~= session.link.connection then
    return nil, "the session has changed while we were in the queue", "store"
  end
  place.leading, place.sent, self.told_to_go, self.epoch = true, sent, false, wire.number(found.stat.czxid)
  self.grant = lease.grant(Session.LEASE * session.time, self.epoch, session:refresher())
  return true, lease.first_delay(Session.DELAY * session.time), self.grant
end

-- Only the candidate right behind a node is woken when it goes.
-- @return whether it is there; or nil, message, code
local function watch(self, connection, name)
  local path = ("%s/%s"):format(self.base, name)
  self.session:watches(self.place, path)
  local found, problem, code = connection:ask(self.session.timeout, "get", path, true)
  if found or code == wire.NO_NODE then return found ~= nil end
  return nil, ("%s: %s"):format(path, problem), code
end

-- @return what a claim returns; or nothing: look again
local function look_and_act(self, connection, sent)
  local queue, problem, code = look(self, connection)
  if not queue then return failed(problem, code) end
  if delete_own(self, connection, queue) then return end
  local at = find(queue, self.place)
  if not at then
    self.place.gone = true
    return nil, "our node has gone while we were in the queue", "store"
  end
  if at == 1 then return lead(self, connection, sent) end
  local is_there
  is_there, problem, code = watch(self, connection, queue[at - 1].name)
  if is_there == nil then return failed(problem, code) end
  if not is_there then return end
  local holder = holder_of(self, connection, queue[1].name)
  holder.retry_in = self.session.time
  return false, holder
end

function ZooKeeper:claim()
  local session, sent = self.session, core.now()
  local fine, problem, code = session.beats:ask()
  if session.trust:left() > 0 then
    leave(self)
    return session.trust:denial(session.doubt)
  end
  local connection
  if fine then connection, problem, code = session:ready() end
  if not connection then return failed(problem, code) end
  fine, problem, code = take_place(self, connection)
  if not fine then return failed(problem, code) end
  for _ = 1, TRIES do
    local verdict = { look_and_act(self, connection, sent) }
    if verdict[1] ~= nil or verdict[2] then return unpack(verdict, 1, 3) end
  end
  return nil, CHANGES, "store"
end

local function lost(self, connection)
  local session, holder = self.session, {}
  if session.trust:left() > 0 then return session.trust:denial(session.doubt) end
  local queue = connection and look(self, connection)
  local first = queue and queue[1]
  if first and first.guid ~= self.place.guid then holder = holder_of(self, connection, first.name) end
  holder.error = "our node is gone from the store"
  return false, holder
end

function ZooKeeper:refresh()
  local place, session, sent = self.place, self.session, core.now()
  if not place or not place.leading then return false end
  if place.gone then return lost(self, session.link and session.link.connection) end
  local connection, problem, code = session:ready()
  if not connection then return failed(problem, code) end
  local found
  found, problem, code = look_at_own(self, connection)
  if found == nil then return failed(problem, code) end
  if not found then return lost(self, connection) end
  local fine
  fine, problem, code = session.beats:ask()
  if fine then fine, problem, code = session:is_fresh(sent) end
  if place.gone then return lost(self, session.link and session.link.connection) end
  if not fine then return failed(problem, code) end
  if place.watched ~= session.link.connection then return nil, "the connection was lost meanwhile", "store" end
  place.sent = sent
  local _, is_asked_to_go = recipe.read_data(found.data)
  if is_asked_to_go and not self.told_to_go then return eviction.tell(self) end
  return true, Session.DELAY * session.time, self.grant
end

function ZooKeeper:abdicate(ending)
  leave(self)
  if ending then self.session:rest() end
end

function ZooKeeper:handle_info(message)
  local place = self.place
  if message ~= "look" then return end
  if place and place.leading then return self:refresh() end
  return self:claim()
end

ZooKeeper.list, ZooKeeper.evict, ZooKeeper.health, ZooKeeper.rights = admin.list, admin.evict, admin.health, admin.rights

local function first_in(self)
  local connection = self.session:ready()
  local queue = connection and look(self, connection)
  if queue then return queue[1] and holder_of(self, connection, queue[1].name) or false end
end

return ordered.oracle(ZooKeeper, { word = "zookeeper", lists_candidates = true, visit = admin.with_orders, holder = first_in,
  owner = function(self) return self.session, self.name end,
  leads = function(self) return self.place ~= nil and self.place.leading == true end,
  store = function(self)
    local session = self.session
    local function ready()
      local connection, problem, code = session:ready()
      return connection, connection and session.timeout or problem, code
    end
    return Orders.new(ready, session.parsed.path, session.acl, function(connection) return session:watches_orders(connection) end)
  end })
