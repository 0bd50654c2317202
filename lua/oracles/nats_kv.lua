--- The elections of Choria: a key in a JetStream bucket whose TTL is the lease. A campaigner of `choria election` and a
-- candidate of ours can contend for one. URL: `nats://host:4222/BUCKET?ttl=10`. See docs/oracle-nats.md.
-- @module crown.oracles.nats_kv

local admin = require "crown.nats.admin"
local Bucket = require "crown.nats.bucket"
local candidate = require "crown.oracle.candidate"
local core = require "crown.core"
local figure = require "crown.check.figure"
local gathered = require "crown.oracle.gathered"
local lease = require "crown.oracle.lease"
local ordered = require "crown.oracle.ordered"
local Orders = require "crown.nats.orders"
local promise = require "crown.core.promise"
local settings = require "crown.nats.settings"
local Standing = require "crown.nats.standing"
local together = require "crown.link.together"

local Nats = {}
Nats.__index = Nats

local WINDOW, MOST = 0.05, 128 -- seconds that a refresh waits for company at most; leases in one lot of questions
local AGAIN, APART = 1, 5 -- seconds until a claim comes again that found no room, or no end of changes; among thousands longer
local PATROL = 10 -- seconds, or a TTL, from one look at the orders to the next, where no word of a change has come
local TRIES = 2 -- of a claim, where what is there changes meanwhile

Nats.timing = settings.timing

--- How many seconds it takes at most until somebody leads after a leader that has died: followers have to see its value stand.
function Nats.failover(opts)
  return lease.standing_time((Nats.timing(opts)))
end

function Nats.init(opts)
  local checked = settings.check(opts)
  local ttl, delay = Nats.timing(checked)
  local timeout = checked.timeout or math.max(0.25, math.min(5, ttl / 8))
  local bucket, problem = Bucket.at(checked.url, { bucket = checked.bucket, timeout = timeout, ttl = ttl,
    replicas = checked.replicas, storage = checked.storage, label = "nats_kv", check = settings.check_bucket,
    amnesia_wait = checked.amnesia_wait, trust_empty = checked.trust_empty })
  if not bucket then return nil, problem end
  local key = tostring(checked.lock or opts.crown_name)
  local token
  token, problem = candidate.enter(("nats %s %s"):format(checked.url, checked.bucket), key, opts)
  if not token then return nil, problem end
  local self = setmetatable({ bucket = bucket, name = opts.crown_name, key = key, ttl = ttl,
    delay = delay, given_refresh = checked.refresh, token = token, node = opts.node, send = opts.send,
    cool_down = checked.cool_down, acts_at = 0, claims = 0, standing = Standing.new() }, Nats)
  bucket:join(self.key, self)
  return self
end

local function is_ours(self, headers)
  return headers["crown-token"] == self.token
end

local function left(self)
  return self.standing:left(self.ttl)
end

-- In the connection's reader: notes when the key was last written, and wakes the candidate.
function Nats:heard(what, revision, token, written)
  if what == "put" then
    if token == self.token then return end
    self.standing:saw(revision, token, written)
    self.mark = nil
    if self.leading and revision and revision > self.revision then self.send "check" end
  elseif what == "gone" or what == "missed" then
    if what == "gone" then
      self.standing:ended()
      self.mark = { revision = revision, connection = self.bucket.link.connection, at = core.now() }
    end
    self.send(self.leading and "check" or "freed")
  elseif what == "evict" and self.leading and revision == self.epoch then
    self.send "evict"
  end
end

local function fit(self)
  local info, problem, code = self.bucket:fit()
  if not info then return nil, problem, code end
  self.ttl = info.ttl
  self.delay = self.given_refresh or info.ttl * settings.INTERVAL
  if self.delay > info.ttl * 0.9 then
    return nil, ("refresh=%s is too near the TTL of the bucket %s, which is %s s: give at most %s"):format(
      figure.about(self.delay), self.bucket.name, figure.about(info.ttl), figure.about(info.ttl * 0.9))
  end
  return true
end

local function headers_of(self)
  local rest = self.acts_at - core.now() -- for `crown-lua info`
  return ("Crown-Token: %s\r\nCrown-Epoch: %d\r\n%s"):format(self.token, self.epoch or 0,
    rest > 0 and ("Crown-Acts-In: %.3f\r\n"):format(rest) or "")
end

local function later()
  return false, { retry_in = AGAIN * (1 + APART * candidate.apart()) }
end

-- @tparam[opt] table last another one's value
local function denied(self, last)
  if last then self.standing:saw(last.revision, last.headers["crown-token"], last.written_at) end
  if not last and left(self) == 0 then return later() end
  return false, { node = last and last.data or nil, epoch = last and admin.shown_epoch(last) or nil,
    expires_in = self.standing:again(self.ttl) }
end

-- The mark that the key was deleted, which the watch told of. After a TTL it is gone itself, and its revision may be a value's in
-- a bucket that was made anew, which nobody leads in before.
local function take_mark(self)
  local mark = self.mark
  self.mark = nil
  return mark and core.now() - mark.at < self.ttl and mark
end

-- The revision of a mark counts only where one server keeps the bucket, and that one has not been started since: else it may be
-- that of a value by now, or on the replica that decides.
local function counts(self, mark)
  return self.bucket.known.replicas == 1 and mark.connection == self.bucket.link.connection
end

-- Begins a claim by a write.
local function begin(self, revision)
  return self.bucket:put(self.key, self.node, headers_of(self), revision, true)
end

-- Whether the bucket is what it was, or what is known of it is doubted.
local function doubt(self)
  local fine, problem, code = self.bucket.looks:ask(self.bucket.timeout)
  if not fine then return nil, problem, code end
  return self.bucket.trust:left() > 0
end

-- Writes over what is there, where nobody leads by it any more. @return as Bucket:put; with false what is there, where somebody
-- may lead by it
local function write_over(self, last)
  local over = last.gone or is_ours(self, last.headers) or self.standing:is_over(last.revision, last.written_at, self.ttl)
  if not over then return false, last end
  return self.bucket:put(self.key, self.node, headers_of(self), last.revision)
end

-- Creates the key, or writes over the mark that it was deleted, or over what is over. A mark that does not count still says that
-- there is something: then a look comes first. A value may end between two questions, as many do at once where a runtime that
-- was started again claims what it had: then it tries once more.
local function create(self)
  local mark, revision, problem, code = take_mark(self), false, nil, nil
  local looks_first = mark and not counts(self, mark)
  if mark and not looks_first then revision, problem, code = begin(self, mark.revision) end
  for i = 1, TRIES do
    if revision == false and (i > 1 or not looks_first) then revision, problem, code = begin(self, 0) end
    if revision ~= false then return revision, problem, code end
    local last
    last, problem, code = self.bucket:get(self.key, i == 1 and looks_first)
    if last == nil then return nil, problem, code end
    if last then revision, problem, code = write_over(self, last) end
    if problem then return revision, problem, code end
  end
  return revision
end

-- @return true where nobody can act on a value that was seen; else what the claim has to answer
local function await_end(self)
  if left(self) == 0 then return true end
  local last, problem, code = self.bucket:get(self.key)
  if last == nil then return nil, problem, code end
  if last and (last.gone or is_ours(self, last.headers)) then
    self.standing:ended()
    local rest = left(self) -- of whom it has followed
    if rest > 0 then return false, { expires_in = rest } end
    return true
  end
  local doubted = false
  if not last then doubted, problem, code = doubt(self) end -- it ended too early
  if doubted == nil then return nil, problem, code end
  if doubted then return self.bucket.trust:denial(self.bucket.doubt) end
  return denied(self, last)
end

-- The revision of one's own value, where it is sure whose that is: for a TTL nobody else leads, also in a bucket made anew.
local function own_revision(self)
  local sure = self.epoch and self.sent and core.now() - self.sent < self.ttl
  return sure and self.revision
end

-- Deletes the key where it is one's own, and of no claim that has begun since.
local function give_back(self, claims)
  local last = self.claims == claims and self.bucket:get(self.key)
  if self.claims ~= claims or not last or last.gone or not is_ours(self, last.headers) then return end
  self.bucket:delete(self.key, last.revision)
end

-- Gives back in a task each. @return a promise for each
local function give_back_all(states, claims)
  local all = {}
  for i, state in ipairs(states) do
    all[i] = promise()
    core.detach(function()
      give_back(state, claims[state])
      all[i]:resolve(true)
    end)
  end
  return all
end

-- Writes over their own values all at once. What has been claimed or released meanwhile has another revision.
-- @return for each the epoch of its term, or nothing where the oracle has to look; or nil and a message
local function rewrite_all(bucket, states)
  local words, epochs, sent = {}, {}, core.now()
  for i = 1, #states do
    local state, at = states[i], 4 * i
    epochs[i] = state.epoch
    words[at - 3], words[at - 2], words[at - 1], words[at] = state.key, state.node, headers_of(state), state.revision
  end
  local revisions, problem = bucket:put_all(words, #states)
  if not revisions then return nil, problem end
  for i = 1, #states do
    local state, revision = states[i], revisions[i]
    if not revision then
      epochs[i] = false
    elseif state.epoch == epochs[i] and state.revision == words[4 * i] then
      state.revision, state.sent = revision, sent
    end
  end
  if problem then return nil, problem end
  return epochs
end

-- Gives leases back all at once, and those one by one of which it is not sure afterwards that they are free. It may take longer
-- than the elections wait for it.
local function release_all(bucket, states)
  local words, sure, unsure, claims = {}, {}, {}, {}
  for i = 1, #states do
    local state = states[i]
    claims[state] = state.claims
    local own, at = own_revision(state), 4 * #sure
    local list = own and sure or unsure
    list[#list + 1] = state
    if own then words[at + 1], words[at + 2], words[at + 3], words[at + 4] = state.key, "", Bucket.DELETED, own end
    state.leading, state.epoch = false, nil
  end
  local revisions = bucket:put_all(words, #sure) or {}
  for i = 1, #sure do
    if not revisions[i] then unsure[#unsure + 1] = sure[i] end
  end
  for _, done in ipairs(give_back_all(unsure, claims)) do done:wait(bucket.timeout) end
  return {}
end

-- What refreshes and releases without a task each: those that are alike share one.
local function refresher_of(self)
  local bucket, ttl, delay = self.bucket, self.ttl, self.delay
  local timeout = bucket.timeout
  local key = ("%.17g %.17g %.17g"):format(ttl, delay, timeout)
  bucket.refreshers[key] = bucket.refreshers[key] or gathered { ttl = ttl, delay = delay, timeout = timeout,
    window = math.min(WINDOW, ttl / 100), most = MOST,
    refresh = function(states) return rewrite_all(bucket, states) end,
    release = function(states) return release_all(bucket, states) end,
    late = function() return bucket.link:late(timeout) end }
  return bucket.refreshers[key]
end

local function grant(self, delay, cool_down)
  return true, delay, { ttl = self.ttl, epoch = self.epoch, refresher = refresher_of(self), cool_down = cool_down }
end

-- Writes over one's own value.
local function rewrite(self)
  local sent = core.now()
  local revision, problem, code = self.bucket:put(self.key, self.node, headers_of(self), self.revision)
  if revision then self.revision, self.sent = revision, sent end
  return revision, problem, code
end

-- Looks whether the bucket is doubted, and writes over one's own value: at the same time where one server keeps it, since only a
-- cluster may let two that come at once write over one revision.
-- @return what doubt returned, an array, and what rewrite did; an empty one where nothing was written
local function look_and_rewrite(self)
  if self.bucket.known.replicas == 1 then
    return together(function() return doubt(self) end, function() return rewrite(self) end)
  end
  local looked = { doubt(self) }
  return looked, looked[1] == false and left(self) == 0 and { rewrite(self) } or {}
end

-- A cluster may let two that come at once write over one revision (seen with NATS 2.9). So a win is one only when it has been
-- written over at its own revision. This value also bears the epoch, which the first could not know.
local function confirm(self, first)
  local cool_down = settings.cool_down(self.cool_down, self.bucket.name, self.ttl)
  self.revision, self.epoch, self.acts_at = first, first, core.now() + cool_down
  local looked, written = look_and_rewrite(self)
  local doubted, won = looked[1], written[1]
  if doubted == false and left(self) == 0 and won then
    self.leading = true
    return grant(self, lease.first_delay(self.delay), cool_down)
  end
  self.epoch = nil
  if doubted == nil then
    self.unconfirmed = true
    return nil, looked[2], looked[3]
  end
  if doubted or left(self) > 0 then -- nobody was asked, or somebody's value ended too early
    if won ~= false then self.bucket:delete(self.key, self.revision) end
    if doubted then return self.bucket.trust:denial(self.bucket.doubt) end
    return denied(self)
  end
  if won == nil then return nil, written[2], written[3] end
  return false
end

-- After a win that could not be confirmed: the next one is sought only where the server answers what it takes to confirm it. Else
-- candidates would win and give back in turn, each woken by the other.
local function look_before(self)
  if not self.unconfirmed then return true end
  local doubted, problem, code = doubt(self)
  if doubted == nil then return nil, problem, code end
  self.unconfirmed = nil
  return true
end

function Nats:claim()
  self.claims = self.claims + 1
  local fine, problem, code = fit(self)
  if not fine then return nil, problem, code end
  if self.bucket.trust:left() > 0 then return self.bucket.trust:denial(self.bucket.doubt) end
  fine, problem, code = await_end(self)
  if not fine then return fine, problem, code end
  fine, problem, code = look_before(self)
  if not fine then return nil, problem, code end
  self.epoch = nil
  local revision, last, why = create(self)
  if why == "busy" then return later() end -- nothing was written
  if revision == nil then return nil, last, why end
  if revision == false then return denied(self, last) end
  return confirm(self, revision)
end

-- Nobody leads by this key any more, or somebody else does.
local function lost(self, last)
  self.leading, self.epoch = false, nil
  if last and not last.gone then return false, { node = last.data, error = "the key was written by somebody else" } end
  return false, { error = "the key is gone from the bucket" }
end

function Nats:refresh()
  if not self.epoch then return false end
  local revision, problem, code = rewrite(self)
  if revision == nil then return nil, problem, code end
  if revision then return grant(self, self.delay) end
  local last
  last, problem, code = self.bucket:get(self.key)
  if last == nil then return nil, problem, code end
  if last and not last.gone and is_ours(self, last.headers)
    and admin.epoch_of(last) == self.epoch then
    self.revision = last.revision -- an update of ours whose answer was lost
    return nil, "an earlier update was answered only now", "store"
  end
  return lost(self, last)
end

function Nats:abdicate()
  local own = own_revision(self)
  self.leading, self.epoch = false, nil
  if not own or not self.bucket:delete(self.key, own) then give_back(self, self.claims) end
end

function Nats:handle_info(message)
  if message == "evict" and self.leading then return false, { evicted = true } end
  if self.leading then
    if message == "check" then return self:look() end
  elseif message ~= "evict" then
    return self:claim()
  end
end

-- Whether the key is still ours, without writing it.
function Nats:look()
  local last, problem, code = self.bucket:get(self.key)
  if last == nil then return nil, problem, code end
  if last and not last.gone and is_ours(self, last.headers) then return end
  return lost(self, last)
end

--- What `check` warns of.
-- @tparam table self a candidate's state
-- @treturn table an array of texts
function Nats.warnings(self)
  if self.bucket.name ~= settings.CHORIAS then return {} end
  local replicas = self.bucket.options.replicas
  return { ("where the bucket %s has to be made, it gets a TTL of %s s and %s; Choria's broker makes it as its own settings say")
    :format(settings.CHORIAS, figure.exact(self.ttl), replicas and ("%d replica%s"):format(replicas, replicas == 1 and "" or "s")
      or "as many replicas as the cluster then has servers, 5 at most") }
end

--- What asks the bucket without a candidate: see crown.nats.admin.
Nats.list, Nats.health, Nats.rights, Nats.evict = admin.list, admin.health, admin.rights, admin.evict

local function holder_of(self)
  local last = self.bucket:get(self.key)
  if last == nil then return nil end
  return last and not last.gone and { node = last.data, epoch = admin.shown_epoch(last) }
end

return ordered.oracle(Nats, { word = "nats", visit = admin.with_orders, holder = holder_of,
  owner = function(self) return self.bucket, self.key end,
  store = function(self) return Orders.new(self.bucket) end,
  leads = function(self) return self.leading == true end,
  patrol = function(self) return math.max(PATROL, self.ttl) end })
