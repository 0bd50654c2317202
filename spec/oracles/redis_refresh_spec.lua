-- What refreshes the leases of a leader on Redis, and gives them back: one call of the script for many, and no call of the oracle
-- while nothing has changed.
local refreshed_together = require "support.refreshed"
local Redis = require "support.redis"

local server

local function key(name) return ("crown:{%s}:lease"):format(name) end

local function ends_at(name) return server:call("PEXPIRETIME", key(name)) end

local function sets(field, value)
  return function(name) server:call("HSET", key(name), field, value) end
end

refreshed_together("a leader's lease on Redis", {
  oracle = require "crown.oracles.redis", word = "redis",
  start = function() server = Redis.start() end,
  url = function() return server.quick end,
  ends_at = ends_at,
  is_free = function(name) return server:call("EXISTS", key(name)) == 0 end,
  evict = sets("evicted", "1"),
  take = sets("token", "somebody"),
  reclaim = sets("claim", "1"),
  raise = function(name) server:call("HINCRBY", key(name), "epoch", "5") end,
  freeze = function() server:freeze() end,
  thaw = function() server:thaw() end,
  amid = { change = sets("evicted", "1"), reason = "evicted", prepare = function(name)
    server:call("SET", (key(name):gsub("lease$", "epoch")), "9000000000000") -- all of them have the same
  end },
})

teardown(function() server:destroy() end)
