--- An election as `consul lock` and Consul's own clients have it: a key that the leader's session holds. See
-- docs/oracle-consul.md.
-- @internal crown.consul.election

local admin = require "crown.consul.admin"
local base64 = require "crown.text.base64"
local Belief = require "crown.consul.belief"
local candidate = require "crown.oracle.candidate"
local Client = require "crown.consul.client"
local core = require "crown.core"
local Doubt = require "crown.oracle.doubt"
local eviction = require "crown.oracle.eviction"
local grants = require "crown.oracle.lease"
local lock = require "crown.consul.lock"
local options = require "crown.consul.options"
local ordered = require "crown.oracle.ordered"
local Orders = require "crown.consul.orders"
local place = require "crown.consul.place"
local session = require "crown.consul.session"
local Watch = require "crown.consul.watch"

local Election = { name = "consul", leaves = true } -- a watch of a follower's ends
Election.__index = Election

local HELD_BACK = 1 -- seconds until a lock is asked for again that Consul keeps back: no query tells when that ends
local PATIENT_TTLS = 4 -- where changes are told
local TRIES = 3 -- to give the lock back
local FOREIGN = "the key %s is no lock of Consul's clients: another program uses it, or 'consul lock -n' with more than one; "
  .. "give another lock=NAME"
local KEPT_BACK = "Consul keeps the lock back for its lock-delay: the session of the last leader did not end in order"

Election.timing = options.timing

--- How many seconds it takes at most until somebody leads after a leader that has died: Consul ends a session after twice its
-- TTL, and keeps the lock back.
function Election.failover(opts)
  local ttl = options.timing(opts)
  return 2 * ttl + options.lock_delay(opts, ttl) + HELD_BACK
end

-- The client, the belief and the watch that the elections with the same options share.
local shared = setmetatable({}, { __mode = "v" })

local function owner_of(checked)
  local key = options.key(checked)
  local owner = shared[key]
  if owner then return owner end
  local client, problem = Client.new(checked.url, checked, true)
  if not client then return nil, problem end
  owner = { client = client, belief = Belief.new(client, checked), watch = Watch.new(client) }
  shared[key] = owner
  return owner
end

-- What the agent tells. A stale one may tell of what was: it is looked. So it is when nobody tells any more.
local function heard(self, found)
  if not found then return self.election:send "look" end
  ordered.hear(self.owner, self.name)
  local held = found.lock
  local is_news = not self.term and not (held and held.session)
  if self.term then
    is_news = not held or held.session ~= self.term.session or found.evicted and found.evicted.text == self.term.session
  end
  if is_news then self.election:send "look" end
end

function Election.init(opts)
  local checked, problem = options.check(opts)
  if not checked then return nil, problem end
  if opts.checking then return setmetatable({}, Election) end
  local name = tostring(checked.lock or opts.crown_name)
  local owner
  owner, problem = owner_of(checked)
  if not owner then return nil, problem end
  local token
  token, problem = candidate.enter("consul " .. options.key(checked), name, opts)
  if not token then return nil, problem end
  local self = setmetatable({ owner = owner, client = owner.client, belief = owner.belief, name = name, node = opts.node,
    token = token, base = lock.base(owner.client.prefix, name), ttl = checked.ttl, delay = checked.delay, retry = checked.retry,
    lock_delay = checked.lock_delay, timeout = options.timeout(checked), election = candidate.of(opts),
    doubt = Doubt.of("consul", checked.url, checked) }, Election)
  self.key = lock.key(self.base, "lock")
  return self
end

-- --- what is asked

-- @return what stands there, by "lock", "orders" and "evicted"; or nil, message, code
local function look(self)
  local sent, doubts = core.now(), self.belief.doubts
  if self.doubts ~= doubts then self.highest, self.doubts = nil, doubts end
  local known = self.highest or 0
  local answer, problem, code = self.client:ask({ path = place.path(self.base) .. "?recurse&consistent", is_urgent = true },
    self.timeout)
  if not answer then return nil, problem, code end
  local index = self.client.index(answer)
  local found = index and lock.all(lock.entries(answer), self.base)
  if not found then return self.client:strange() end
  local seen = found.lock and found.lock.index
  if seen and seen < known then self.belief:went_back() end
  self.highest = seen or self.highest
  self.orders:saw(Orders.answer(found.orders), sent)
  return found
end

-- --- leading

local function granted(self, delay)
  return true, delay, grants.grant(self.ttl, self.term.epoch)
end

local function holder_of(held, more)
  more.node, more.epoch = held and held.session and held.node or nil, held and held.session and held.index or nil
  return more
end

local function lost(self, held, why)
  self.term, self.session = nil, nil
  return false, holder_of(held, { error = why })
end

-- --- claiming

-- Of a leader of `consul lock` only the session has a name.
local function name_holder(self, held)
  if held.node then return end
  if self.named ~= held.session then
    self.named, self.peer = held.session, session.name(self.client, held.session, self.timeout)
  end
  held.node = self.peer
end

local function denied(self, held)
  name_holder(self, held)
  return false, holder_of(held, { retry_in = self.watch.is_live and PATIENT_TTLS * self.ttl or self.retry })
end

-- A session that lives, and was renewed by a question that was sent after the claim began. @return true; or nil, message, code
local function in_session(self)
  local alive, problem, code = false, nil, nil
  if self.session then alive, problem, code = session.renew(self.client, self.session, self.timeout) end
  if alive == nil then return nil, problem, code end
  if alive then return true end
  self.session, problem, code = session.create(self.client, self, self.timeout)
  if not self.session then return nil, problem, code end
  return true
end

local function begin_term(self, index)
  self.term = { session = self.session, epoch = index }
  self.told_to_go = false
  return granted(self, grants.first_delay(self.delay))
end

-- Takes the lock, where Consul is believed in the same step.
local function take(self, index)
  local operation = { Verb = "lock", Key = self.key, Value = base64.encode(lock.value(self.node, self.token)), Flags = lock.FLAGS,
    Session = self.session }
  self.is_asking = true -- until it is known what became of it
  local results, problem, code, said = self.client:write({ self.belief:stands(index), operation }, self.timeout, true)
  for _, one in ipairs(results or {}) do
    local made = type(one) == "table" and one.Key == self.key and tonumber(one.ModifyIndex)
    if made then
      self.is_asking = false
      return begin_term(self, made)
    end
  end
  if not said then return nil, problem or "another candidate doubts Consul", code or "store" end
  self.is_asking = false
  if said:find("lock delay", 1, true) then return false, { retry_in = HELD_BACK, error = KEPT_BACK } end
  if said:find("already held", 1, true) then return false, { retry_in = self.retry } end
  if said:find("invalid session", 1, true) then self.session = nil end
  return nil, problem, code
end

function Election:claim()
  self.term = nil
  self.watch = self.watch or self.owner.watch:follow(self.base, self.timeout, function(found) heard(self, found) end)
  local found, problem, code = look(self)
  if not found then return nil, problem, code end
  local held = found.lock
  if held and held.is_foreign then return nil, FOREIGN:format(self.key), "store" end
  local left, more
  left, more, code = self.belief:look(self.timeout)
  if not left then return nil, more, code end
  if left > 0 then return self.doubt:denial(left, more, { expires_in = left + candidate.apart() }) end
  -- The runtime of before had the same token: of its trees nothing is left, or this one would not run.
  if held and held.session and held.token == self.token then self.session = held.session end
  if held and held.session and held.session ~= self.session then return denied(self, held) end
  local wait, why = self.orders:barred(true)
  if wait then return false, { retry_in = wait, error = why } end
  local fine
  fine, problem, code = in_session(self)
  if not fine then return nil, problem, code end
  return take(self, more)
end

function Election:refresh()
  local term = self.term
  if not term then return false end
  local alive, problem, code = session.renew(self.client, term.session, self.timeout)
  if alive == nil then return nil, problem, code end
  local found
  found, problem, code = look(self)
  if not alive then return lost(self, found and found.lock, "Consul has ended the session") end
  if not found then return nil, problem, code end
  local held = found.lock
  if not held or held.session ~= term.session then return lost(self, held, "the lock is not this session's any more") end
  if found.evicted and found.evicted.text == lock.wish(held) and not self.told_to_go then return eviction.tell(self) end
  return granted(self, self.delay)
end

-- Consul keeps the lock back where its session ends first. Flags that are not given would be taken away.
local function release(self)
  local path = ("%s?release=%s&flags=%s"):format(place.path(self.key), self.session, lock.FLAGS)
  for _ = 1, TRIES do
    if self.client:ask({ path = path, method = "PUT", is_urgent = true }, self.timeout) then return end
  end
end

function Election:abdicate(ending)
  local may_hold, id = self.term ~= nil or self.is_asking, self.session
  if ending and self.watch then self.watch:stop() end
  if ending then self.watch = nil end
  if not id then return end
  if may_hold then release(self) end
  self.term, self.is_asking, self.session = nil, false, nil
  session.destroy(self.client, id, self.timeout)
end

function Election:handle_info(message)
  if message ~= "look" then return end
  if self.term then return self:refresh() end
  return self:claim()
end

Election.list, Election.evict, Election.health, Election.rights = admin.list, admin.evict, admin.health, admin.rights

local function holder_now(self)
  local found = look(self)
  if not found then return nil end
  return found.lock and found.lock.session and holder_of(found.lock, {}) or false
end

return ordered.oracle(Election, { word = "consul", feeds = true, visit = admin.with_orders, holder = holder_now,
  owner = function(self) return self.owner, self.name end,
  leads = function(self) return self.term ~= nil end,
  looks = function(self) return self.delay end,
  store = function(self) return Orders.new(self.client, self.timeout) end })
