--- What `crown-lua info`, `check` and `evict` ask of a bucket.
-- @internal crown.nats.admin

local Bucket = require "crown.nats.bucket"
local core = require "crown.core"
local epochs = require "crown.check.epoch"
local eviction = require "crown.oracle.eviction"
local health = require "crown.nats.health"
local Orders = require "crown.nats.orders"
local rights = require "crown.nats.rights"
local settings = require "crown.nats.settings"

local admin = {}

local AGAIN = 0.5 -- seconds until a leader is asked again to go: it does not hear of it between the two writes of its win, nor
                  -- while its connection is made anew

--- A leader's epoch: it is the revision of the win, which the value can bear only from its next write on.
-- @tparam table value of Bucket:get
-- @treturn number
function admin.epoch_of(value)
  local epoch = tonumber(value.headers["crown-epoch"])
  return epochs.is(epoch) and epoch or value.revision
end

--- The epoch to be shown: what others than candidates of ours have written has none.
-- @tparam table value of Bucket:get
-- @treturn number or nil
function admin.shown_epoch(value)
  return value.headers["crown-token"] and admin.epoch_of(value) or nil
end

local function with_bucket(opts, fn)
  local checked = settings.check(opts)
  local bucket, problem = Bucket.at(checked.url, { bucket = checked.bucket, timeout = checked.timeout or 5 })
  if not bucket then return nil, problem, "usage" end
  local result, code
  result, problem, code = fn(bucket, checked)
  bucket:close()
  return result, problem, code
end

-- How long it takes until a leader that cools down acts.
-- @number[opt] age of the value in seconds
local function acts_in(value, age)
  local said = tonumber(value.headers["crown-acts-in"])
  local rest = said and age and said - math.max(0, age)
  return rest and rest > 0 and rest or nil
end

--- Elections in the bucket.
-- @tparam table opts `url`, `bucket`
-- @treturn table an array of `{ name, node, epoch, expires_in, acts_in, revision, written }`, or nil and a message
function admin.list(opts)
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
        found[#found + 1] = { name = name, node = last.data, epoch = admin.shown_epoch(last),
          expires_in = age and math.max(0, info.ttl - math.max(0, age)), acts_in = acts_in(last, age),
          revision = last.revision, written = last.written }
      end
    end
    table.sort(found, function(a, b) return a.name < b.name end)
    return found
  end)
end

--- Hands a tool the orders beside the bucket.
-- @tparam table opts `url`, `bucket`
-- @tparam function fn gets a store of orders
-- @return what it returns; or nil, message, code
function admin.with_orders(opts, fn)
  return with_bucket(opts, function(bucket)
    local found, problem, code = fn(Orders.new(bucket))
    if found and bucket.link.connection then bucket.link.connection:prove(bucket.timeout) end -- it has told of the change
    return found, problem, code
  end)
end

--- What the bucket is, for `info`.
-- @tparam table opts `url`, `bucket`
-- @treturn table `{ ttl =, facts =, warnings = }`, or nil and a message
function admin.health(opts)
  return with_bucket(opts, function(bucket, checked)
    local info, problem, code = bucket:info()
    if code == Bucket.MISSING then
      return { warnings = {}, facts = { { "Bucket", bucket.name .. ", which the first candidate makes" } } }
    end
    if not info then return nil, problem end
    local _, unfit = settings.check_bucket(bucket.name, info)
    return health.of(bucket.name, info, unfit, not checked.trust_empty and checked.amnesia_wait or nil)
  end)
end

--- What a candidate may not do, for `check --store`, and why no election can be held in the bucket.
-- @tparam table opts `url`, `bucket`, `lock`, `crown_name`
-- @treturn table an array of texts, or nil and a message
function admin.rights(opts)
  return with_bucket(opts, function(bucket, checked)
    return rights.lacks(bucket, tostring(checked.lock or opts.crown_name), settings.check_bucket)
  end)
end

--- Asks the leader to step down, and waits until it has. A leader of Choria's hears no such wish: delete its key instead.
-- @tparam table opts `url`, `bucket`; `wait` seconds (10)
-- @string name of the election
-- @treturn table `{ node =, epoch = }` of who was evicted, or nil and a message
function admin.evict(opts, name)
  return with_bucket(opts, function(bucket)
    local last, problem, missing = bucket:get(name)
    if missing == Bucket.MISSING then
      return nil, ("nobody leads '%s', and there is no bucket %s,"):format(name, bucket.name), "no_leader"
    end
    if last == nil then return nil, problem end
    if not last or last.gone then return eviction.nobody(name) end
    local token, epoch = last.headers["crown-token"], admin.epoch_of(last)
    if not token then
      return nil, ("'%s' is led by %s of Choria's: choria election evict %s"):format(name, last.data, name)
    end
    local asked
    local function ask()
      asked = core.now()
      return bucket:ask_to_go(name, epoch)
    end
    local _, refused, code = ask()
    if code == "store" then return nil, refused, code end
    local gone
    gone, problem, code = eviction.await(name, opts.wait, function()
      if core.now() - asked >= AGAIN then ask() end
      local now = bucket:get(name)
      return now == false or now ~= nil and (now.gone or admin.epoch_of(now) ~= epoch)
    end)
    if not gone then return nil, problem, code end
    return { node = last.data, epoch = epoch }
  end)
end

return admin
