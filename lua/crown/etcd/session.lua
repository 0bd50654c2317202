--- What the elections of one runtime in one place of etcd share: a lease, a watch, and the questions that keep both. Each
-- election has keys of its own, bound to the lease, one for each time that it queues: what comes late never touches a later
-- one. That the lease lives says nothing of an election: a key whose election does not refresh it goes as if it had a lease
-- of its own, and so does a key that no election knows.
-- @internal crown.etcd.session

local base64 = require "crown.text.base64"
local Batch = require "crown.etcd.batch"
local core = require "crown.core"
local crypto = require "crown.core.crypto"
local explain = require "crown.link.explain"
local figure = require "crown.check.figure"
local gathered = require "crown.oracle.gathered"
local hex = require "crown.text.hex"
local keys = require "crown.etcd.keys"
local Memory = require "crown.etcd.memory"
local ordered = require "crown.oracle.ordered"
local Shared = require "crown.link.shared"
local together = require "crown.link.together"
local Watch = require "crown.etcd.watch"

local Session = {}
Session.__index = Session

local CLAIM_WINDOW = 0  -- seconds in which those gather who want the lease kept: a claim is in a hurry,
local REFRESH_WINDOW = 0.5  -- a refresh has time, the more the longer the lease
local REFRESH_PART = 1 / 60 -- of the TTL
local MOST = 128            -- leaders that are refreshed, or leave, by one call: etcd takes as many operations in a transaction
local DIGEST = 16           -- bytes of a digest that no two sessions share
local DRIFT = 0.01          -- the part by which etcd's clock may run differently
local KEPT_AFTER = 0.8      -- of the delay, after which the lease is kept for those who follow

local known = {}

-- --- places: what an election has in the queue, `{ encoded =, base =, send =, since =, leading =, sent =, gone =,
-- asked =, ahead = }`

-- What tells the keys of this session, also from one runtime of a candidate to the next.
local function own_digest(key)
  return hex(crypto.hmac_sha256("etcd session", key):sub(1, DIGEST))
end

local function lose(place)
  if place.gone then return end
  place.gone = true
  place.send "look"
end

-- Nothing that is ahead of a place is waited for any more.
local function wait_no_more(self, place)
  if place.ahead then self.ahead[place.ahead] = nil end
  place.ahead = nil
end

-- The lease has ended, or what kept it is not believed: no key counts any more.
local function finish(self)
  local places = self.places
  self.lease, self.places, self.orphans = nil, {}, {}
  for _, place in pairs(places) do
    wait_no_more(self, place)
    lose(place)
  end
end

-- The lease may live in etcd, but the time for which it was acted on is over, and others may have gone by that. What it still
-- holds there is left to nobody.
local function give_up(self, lease)
  local over = self.from + self.ttl
  finish(self)
  core.detach(function()
    core.sleep(math.max(0, over - core.now()))
    self.client:ask("/v3/lease/revoke", { ID = lease })
  end)
end

local function delete(self, orphans)
  local ops = {}
  for i, encoded in ipairs(orphans) do ops[i] = { request_delete_range = { key = encoded } } end
  if not self.batch:ask(ops) then return end
  for _, encoded in ipairs(orphans) do self.orphans[encoded] = nil end
end

-- What no election has any use for is deleted until it is gone.
local function delete_orphans(self)
  local lot = {}
  for encoded in pairs(self.orphans) do
    lot[#lot + 1] = encoded
    if #lot == MOST or not next(self.orphans, encoded) then
      core.detach(delete, self, lot)
      lot = {}
    end
  end
end

-- Compares the keys that the lease holds with those that there should be: the watch tells of what is deleted, but not of what
-- a claim that came late has made.
local function compare(self, asked_at)
  self.compared = asked_at
  local lease = self.lease
  local answer = self.client:ask("/v3/lease/timetolive", { ID = lease, keys = true })
  if not answer or answer.ID ~= lease then return end
  local found = {}
  for _, encoded in ipairs(answer.keys or {}) do
    found[encoded] = true
    if not self.places[encoded] then self.orphans[encoded] = true end
  end
  for encoded, place in pairs(self.places) do
    if place.since and place.since < asked_at and not found[encoded] then lose(place) end
  end
end

-- A leader that has not refreshed for a whole lease has given up long since: its key goes as a lease of its own would.
local function drop_overdue(self)
  local now = core.now()
  for _, place in pairs(self.places) do
    if place.leading and place.sent + self.ttl < now then
      self:leave { place }
      lose(place)
    end
  end
end

-- The lease, and at the same time questions of which a majority answers the last, in one term of etcd's leader: none that was
-- deposed before we asked has kept it, and a later one counts the lease anew. Where etcd was started anew it may lack keys that
-- the lease had. What is answered when the lease may have been over for a moment comes too late: it is never acted on again.
local function keep(self)
  local lease, known_at, sent = self.lease, self.trust.at, core.now()
  if not lease then return nil, "there is no lease", "store" end
  local one, other = together(function() return self.client:ask("/v3/lease/keepalive", { ID = lease }) end,
    function() return self.memory:look() end)
  local answer, problem, code = unpack(one, 1, 3)
  if not answer then return nil, problem, code end
  if answer.ID ~= lease then return nil, Memory.OTHER, "protocol" end
  if tonumber(answer.TTL or 0) <= 0 then
    if self.lease == lease then finish(self) end
    return true
  end
  local header, younger, why = unpack(other, 1, 3)
  if not header then return nil, younger, why end
  if not answer.header or answer.header.raft_term ~= header.raft_term then return nil, Memory.CHANGED, "store" end
  local _, forgot = self:believes(header, known_at)
  if forgot then
    finish(self)
  elseif younger then
    compare(self, core.now())
  end
  if self.lease ~= lease then return true end
  if core.now() - self.from >= self.ttl * (1 - DRIFT) then
    give_up(self, lease)
    return true
  end
  self.from, self.term = sent, header.raft_term
  return true
end

local function is_following(self)
  for _, place in pairs(self.places) do
    if not place.leading then return true end
  end
  return false
end

-- Who follows needs the lease as well: its key is its place in the queue. Leaders mostly keep it by themselves.
local function look_after(self)
  while next(self.places) do
    local left = self.lease and is_following(self) and self.from + self.delay * KEPT_AFTER - core.now() or self.delay
    core.sleep(left > 0 and left or self.delay * KEPT_AFTER)
    if self.lease and core.now() - self.from >= self.delay * KEPT_AFTER then self.refreshes:ask() end
    if self.lease then
      drop_overdue(self)
      if core.now() - (self.compared or 0) > self.ttl then compare(self, core.now()) end
      delete_orphans(self)
    end
  end
  self.looking = false
end

local function open(self)
  if self.lease then return true end
  local seen, why, kind = self.memory:look()
  if not seen then return nil, why, kind end
  if self.trust:left() > 0 then return nil, "etcd may have forgotten who leads", "store" end
  local lease, sent = keys.new_lease(), core.now()
  local answer, problem, code = self.client:ask("/v3/lease/grant", { TTL = ("%d"):format(self.asked_ttl), ID = lease })
  if not answer then return nil, problem, code end
  local lasts = tonumber(answer.TTL or 0)
  if answer.ID ~= lease or lasts < self.asked_ttl then return nil, Memory.OTHER, "protocol" end
  self.ttl = lasts -- by its election time-out etcd has a least
  if lasts > self.asked_ttl then
    self.trust:lasts(self.ttl)
    seen, why, kind = self.memory:look() -- so that it is written down before anybody acts on it
    if not seen then return nil, why, kind end
  end
  self.from, self.lease, self.hex = sent, lease, ("%016s"):format(keys.hex(lease)):gsub(" ", "0")
  return true
end

-- --- messages

local function heard(self, what, encoded, value)
  local place, name = self.places[encoded], self.ordered[encoded]
  if name then ordered.hear(self, name) end
  if what == "DELETE" then
    if place then lose(place) end
    local behind = self.ahead[encoded]
    if behind then
      wait_no_more(self, behind)
      behind.send "look"
    end
  else
    local leader = value and self.places[value] -- a mark: its value is the leader's key
    if leader and leader.leading then
      leader.asked = true
      leader.send "look"
    end
  end
end

local function missed(self)
  ordered.hear(self)
  for _, place in pairs(self.places) do
    place.asked = place.leading
    wait_no_more(self, place)
    place.send "look"
  end
end

--- The session of a runtime in a place of etcd; the first election there makes it.
-- @string key what names runtime and place
-- @tparam function make called for that one → `client`, `ttl`, `delay`, `timeout` in seconds, `trust`, `prefix` ("" for none),
-- `floor` and `trust_empty` as crown.etcd.memory has them, `doubt` (crown.oracle.doubt)
-- @treturn Session
function Session.of(key, make)
  if known[key] then return known[key] end
  local options = make()
  local self = setmetatable({ client = options.client, ttl = options.ttl, asked_ttl = options.ttl, delay = options.delay,
    timeout = options.timeout, doubt = options.doubt,
    window = math.min(REFRESH_WINDOW, options.ttl * REFRESH_PART), trust = options.trust, prefix = options.prefix,
    batch = Batch.new(options.client), digest = own_digest(key), count = 0, places = {}, ahead = {}, orphans = {},
    ordered = {}, refreshers = {} }, Session) -- `ordered`: the elections by the keys of their orders
  self.memory = Memory.new { client = options.client, prefix = options.prefix, trust = options.trust, new_lease = keys.new_lease,
    floor = options.floor, trust_empty = options.trust_empty }
  self.all = self.prefix ~= "" and keys.range(self.prefix .. "/") or nil
  self.watch = Watch.new { client = options.client, timeout = options.timeout,
    on_event = function(...) heard(self, ...) end, on_missed = function() missed(self) end }
  self.openings = Shared.new(function() return open(self) end, CLAIM_WINDOW)
  self.claims = Shared.new(function() return keep(self) end, CLAIM_WINDOW)
  self.refreshes = Shared.new(function() return self.claims:ask() end, self.window) -- one after the other, on few connections
  known[key] = self
  return self
end

--- A revision that went back, or another cluster: the store was made anew, and has forgotten who leads.
-- @tparam table header of an answer
-- @number[opt] known_at `trust.at` when it was asked; nil: nothing was known then
-- @treturn boolean whether it is believed
-- @treturn boolean whether it has forgotten
function Session:believes(header, known_at)
  return self.trust:saw { identity = header.cluster_id, at = tonumber(header.revision) or 0, known = known_at or 0 }
end

local function range_of(self, base)
  return self.all or keys.election(base)
end

--- Queues for an election: chooses the key. Nothing is written yet.
-- @string base the election's name
-- @tparam function send called with "look" when there is something to look at
-- @treturn table the place; or nil, message, code
function Session:queue(base, send)
  local place = { base = base, send = send }
  local fine, problem, code = self.openings:ask()
  if fine then fine, problem, code = self.watch:over(range_of(self, base), place) end
  if not fine then return nil, problem, code end
  if not self.lease then return nil, "the lease has just ended", "store" end
  self.count = self.count + 1
  place.encoded = base64.encode(keys.place(base, self.hex, self.digest, self.count))
  place.lease = self.lease
  self.places[place.encoded] = place
  if not self.looking then
    self.looking = true
    core.detach(look_after, self)
  end
  return place
end

--- Waits for the key right before a place to go.
-- @tparam table place
-- @tparam table kv that key
-- @number revision at which it was there
-- @treturn boolean false: it may be gone already
function Session:wait_for(place, kv, revision)
  if self.watch:heard(range_of(self, place.base)) > revision then return false end
  place.ahead, self.ahead[kv.key] = kv.key, place
  return true
end

-- @return whether it was still in the queue
local function drop(self, place)
  place.leading, place.left = false, true
  self.watch:let_go(range_of(self, place.base), place)
  wait_no_more(self, place)
  local there = self.places[place.encoded] == place
  if there then self.places[place.encoded] = nil end
  return there
end

--- Leaves the queue.
-- @tparam table places so many that one transaction takes them
function Session:leave(places)
  local left, written = false, {}
  for _, place in ipairs(places) do
    if drop(self, place) then
      left = true
      if place.written then written[#written + 1] = place.encoded end
    end
  end
  if not left then return end
  if next(self.places) then
    for _, encoded in ipairs(written) do self.orphans[encoded] = true end
    if #written > 0 then delete(self, written) end
    return
  end
  local lease = self.lease -- with the last one all goes, also what comes late
  finish(self)
  if lease then self.client:ask("/v3/lease/revoke", { ID = lease }) end
end

-- The lease is that of all: what may be otherwise with one of them, the watch has told.
local function refresh_all(self, states)
  local sent = core.now()
  local fine, problem = self.refreshes:ask()
  if not fine then return nil, problem end
  local epochs = {}
  for i, state in ipairs(states) do
    local place = state.place
    local same = place and place.leading and not place.gone and not place.asked
    if same then place.sent = sent end
    epochs[i] = same and state.epoch
  end
  return epochs
end

local function release_all(self, states)
  local places = {}
  for _, state in ipairs(states) do
    places[#places + 1] = state.place
    state.place = nil
  end
  self:leave(places)
  return {}
end

--- What refreshes leaders without a task for each, as long as nothing has changed, and has them leave.
-- @treturn userdata for a grant; a state of these oracles has its `place` and its `epoch`
function Session:refresher()
  local ttl = self.ttl
  self.refreshers[ttl] = self.refreshers[ttl] or gathered { ttl = ttl, delay = self.delay, timeout = self.timeout + self.window,
    window = 0, most = MOST,
    refresh = function(states) return refresh_all(self, states) end,
    release = function(states) return release_all(self, states) end,
    late = function()
      return explain.named(("no answer within %s s"):format(figure.about(self.timeout)), "etcd", self.client:place())
    end }
  return self.refreshers[ttl]
end

--- Ends an earlier lease of this candidate: of a runtime that died, of whose trees nothing is left, or this one would not run; or
-- of this one, whose terms by it have ended.
-- @tparam table kv a key in the queue
-- @treturn boolean whether it was such a one
function Session:revokes(kv)
  local suffix = base64.decode(kv.key):match "/(%x+)$"
  if kv.lease == self.lease or not suffix or suffix:sub(#self.hex + 1, #self.hex + #self.digest) ~= self.digest then
    return false
  end
  self.client:ask("/v3/lease/revoke", { ID = kv.lease })
  return true
end

return Session
