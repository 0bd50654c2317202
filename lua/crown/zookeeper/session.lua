--- What the elections of one runtime in one ZooKeeper share: a session there, and the proof that it lives.
--
-- The server that answers is mostly not the one that ends sessions. That one is the quorum's leader, which hears of our questions
-- with its next ping to our server, each half tick. So an answer proves nothing of itself: two leaders were seen by that. A beat
-- is a write that changes nothing, which a quorum must agree to. When one is answered, the quorum's leader has heard of those
-- that were sent a good while before it on the same connection, and of the connection itself. From the latest of these the
-- session's time counts: `basis`.
-- @internal crown.zookeeper.session

local explain = require "crown.link.explain"
local Connection = require "crown.zookeeper.connection"
local core = require "crown.core"
local gathered = require "crown.oracle.gathered"
local memory = require "crown.zookeeper.memory"
local ordered = require "crown.oracle.ordered"
local Orders = require "crown.zookeeper.orders"
local promise = require "crown.core.promise"
local Reconnecting = require "crown.link.reconnecting"
local Shared = require "crown.link.shared"
local wire = require "crown.zookeeper.wire"
local zookeeper_url = require "crown.zookeeper.url"

local Session = {}
Session.__index = Session

--- The part of the session's time for which a leader may act, from the beginning of a refresh on.
Session.LEASE = 1 / 2

--- The part of it from one refresh to the next.
Session.DELAY = 1 / 6

local BEAT = 1 / 10 -- from one beat to the next
local GAP = 0.3 -- between a beat and the one that proves it. A tick is half of the shortest session at most, a ping half a tick
local FRESH = 0.45 -- how old the basis may be at a refresh: with the lease less than the whole
local WINDOW = 1 / 60 -- for which refreshes wait for company
local MOST = 128 -- leaders that are refreshed by one beat
local BACK = "transactions that were seen are missing there: its data were restored, or made anew"
local LATE = "the session was not proved to live for too long: the servers answer slowly, or a beat was late"

local known = {}

--- A session for all elections that have a key in common.
-- @string key
-- @tparam function make → `parsed`, `ttl`, `timeout` (seconds), `acl`, `trust`, `doubt`, `amnesia_wait`, `trust_empty`
-- @treturn Session
function Session.of(key, make)
  if known[key] then return known[key] end
  local self = setmetatable(make(), Session)
  self.time, self.places, self.orphans, self.watchers, self.refreshers, self.at = self.ttl, {}, {}, {}, {}, 0
  self.beats = Shared.new(function() return self:beat() end)
  known[key] = self
  return self
end

-- --- places: what an election has in its queue, `{ base =, guid =, send =, path =, name =, watched = the connection that tells
-- of it, leading =, sent = of
-- the last refresh, gone =, is_pending = nobody knows whether its node was made }`

local function lose(place)
  if place.gone then return end
  place.gone = true
  place.send "look"
end

-- The session is over, or may be: nothing of it counts any more.
local function finish(self)
  local places = self.places
  self.id, self.password, self.basis, self.places, self.watchers = nil, nil, nil, {}, {}
  for _, place in pairs(places) do lose(place) end
end

local function heard(self, what, path)
  if path == memory.node(self.parsed.path) then
    self.is_mark_stale = true
    return
  end
  if path == Orders.node(self.parsed.path) then
    self.told_of_orders = nil
    return ordered.hear(self)
  end
  local places = self.watchers[path]
  self.watchers[path] = nil
  for place in pairs(places or {}) do
    if place.path == path then place.watched = nil end
    if place.path == path and what == wire.DELETED then lose(place) else place.send "look" end
  end
end

--- Takes note that a connection tells of a node from now on.
-- @tparam table place to be told
-- @string path
function Session:watches(place, path)
  local places = self.watchers[path] or {}
  self.watchers[path] = places
  places[place] = true
end

-- --- beats

-- What a beat that was answered proves. @return the instant from which the session's time counts
local function proven(connection, sent, gap)
  local found, kept = connection.dialled, {}
  for _, one in ipairs(connection.sent) do
    if sent - one >= gap then found = math.max(found, one) end
  end
  for _, one in ipairs(connection.sent) do
    if one > found then kept[#kept + 1] = one end
  end
  kept[#kept + 1] = sent
  connection.sent = kept
  connection.dialled = found
  return found
end

-- @return true; false where the memory went back; or nil, message, code
local function pulse(self, connection)
  local reached, sent, id = self.trust.at, core.now(), self.id
  local _, problem, code = connection:ask(self.timeout, "delete", self.parsed.path .. "/@beat")
  if code and code ~= wire.NO_NODE then return nil, problem, code end
  if self.id ~= id then return nil, "the session is over", "store" end
  local basis = core.atomic(proven, connection, sent, GAP * self.time)
  self.basis = math.max(self.basis or basis, basis)
  local _, went_back = self.trust:saw { at = wire.number(connection.zxid), known = reached }
  return not went_back
end

local function forget(self, connection)
  self.doubt:because(BACK)
  finish(self)
  connection:close(BACK)
  return nil, connection.closed, "store"
end

local function check_memory(self, connection, went_back)
  self.is_mark_stale = false
  local same, problem, code = memory.look(self, connection, went_back)
  if same == nil then
    self.is_mark_stale = true
    return nil, problem, code
  end
  if not same then return forget(self, connection) end
  return true
end

--- Beats, on the connection that there is.
-- @treturn boolean true; or nil, message, code
function Session:beat()
  local connection, problem, code = self:ready()
  if not connection then return nil, problem, code end
  local same
  same, problem, code = pulse(self, connection)
  if same == nil then return nil, problem, code end
  if self.is_mark_stale or not same then return check_memory(self, connection, not same) end
  memory.ripen(self, connection) -- before anybody leads, so that newcomers do not wait for nothing
  return true
end

--- Whether a leader may act for a lease from an instant on.
-- @number sent
-- @treturn boolean true; or nil, message, code
function Session:is_fresh(sent)
  if self.id and self.basis and sent - self.basis <= FRESH * self.time then return true end
  return nil, LATE, "store"
end

-- A session that nobody has proved for its whole time may be over; it is never acted on again.
local function is_over(self)
  return self.id and self.basis and core.now() - self.basis >= self.time
end

-- A leader that has not refreshed for a whole lease has given up long since: its node goes as a session of its own would.
local function drop_overdue(self)
  local now = core.now()
  for _, place in pairs(self.places) do
    if place.leading and place.sent + Session.LEASE * self.time < now then
      core.detach(self.leave, self, place)
      place.send "look"
    end
  end
end

-- --- connecting

local function enter(self, connection)
  local welcome = connection.welcome
  if welcome.ttl <= 0 then
    finish(self)
    connection:close "the session is over"
    return false
  end
  if welcome.id ~= self.id then finish(self) end
  self.id, self.password, self.time = welcome.id, welcome.password, welcome.ttl
  connection.sent, self.watchers = {}, {}
  connection.on_event = function(what, path) heard(self, what, path) end
  return true
end

-- @return the connection; false where its session is over; or nil, message, code
local function try(self, place, link)
  if is_over(self) then finish(self) end
  local connection, problem, code = Connection.open(self.parsed, place, self, link:patience(self.timeout), link)
  if not connection then return nil, problem, code end
  if not enter(self, connection) then return false end
  local same
  same, problem, code = pulse(self, connection)
  if same ~= nil then same, problem, code = check_memory(self, connection, not same) end
  if not same then
    connection:close(problem)
    return nil, problem, code
  end
  for _, one in pairs(self.places) do one.send "look" end
  ordered.hear(self)
  return connection
end

-- Each server once, the next one first: the last was lost.
local function open(self, link)
  local hosts, problem, code = self.parsed.hosts, nil, nil
  for _ = 1, #hosts do
    self.at = self.at % #hosts + 1
    local place = hosts[self.at]
    link.server = explain.place(place.host, place.port)
    local connection
    connection, problem, code = try(self, place, link)
    if connection == false then connection, problem, code = try(self, place, link) end
    if connection then return connection end
  end
  return nil, problem or "the session is over", code
end

-- --- orphans: nodes that no election has any use for, and that may come late

local function delete_all(self, connection, guid, base)
  local names, _, code = connection:ask(self.timeout, "children", base)
  if code == wire.NO_NODE then return true end
  if not names then return false end
  local is_clean = true
  for _, name in ipairs(names) do
    if name:gsub("-", ""):find(guid, 1, true) then
      is_clean = false
      connection:ask(self.timeout, "delete", base .. "/" .. name)
    end
  end
  return is_clean
end

-- What was under way on a connection comes no more once the session has another one and that has been proved.
local function delete_orphans(self, connection)
  for guid, one in pairs(self.orphans) do
    local is_clean = delete_all(self, connection, guid, one.base)
    if is_clean and core.now() - one.since > 2 * self.timeout then self.orphans[guid] = nil end
  end
end

local function look_after(self, link)
  while self.link == link do
    core.sleep(BEAT * self.time)
    if is_over(self) then finish(self) end
    core.atomic(drop_overdue, self)
    local connection = self.beats:ask() and link.connection
    if connection then delete_orphans(self, connection) end
  end
end

local function start(self)
  if self.link then return end
  local link = Reconnecting.new { open = function(link) return open(self, link) end, label = "zookeeper", store = "zookeeper",
    timeout = self.timeout, server = zookeeper_url.label(self.parsed), tls = self.parsed.tls }
  self.link = link
  core.detach(look_after, self, link)
end

--- Waits until there is a connection in the session.
-- @treturn Connection or nil, message, code
function Session:ready()
  core.atomic(start, self)
  return self.link:ready(self.timeout)
end

--- Whether a watch of the orders has yet to be set on a connection, which it then has.
-- @tparam Connection connection
-- @treturn boolean
function Session:watches_orders(connection)
  local is_new = self.told_of_orders ~= connection
  self.told_of_orders = connection
  return is_new
end

--- Enters a place. Its node is not made yet.
-- @string base the directory
-- @string guid of crown.zookeeper.recipe
-- @tparam function send called with "look" when there is something to look at
-- @treturn table the place
function Session:enter(base, guid, send)
  local place = { base = base, guid = guid, send = send }
  self.places[guid] = place
  return place
end

--- Leaves a place: its node is deleted, also if it comes late.
-- @tparam table place
function Session:leave(place)
  local is_there = self.places[place.guid] == place
  self.places[place.guid], place.leading, place.gone = nil, false, true
  if not is_there then return end -- its session is over
  local connection = self.link and self.link.connection
  if place.path and not place.is_pending and connection then
    local deleted, _, code = connection:ask(self.timeout, "delete", place.path)
    if deleted or code == wire.NO_NODE then return end
  end
  if place.path or place.is_pending then self.orphans[place.guid] = { base = place.base, since = core.now() } end
end

--- Ends the session where no election has a place in it.
function Session:rest()
  local link = self.link
  if not link or next(self.places) or next(self.orphans) then return end
  self.link = nil
  local connection = link.connection
  if connection then connection:ask(self.timeout, "close") end
  link:close()
  if not self.link then finish(self) end
end

-- --- what refreshes leaders without a task for each

local function refresh_all(self, states)
  local sent = core.now()
  local fine, problem = self.beats:ask()
  if fine then fine, problem = self:is_fresh(sent) end
  if not fine then return nil, problem end
  local epochs, connection = {}, self.link and self.link.connection
  for i, state in ipairs(states) do
    local place = state.place
    local same = connection and place and place.leading and not place.gone and place.watched == connection
    if same then place.sent = sent end
    epochs[i] = same and state.epoch or false
  end
  return epochs
end

local function release_all(self, states)
  local all = {}
  for i, state in ipairs(states) do
    local place = state.place
    state.place, all[i] = nil, promise()
    core.detach(function()
      if place then self:leave(place) end
      all[i]:resolve(true)
    end)
  end
  for _, one in ipairs(all) do one:wait(self.timeout) end
  return {}
end

--- What a grant carries.
-- @treturn userdata for leases of half the session's time
function Session:refresher()
  local time = self.time
  self.refreshers[time] = self.refreshers[time] or gathered { ttl = Session.LEASE * time, delay = Session.DELAY * time,
    timeout = 2 * self.timeout, window = WINDOW * time, most = MOST,
    refresh = function(states) return refresh_all(self, states) end,
    release = function(states) return release_all(self, states) end,
    late = function() return self.link and self.link:late(self.timeout) or "the session is over" end }
  return self.refreshers[time]
end

return Session
