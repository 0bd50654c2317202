-- What refreshes the leases of a leader on Redis, and gives them back: one call of the script for many, and no call of the oracle
-- while nothing has changed.
local crown = require "crown"
local Elections = require "support.elections"
local eventually = require("crown.testing").eventually
local refreshed_together = require "support.refreshed"
local Redis = require "support.redis"

local MANY, TTL = 200, 3

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
  more = function(it)
    it("gets its own answer among many of the same epoch", function()
      local many, lost, all, evicted = Elections.new(), {}, {}, {}
      finally(function() many:stop() end)
      crown.on("leadership.lost", function(event) lost[event.name] = event.reason end)
      for i = 1, MANY do
        local name = Elections.unique()
        server:call("SET", key(name):gsub("lease$", "epoch"), "9000000000000")
        all[i] = many:elect { name = name, oracle = { "redis", url = server.quick, ttl = TTL } }
      end
      eventually(function()
        for _, one in ipairs(all) do
          if not one:is_leader() then return false end
        end
        return true
      end, 60)
      for i = 7, MANY, 9 do
        evicted[all[i].name] = "evicted"
        server:call("HSET", key(all[i].name), "evicted", "1")
      end
      for _ = 1, 3 do -- who is asked for in another's place may be told by chance, but not all of them
        local before = {}
        for _, one in ipairs(all) do before[#before + 1] = not evicted[one.name] and ends_at(one.name) or nil end
        eventually(function()
          local at = 0
          for _, one in ipairs(all) do
            if not evicted[one.name] then
              at = at + 1
              if ends_at(one.name) <= before[at] then return false end
            end
          end
          return true
        end, 60)
      end
      assert.same(evicted, lost)
    end)
  end,
})

teardown(function() server:destroy() end)
