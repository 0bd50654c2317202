-- What a term subscribes to at a store is told to that term alone, and to nobody when it is over.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Postgres = require "support.postgres"
local Redis = require "support.redis"

-- Three terms, each of which subscribes; @return the election, which still leads
local function lead(name, subscribe)
  local terms = 0
  local election = crown.elect { name = name, oracle = { "memory", path = name, ttl = 30 }, retry = 0.01, handlers = {
    won = function()
      subscribe()
      terms = terms + 1
    end } }
  for i = 1, 3 do
    eventually(function() return terms == i and election:is_leader() end)
    if i < 3 then election:abdicate() end
  end
  return election
end

local function stop(election)
  election:stop()
  eventually(function() return election.handle:finished() end)
end

describe("a subscription of a term", function()
  local server
  after_each(function() server:destroy() end)

  it("to a channel of Redis ends with it", function()
    server = Redis.start()
    local client, other = assert(crown.redis.connect(server.url)), assert(crown.redis.connect(server.url))
    local heard, ready = 0, 0
    local election = lead("subscribes-redis", function()
      assert(client:subscribe("news", function(payload)
        if payload then heard = heard + 1 else ready = ready + 1 end
      end))
    end)
    eventually(function() return ready > 0 end)
    other:call("PUBLISH", "news", "one")
    eventually(function() return heard > 0 end)
    crown.sleep(0.05)
    assert.equal(1, heard)
    stop(election)
    eventually(function() return other:call("PUBSUB", "NUMSUB", "news")[2] == 0 end)
    client:close()
    other:close()
  end)

  it("to a channel of Postgres ends with it", function()
    server = Postgres.start()
    local client = assert(crown.postgres.connect(server.url))
    local heard = 0
    local election = lead("subscribes-postgres", function()
      assert(client:listen("news", function() heard = heard + 1 end))
    end)
    eventually(function()
      assert(client:query "SELECT pg_notify('news', '')")
      return heard > 0
    end)
    local before
    eventually(function() -- until all of them have been heard
      before = heard
      crown.sleep(0.05)
      return heard == before
    end)
    assert(client:query "SELECT pg_notify('news', '')")
    eventually(function() return heard > before end)
    crown.sleep(0.05)
    assert.equal(before + 1, heard)
    stop(election)
    eventually(function() return #client:query "SELECT pg_listening_channels()" == 0 end)
    client:close()
  end)
end)
