-- Replicas of a NATS bucket may number the same writes differently (seen with NATS 2.9, where each replica judges by itself whether a
-- write has the revision that it names: one that starts again judges after the values have run out). A watch is on any of them, and
-- on another one after each connection. So one revision may be told of two values (P1).
local crown = require "crown"
local eventually = require("crown.testing").eventually
local kv = require "crown.oracles.nats_kv"
local Nats = require "support.nats"
local Player = require "support.oracle_candidate"
local Way = require "support.nats_way"

local TTL = 12 -- seconds: the leader has to refresh in time though the machine stands still for some

describe("a value in a NATS bucket", function()
  local server, way, one, two

  -- A replica that has one write more than the stream's leader tells of each write with the next number.
  local function as_one_ahead(bytes)
    return (bytes:gsub("(%$JS%.ACK%.[^.]+%.[^.]+%.%d+%.)(%d+)", function(subject, revision)
      return ("%s%d"):format(subject, tonumber(revision) + 1)
    end))
  end

  local function member(port, node)
    return Player.new(kv, { name = "x", node = node, url = ("nats://127.0.0.1:%d/APART"):format(port), ttl = TTL, amnesia_wait = 0 })
  end

  -- One leads, and the other one, who comes by the way, has seen it.
  before_each(function()
    server = Nats.start()
    way = Way.open(server.port)
    one, two = member(server.port, "one"), member(way.port, "two")
    one:win()
    eventually(function()
      assert.equal("granted", one:refresh()[1])
      local verdict = two:claim()
      return verdict[1] == "denied" and not verdict[5]
    end, 20)
  end)
  after_each(function()
    way.close()
    server:destroy()
  end)

  -- @return when it was refreshed at the earliest
  local function refreshed()
    local at = crown.now()
    assert.equal("granted", one:refresh()[1])
    return at
  end

  local function heard_of(revision)
    eventually(function() return two.state.standing.revision == revision end, TTL / 2)
  end

  it("is not taken for an older one of the same revision, which a replica that is ahead had told of (P1)", function()
    way.answered = as_one_ahead
    local at = refreshed()
    heard_of(one.state.revision + 1)
    local away = true
    way.meets = function() eventually(function() return not away end, 10 * TTL) end
    way.answered = function(bytes) return bytes end
    two.state.bucket.link.connection:close "the next watch is on another replica"
    eventually(function() return crown.now() - at > TTL / 2 end, 2 * TTL)
    at = refreshed()
    away = false
    eventually(function() return two:claim()[1] == "granted" end, 10 * TTL)
    assert.is_true(crown.now() - at >= TTL)
  end)

  it("is the same by a watch and by a look at the key", function()
    refreshed()
    heard_of(one.state.revision)
    local since = two.state.standing.at
    assert.equal("denied", two:claim()[1])
    assert.same({ one.state.revision, since }, { two.state.standing.revision, two.state.standing.at })
  end)
end)
