--- The elections of Choria: a key in a JetStream bucket whose TTL is the lease. A campaigner of `choria election` and a
-- candidate of ours can contend for one. URL: `nats://host:4222/BUCKET?ttl=10`. See docs/oracle-nats.md.
-- @module crown.oracles.nats_kv

local Bucket = require "crown.nats.bucket"
local candidate = require "crown.oracle.candidate"
local core = require "crown.core"
local eviction = require "crown.oracle.eviction"
local health = require "crown.nats.health"
local lease = require "crown.oracle.lease"
local rights = require "crown.nats.rights"
local Standing = require "crown.nats.standing"
local store_options = require "crown.oracle.options"
local usage = require "crown.check.usage"

local INTERVAL = 0.75 -- of the bucket's TTL: Choria's campaigns come so often, whatever ours do

local Nats = {}
Nats.__index = Nats

local CHORIAS = "CHORIA_LEADER_ELECTION"
local CHORIAS_TTL, DEFAULT_TTL = 60, 10
local LEAST_TTL, MOST_TTL = 1, 3600
local SOON = 0.1 -- seconds until a value is asked for again that should be over by now
local BUSY, APART = 1, 5 -- seconds until a claim that found no room comes again; among thousands longer

local RULES = {
  url = { type = "string", default = "nats://127.0.0.1:4222" },
  bucket = { type = "string", match = "^[%w_-]+$", match_words = "letters, digits, '_' and '-'" },
  ttl = { type = "number", least = LEAST_TTL, most = MOST_TTL },
  refresh = { type = "number", above = 0, most = MOST_TTL },
  timeout = { type = "number", above = 0, most = 3600 },
  lock = { type = { "string", "number" } },
  cool_down = { type = "number", least = 0, most = 3600 },
  replicas = { type = "number", integer = true, least = 1, most = 5 },
  storage = { type = "string", values = { "file", "memory" }, default = "file" },
  amnesia_wait = store_options.AMNESIA_WAIT,
  trust_empty = store_options.trust_empty(false),
}
-- What the client reads from the URL.
local CLIENTS = { ca = true, cert = true, key = true, server_name = true, insecure = true, nkey = true, credentials = true }

local function bucket_of(opts)
  return opts.bucket or opts.url and opts.url:match "^%l+://[^/]*/([^?]+)" or CHORIAS
end

--- TTL and campaign interval: three quarters of the TTL, as Choria has it.
function Nats.timing(opts)
  local ttl = tonumber(opts.ttl) or (bucket_of(opts) == CHORIAS and CHORIAS_TTL or DEFAULT_TTL)
  return ttl, tonumber(opts.refresh) or ttl * INTERVAL
end

local function check(opts)
  local checked = store_options.check("nats_kv", opts, RULES, CLIENTS)
  local in_url = bucket_of { url = checked.url }
  if checked.bucket and in_url ~= CHORIAS and in_url ~= checked.bucket then
    usage.error("oracle 'nats_kv': the bucket %s of the URL has no effect beside bucket = %s: give one of them", in_url,
      checked.bucket)
  end
  checked.bucket = bucket_of(checked)
  local rule = RULES.bucket
  if not checked.bucket:match(rule.match) then
    usage.error("oracle 'nats_kv': the URL's bucket '%s' is not possible: %s", checked.bucket, rule.match_words)
  end
  if checked.bucket ~= CHORIAS then checked.replicas = checked.replicas or 1 end
  return checked
end

-- What a bucket must be for elections.
local function check_bucket(name, info)
  if info.history ~= 1 then return nil, ("the bucket %s keeps history: elections need 1 value a key"):format(name) end
  if info.ttl < LEAST_TTL or info.ttl > MOST_TTL then
    return nil, ("the TTL of the bucket %s is %g s: elections need %d s to %d s"):format(name, info.ttl, LEAST_TTL, MOST_TTL)
  end
  return true
end

function Nats.init(opts)
  local checked = check(opts)
  local ttl, delay = Nats.timing(checked)
  local timeout = checked.timeout or math.max(0.25, math.min(5, ttl / 8))
  local bucket, problem = Bucket.at(checked.url, { bucket = checked.bucket, timeout = timeout, ttl = ttl,
    replicas = checked.replicas, storage = checked.storage, label = "nats_kv", check = check_bucket,
    amnesia_wait = checked.amnesia_wait, trust_empty = checked.trust_empty })
  if not bucket then return nil, problem end
  local key = tostring(checked.lock or opts.crown_name)
  local token
  token, problem = candidate.enter(("nats %s %s"):format(checked.url, checked.bucket), key, opts)
  if not token then return nil, problem end
  local cool_down = checked.cool_down or (checked.bucket ~= CHORIAS and 0 or nil)
  local self = setmetatable({ bucket = bucket, name = opts.crown_name, key = key, ttl = ttl,
    delay = delay, given_refresh = checked.refresh, token = token, node = opts.node, send = opts.send,
    cool_down = cool_down, standing = Standing.new() }, Nats)
  bucket:join(self.key, function(...) self:heard(...) end)
  return self
end

local function is_ours(self, headers)
  return headers["crown-token"] == self.token
end

local function left(self)
  return self.standing:left(self.ttl)
end

-- In the connection's reader: notes when the key was last written, and wakes the candidate.
function Nats:heard(what, revision, headers)
  if what == "put" then
    if is_ours(self, headers) then return end
    self.standing:saw(revision)
    if self.leading and revision and revision > self.revision then self.send "check" end
  elseif what == "gone" or what == "missed" then
    if what == "gone" then self.standing:ended() end
    self.send(self.leading and "check" or "freed")
  elseif what == "evict" and (self.leading or self.cooling) and revision == self.epoch then
    self.send "evict"
  end
end

local function fit(self)
  local info, problem, code = self.bucket:fit()
  if not info then return nil, problem, code end
  self.ttl = info.ttl
  self.delay = self.given_refresh or info.ttl * INTERVAL
  if self.delay > info.ttl * 0.9 then
    return nil, ("a campaign every %g s is too near the TTL of %g s"):format(self.delay, info.ttl)
  end
  return true
end

-- The epoch is the revision of the win, which the value can bear only from its next write on.
local function epoch_of(value)
  local epoch = tonumber(value.headers["crown-epoch"])
  return epoch and epoch > 0 and epoch or value.revision
end

local function headers_of(self)
  return { ["Crown-Token"] = self.token, ["Crown-Epoch"] = ("%d"):format(self.epoch or 0) }
end

local function denied(self, last)
  if last and not last.gone and not is_ours(self, last.headers) then
    self.standing:saw(last.revision)
  elseif not self.standing.at then
    self.standing:saw(nil)
  end
  return false, { node = last and last.data or nil, epoch = last and last.headers["crown-token"] and epoch_of(last) or nil,
    expires_in = math.max(SOON, left(self)) }
end

-- Creates the key, or writes over the mark that it was deleted, or over what is over.
local function create(self)
  local revision, problem, code = self.bucket:put(self.key, self.node, headers_of(self), 0)
  if revision ~= false then return revision, problem, code end
  local last
  last, problem, code = self.bucket:get(self.key)
  if last == nil then return nil, problem, code end
  if last == false then return false end
  if last.gone or is_ours(self, last.headers) or self.standing:is_over(last.revision, self.ttl) then
    revision, problem, code = self.bucket:put(self.key, self.node, headers_of(self), last.revision)
    if revision ~= false then return revision, problem, code end
  end
  return false, last
end

-- Whether the bucket is what it was, or what is known of it is doubted.
local function doubt(self)
  local fine, problem, code = self.bucket.looks:ask(self.bucket.timeout)
  if not fine then return nil, problem, code end
  return self.bucket.trust:left() > 0
end

-- @return true where nobody can act on a value that was seen; else what the claim has to answer
local function await_end(self)
  if left(self) == 0 then return true end
  local last, problem, code = self.bucket:get(self.key)
  if last == nil then return nil, problem, code end
  if last and (last.gone or is_ours(self, last.headers)) then
    self.standing:ended()
    return true
  end
  local doubted = false
  if not last then doubted, problem, code = doubt(self) end -- it ended too early
  if doubted == nil then return nil, problem, code end
  if doubted then return self.bucket.trust:denial() end
  return denied(self, last)
end

local function grant(self, delay)
  return true, delay, { ttl = self.ttl, epoch = self.epoch }
end

function Nats:claim()
  local fine, problem, code = fit(self)
  if not fine then return nil, problem, code end
  if self.cooling then return self:cool() end
  if self.bucket.trust:left() > 0 then return self.bucket.trust:denial() end
  fine, problem, code = await_end(self)
  if not fine then return fine, problem, code end
  self.epoch = nil
  local revision, last, why = create(self)
  if why == "busy" then return false, { retry_in = BUSY * (1 + APART * candidate.apart()) } end -- nothing was written
  if revision == nil then return nil, last, why end
  if revision == false then return denied(self, last) end
  local doubted, trouble, word = doubt(self)
  if doubted == nil then return nil, trouble, word end
  if doubted or left(self) > 0 then -- nobody was asked, or somebody's value ended too early
    self.bucket:delete(self.key, revision)
    if doubted then return self.bucket.trust:denial() end
    return denied(self)
  end
  self.revision, self.epoch = revision, revision
  local cool_down = self.cool_down or self.ttl * INTERVAL
  if cool_down > 0 then
    self.cooling = core.now() + cool_down
    return self:cool()
  end
  self.leading = true
  return self:announce()
end

-- A cluster may let two that come at once write over one revision (seen with NATS 2.9). So a win is one only when it has been
-- written over at its own revision. This value also bears the epoch, which the first could not know.
function Nats:announce()
  local revision, problem, code = self.bucket:put(self.key, self.node, headers_of(self), self.revision)
  if revision == nil then return nil, problem, code end
  if revision == false then
    self.leading, self.epoch = false, nil
    return false
  end
  self.revision = revision
  return grant(self, lease.first_delay(self.delay))
end

-- A campaigner of Choria's that was leader may act for one more interval of its own: the key is kept, and nobody leads yet.
function Nats:cool()
  local revision, problem, code = self.bucket:put(self.key, self.node, headers_of(self), self.revision)
  if revision == nil then return nil, problem, code end
  if revision == false then
    self.cooling = nil
    return denied(self)
  end
  self.revision = revision
  local rest = self.cooling - core.now()
  if rest > 0 then return false, { node = self.node, retry_in = math.min(rest, self.delay) } end
  self.cooling, self.leading = nil, true
  return grant(self, lease.first_delay(self.delay))
end

-- Nobody leads by this key any more, or somebody else does.
local function lost(self, last)
  self.leading, self.epoch = false, nil
  if last and not last.gone then return false, { node = last.data, error = "the key was written by somebody else" } end
  return false, { error = "the key is gone from the bucket" }
end

function Nats:refresh()
  if not self.epoch then return false end
  local revision, problem, code = self.bucket:put(self.key, self.node, headers_of(self), self.revision)
  if revision == nil then return nil, problem, code end
  if revision then
    self.revision = revision
    return grant(self, self.delay)
  end
  local last
  last, problem, code = self.bucket:get(self.key)
  if last == nil then return nil, problem, code end
  if last and not last.gone and is_ours(self, last.headers)
    and epoch_of(last) == self.epoch then
    self.revision = last.revision -- an update of ours whose answer was lost
    return nil, "an earlier update was answered only now", "store"
  end
  return lost(self, last)
end

function Nats:abdicate()
  self.leading, self.epoch, self.cooling = false, nil, nil
  local last = self.bucket:get(self.key)
  if last and not last.gone and is_ours(self, last.headers) then self.bucket:delete(self.key, last.revision) end
end

-- Who is evicted before it leads lets the others go first.
function Nats:give_up()
  self:abdicate()
  return false, { retry_in = math.min(self.delay, 1) }
end

function Nats:handle_info(message)
  if message == "evict" and self.leading then return false, { evicted = true } end
  if message == "evict" and self.cooling then return self:give_up() end
  if self.leading then
    if message == "check" then return self:look() end
  elseif message ~= "evict" and not self.cooling then
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

local function with_bucket(opts, fn)
  local checked = check(opts)
  local bucket, problem = Bucket.at(checked.url, { bucket = checked.bucket, timeout = checked.timeout or 5 })
  if not bucket then return nil, problem, "usage" end
  local result, code
  result, problem, code = fn(bucket, checked)
  bucket:close()
  return result, problem, code
end

--- What `check` warns of.
-- @tparam table self a candidate's state
-- @treturn table an array of texts
function Nats.warnings(self)
  if self.bucket.name ~= CHORIAS then return {} end
  local replicas = self.bucket.options.replicas
  return { ("where the bucket %s has to be made, it gets a TTL of %g s and %s; Choria's broker makes it as its own settings say")
    :format(CHORIAS, self.ttl, replicas and ("%d replica%s"):format(replicas, replicas == 1 and "" or "s")
      or "as many replicas as the cluster then has servers, 5 at most") }
end

--- Elections in the bucket.
-- @tparam table opts `url`, `bucket`
-- @treturn table an array of `{ name, node, epoch, expires_in, revision, written }`, or nil and a message
function Nats.list(opts)
  return with_bucket(opts, function(bucket)
    local info, problem, code = bucket:info()
    if code == Bucket.MISSING then return {} end
    if not info then return nil, problem end
    local values
    values, problem = bucket:values()
    if not values then return nil, problem end
    local found = {}
    for name, last in pairs(values) do
      if not last.gone then
        local age = info.now and last.written_at and info.now - last.written_at
        found[#found + 1] = { name = name, node = last.data, epoch = epoch_of(last),
          expires_in = age and math.max(0, info.ttl - math.max(0, age)), revision = last.revision, written = last.written }
      end
    end
    table.sort(found, function(a, b) return a.name < b.name end)
    return found
  end)
end

--- What the bucket is, for `info`.
-- @tparam table opts `url`, `bucket`
-- @treturn table `{ ttl =, facts =, warnings = }`, or nil and a message
function Nats.health(opts)
  return with_bucket(opts, function(bucket)
    local info, problem, code = bucket:info()
    if code == Bucket.MISSING then
      return { warnings = {}, facts = { { "Bucket", bucket.name .. ", which the first candidate makes" } } }
    end
    if not info then return nil, problem end
    local _, unfit = check_bucket(bucket.name, info)
    return health.of(bucket.name, info, unfit)
  end)
end

--- What a candidate may not do, for `check --store`, and why no election can be held in the bucket.
-- @tparam table opts `url`, `bucket`, `lock`, `crown_name`
-- @treturn table an array of texts, or nil and a message
function Nats.rights(opts)
  return with_bucket(opts, function(bucket, checked)
    return rights.lacks(bucket, tostring(checked.lock or opts.crown_name), check_bucket)
  end)
end

--- Asks the leader to step down, and waits until it has. A leader of Choria's hears no such wish: delete its key instead.
-- @tparam table opts `url`, `bucket`; `wait` seconds (10)
-- @string name of the election
-- @treturn table `{ node =, epoch = }` of who was evicted, or nil and a message
function Nats.evict(opts, name)
  return with_bucket(opts, function(bucket)
    local last, problem = bucket:get(name)
    if last == nil then return nil, problem end
    if not last or last.gone then return eviction.nobody(name) end
    local token, epoch = last.headers["crown-token"], epoch_of(last)
    if not token then
      return nil, ("'%s' is led by %s of Choria's: choria election evict %s"):format(name, last.data, name)
    end
    bucket:ask_to_go(name, epoch)
    local gone
    gone, problem = eviction.await(name, opts.wait, function()
      local now = bucket:get(name)
      return now == false or now ~= nil and (now.gone or epoch_of(now) ~= epoch)
    end)
    if not gone then return nil, problem end
    return { node = last.data, epoch = epoch }
  end)
end

return Nats
