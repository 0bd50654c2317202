--- An election as etcd's own recipe has it: each candidate puts a key under the election's name, bound to a lease; the one that
-- was created first leads. `etcdctl elect NAME` sees and joins the same election.
-- URL: `etcd://host:2379,host:2379/PREFIX?ttl=10`. See docs/oracle-etcd.md.
-- @module crown.oracles.etcd

local admin = require "crown.etcd.admin"
local base64 = require "crown.text.base64"
local candidate = require "crown.oracle.candidate"
local Client = require "crown.etcd.client"
local core = require "crown.core"
local Doubt = require "crown.oracle.doubt"
local eviction = require "crown.oracle.eviction"
local explain = require "crown.link.explain"
local keys = require "crown.etcd.keys"
local lease = require "crown.oracle.lease"
local Memory = require "crown.etcd.memory"
local ordered = require "crown.oracle.ordered"
local Orders = require "crown.etcd.orders"
local queues = require "crown.etcd.queues"
local Session = require "crown.etcd.session"
local store_options = require "crown.oracle.options"
local Trust = require "crown.oracle.trust"

local Etcd = { leaves = true } -- also a follower has a place in the queue
Etcd.__index = Etcd

local DEFAULT_TTL = 10

local RULES = {
  url = { type = "string", default = "etcd://127.0.0.1:2379" },
  ttl = { type = "number", least = 1, most = 86400 },
  refresh = { type = "number", above = 0, most = 86400 },
  timeout = { type = "number", above = 0, most = 3600 },
  lock = store_options.lock(),
  amnesia_wait = store_options.AMNESIA_WAIT,
  trust_empty = store_options.trust_empty(false),
  ca = { type = "string" },
  cert = { type = "string" },
  key = { type = "string" },
}

--- TTL and refresh delay that these options make. etcd counts leases in whole seconds.
function Etcd.timing(opts)
  local ttl = math.ceil(tonumber(opts.ttl) or DEFAULT_TTL)
  return ttl, tonumber(opts.refresh) or ttl / 3
end

local function check(opts)
  local checked = store_options.check("etcd", opts, RULES)
  local parsed, problem = Client.parse(checked.url)
  if not parsed then return nil, problem end
  parsed.ca, parsed.cert, parsed.key = checked.ca, checked.cert, checked.key
  checked.parsed = parsed
  return checked
end

local function base_of(checked, name)
  return keys.base(checked.parsed.prefix, name)
end

function Etcd.init(opts)
  local checked, problem = check(opts)
  if not checked then return nil, problem end
  local ttl, delay = Etcd.timing(checked)
  local timeout = store_options.timeout(checked, ttl, delay)
  local name = tostring(checked.lock or opts.crown_name)
  local base = base_of(checked, name)
  local token
  token, problem = candidate.enter("etcd " .. checked.url, base, opts)
  if not token then return nil, problem end
  local key = ("%s\n%g\n%g\n%s\n%g\n%s"):format(checked.url, ttl, delay, opts.token, checked.amnesia_wait,
    tostring(checked.trust_empty))
  local session = Session.of(key, function()
    local trust = Trust.of("etcd " .. checked.url)
    trust:lasts(ttl)
    return { client = Client.new(checked.parsed, timeout), ttl = ttl, delay = delay, timeout = timeout, trust = trust,
      prefix = checked.parsed.prefix, floor = checked.amnesia_wait, trust_empty = checked.trust_empty,
      doubt = Doubt.of("etcd", checked.url, checked) }
  end)
  session.ordered[Orders.key(base)] = name
  return setmetatable({ session = session, node = opts.node, name = name, base = base, send = opts.send }, Etcd)
end

local function first_in(range)
  range.sort_target, range.sort_order, range.limit = "CREATE", "ASCEND", "1"
  return range
end

local function first(self)
  return { request_range = first_in(keys.range(self.base .. "/")) }
end

-- The key in an answer to a range, if there is one.
local function key_of(answer)
  local found = answer and answer.response_range
  return found and found.kvs and found.kvs[1]
end

local function orders_of(self)
  return { request_range = { key = Orders.key(self.base) } }
end

local function held_by(kv)
  return kv and { node = base64.decode(kv.value or ""), epoch = tonumber(kv.create_revision) } or nil
end

-- Leaves the queue; a claim that comes late is then deleted as well.
local function leave(self)
  local place = self.place
  self.place = nil
  if place then self.session:leave { place } end
end

-- Our key, by the answer to its put: it bears the revision of that, unless an earlier put, whose answer was lost, has made it.
local function made(place, answer, header)
  local before = answer.response_put and answer.response_put.prev_kv
  return { key = place.encoded, create_revision = before and before.create_revision or header.revision }
end

-- Puts our key where it is not there yet, and looks who is first and what is ordered, in one step.
-- @tparam function sends called right before that
-- @return our key and the first; or nil, message, code
local function look(self, sends)
  local place, sent = self.place, core.now()
  if place.since then
    local own = { request_range = { key = place.encoded, keys_only = true } }
    local answers, header, code = self.session.batch:ask({ own, first(self), orders_of(self) }, sends)
    if not answers then return nil, header, code end
    self.orders:saw(Orders.answer(answers[3].response_range), sent)
    return { key_of(answers[1]), key_of(answers[2]) }, header
  end
  local put = { request_put = { key = place.encoded, value = base64.encode(self.node), lease = place.lease, prev_kv = true } }
  local function wanted() -- else it is not even put
    place.written = not place.left and not place.gone
    return place.written and sends()
  end
  local answers, header, code = self.session.batch:ask({ put, first(self), orders_of(self) }, wanted)
  if not answers then return nil, header, code end
  place.since = core.now()
  self.orders:saw(Orders.answer(answers[3].response_range), sent)
  return { made(place, answers[1], header), key_of(answers[2]) }, header
end

local function before(revision)
  return ("%.0f"):format(tonumber(revision) - 1)
end

-- Only the candidate right behind a key is woken when it goes.
local function watch_predecessor(self, created)
  local place, range = self.place, keys.range(self.base .. "/")
  if place.ahead then return true end
  local answers, header, code = self.session.batch:ask { { request_range = { key = range.key, range_end = range.range_end,
    sort_target = "CREATE", sort_order = "DESCEND", limit = "1", max_create_revision = before(created), keys_only = true } } }
  if not answers then return nil, header, code end
  local ahead = key_of(answers[1])
  if not ahead or not self.session:wait_for(place, ahead, tonumber(header.revision)) then self.send "look" end
  return true
end

-- Why nobody can lead behind the first key, where it is no candidate's that a lease ends.
local function obstacle(client, base, kv)
  local words = keys.obstacle(base, kv)
  return words and explain.named(words, "etcd", client:place())
end

local function follow(self, own, leader)
  local blocked = obstacle(self.session.client, self.base, leader)
  if blocked then return nil, blocked, "store" end
  if self.session:revokes(leader) then
    return nil, "a key of an earlier lease of this candidate was first in the queue", "store"
  end
  local fine, problem, code = watch_predecessor(self, own.create_revision)
  if not fine then return nil, problem, code end
  local holder = held_by(leader)
  holder.retry_in = self.session.delay
  return false, holder
end

local function take_place(self)
  local place = self.place
  if place and not place.gone and not place.leading then return true end
  leave(self)
  local problem, code
  self.place, problem, code = self.session:queue(self.base, self.send)
  return self.place ~= nil, problem, code
end

-- That our lease is kept, and what etcd remembers: asked for while we look whether we are first, where nobody is known to be
-- ahead. It counts where no other member has begun to lead etcd between both.
-- @return true; or nil, message, code
local function is_kept(session, asked, term)
  if asked then
    local fine, problem, code = asked:wait(math.huge)
    if not fine or session.term == term then return fine, problem, code end
  end
  return session.claims:ask()
end

-- @number since when the lease counts
local function lead(self, epoch, since)
  local session, place = self.session, self.place
  place.leading, place.sent, self.epoch = true, since, epoch
  self.grant = lease.grant(session.ttl, epoch, session:refresher())
  return true, lease.first_delay(session.delay), self.grant
end

function Etcd:claim()
  local session = self.session
  if session.trust:left() > 0 then return session.trust:denial(session.doubt) end
  local sent = core.now()
  local fine, problem, code = take_place(self)
  if not fine then
    if session.trust:left() > 0 then return session.trust:denial(session.doubt) end
    return nil, problem, code
  end
  local place, known, kept = self.place, session.trust.at, nil
  local found, header, why = look(self, function()
    if place.left then return false end -- the election has ended while this waited for its turn
    if not place.ahead then kept = session.claims:begin() end
    return true
  end)
  if not found then
    if why == "store" then session.claims:ask() end -- perhaps the lease has ended
    return nil, header, why
  end
  if not session:believes(header, known) then
    leave(self)
    return session.trust:denial(session.doubt)
  end
  local own, leader = found[1], found[2]
  if not own or not leader then
    leave(self)
    return nil, "our key has gone while we were in the queue", "store"
  end
  if leader.key ~= own.key then return follow(self, own, leader) end
  fine, problem, code = is_kept(session, kept, header.raft_term)
  if not fine then return nil, problem, code end
  if session.trust:left() > 0 then
    leave(self)
    return session.trust:denial(session.doubt)
  end
  if place.gone then
    return nil, "our lease has run out while we were in the queue", "store"
  end
  return lead(self, tonumber(own.create_revision), sent)
end

-- The key is left to be deleted by what comes next: its term may not be over yet.
local function lost(self)
  if self.session.trust:left() > 0 then return self.session.trust:denial(self.session.doubt) end
  local answers = self.session.batch:ask { first(self) }
  local holder = answers and held_by(key_of(answers[1])) or {} -- nobody else
  holder.error = "our key is gone from the store"
  return false, holder
end

-- Said once for each wish: while the term ends, its lease is refreshed like any.
local function is_evicted(self)
  local place = self.place
  if not place.asked then return false end
  local answers = self.session.batch:ask { { request_range = { key = base64.encode(self.base .. ".evict") } } }
  local kv = answers and key_of(answers[1])
  if answers then place.asked = false end
  return kv ~= nil and kv.value == place.encoded
end

function Etcd:refresh()
  local place = self.place
  if not place or not place.leading then return false end
  local sent = core.now()
  if not place.gone then
    local fine, problem, code = self.session.refreshes:ask()
    if not fine then return nil, problem, code end
  end
  if place.gone then return lost(self) end
  place.sent = sent
  if is_evicted(self) then return false, { evicted = true } end
  return true, self.session.delay, self.grant
end

function Etcd:abdicate()
  leave(self)
end

function Etcd:handle_info(message)
  local place = self.place
  if message ~= "look" then return end
  if not place or not place.leading then return self:claim() end
  if place.gone then return lost(self) end
  if is_evicted(self) then return false, { evicted = true } end
end

local function with_client(opts, fn)
  local checked, problem = check(opts)
  if not checked then return nil, problem, "usage" end
  return fn(Client.new(checked.parsed, checked.timeout or 5), checked)
end

--- Elections under the prefix.
-- @tparam table opts `url`
-- @treturn table an array of `{ name, node, epoch, expires_in, ttl, candidates }`, or nil and a message
function Etcd.list(opts)
  return with_client(opts, function(client, checked)
    return queues.elections(client, checked.parsed.prefix)
  end)
end

-- @return the first key; false when there is none; or nil, message, code
local function leader_of(client, base)
  local answer, problem, code = client:ask("/v3/kv/range", first_in(keys.range(base .. "/")))
  if not answer then return nil, problem, code end
  return answer.kvs and answer.kvs[1] or false
end

--- What etcd says of itself, for `info`.
-- @tparam table opts `url`
-- @treturn table `{ facts =, warnings = }`, or nil and a message
function Etcd.health(opts)
  return with_client(opts, function(client, checked)
    local health, problem, code = admin.health(client)
    if not health then return nil, problem, code end
    local trouble, left = Memory.trouble(client, checked.parsed.prefix)
    table.insert(health.warnings, trouble)
    Doubt.tell(health.facts, left)
    for _, warning in ipairs(queues.warnings(client, checked.parsed.prefix)) do table.insert(health.warnings, warning) end
    return health
  end)
end

--- What a candidate may not do, and the key behind which nobody can lead, for `check --store`.
-- @tparam table opts `url`, `lock`, `crown_name`
-- @treturn table an array of texts, with `warning`; or nil and a message
function Etcd.rights(opts)
  return with_client(opts, function(client, checked)
    local base = base_of(checked, tostring(checked.lock or opts.crown_name))
    local lacks, problem, code = admin.lacks(client, checked.parsed, base)
    if not lacks then return nil, problem, code end
    if #lacks > 0 then return lacks end
    local first_key
    first_key, problem, code = leader_of(client, base)
    if first_key == nil then return nil, problem, code end
    lacks[1] = first_key and obstacle(client, base, first_key) or nil
    if #lacks == 0 then lacks.warning = admin.least(client, checked.ttl or DEFAULT_TTL) end
    return lacks
  end)
end

--- Asks the leader to step down, and waits until it has. A leader by `etcdctl elect` hears no such wish.
-- @tparam table opts `url`; `wait` seconds (10)
-- @string name of the election
-- @treturn table `{ node =, epoch = }` of who was evicted, or nil and a message
function Etcd.evict(opts, name)
  return with_client(opts, function(client, checked)
    local base = base_of(checked, name)
    local leader, problem, code = leader_of(client, base)
    if leader == nil then return nil, problem, code end
    if not leader then return eviction.nobody(name) end
    local blocked = obstacle(client, base, leader)
    if blocked then return nil, blocked, "store" end
    local mark = base64.encode(base .. ".evict")
    local put
    put, problem = client:ask("/v3/kv/put", { key = mark, value = leader.key })
    if not put then return nil, problem end
    local gone
    gone, problem, code = eviction.await(name, opts.wait, function()
      local now = leader_of(client, base)
      return now ~= nil and (not now or now.key ~= leader.key)
    end)
    if not gone then return nil, problem, code end
    client:ask("/v3/kv/deleterange", { key = mark })
    return held_by(leader)
  end)
end

local function holder_of(self)
  local answers = self.session.batch:ask { first(self) }
  if answers then return held_by(key_of(answers[1])) or false end
end

return ordered.oracle(Etcd, { word = "etcd", feeds = true, lists_candidates = true,
  owner = function(self) return self.session, self.name end,
  store = function(self) return Orders.new(self.session.client, self.session.prefix) end,
  leads = function(self) return self.place ~= nil and self.place.leading == true end,
  holder = holder_of,
  visit = function(opts, fn)
    return with_client(opts, function(client, checked) return fn(Orders.new(client, checked.parsed.prefix)) end)
  end })
