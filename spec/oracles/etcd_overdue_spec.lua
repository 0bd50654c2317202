-- Whose time is over is not waited for until etcd looks; who may still act is.
local base64 = require "crown.text.base64"
local core = require "crown.core"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local keys = require "crown.etcd.keys"
local Players = require "support.etcd_players"

local TTL = 2
local DRIFT = 0.01 -- by which clocks may run differently
local DIGEST = ("a"):rep(32)

local overhear = Players.overhear
local server = Etcd.start():trusted()

describe("a lease in etcd", function()
  local players, candidate = Players.of_each_test(function() return server.url end, 60)

  -- A leader that keeps its lease no more. @treturn table the lease: its `number`, and when it was asked for
  local function dies(client, key, seconds)
    local lease = { number = ("%d%09d"):format(players.serial, math.random(999999999)), sent = core.now() }
    assert(client:ask("/v3/lease/grant", { TTL = ("%d"):format(seconds), ID = lease.number }))
    assert(client:ask("/v3/kv/put", { key = base64.encode(key), value = base64.encode "dead", lease = lease.number }))
    return lease
  end

  local function is_there(client, lease)
    return tonumber(assert(client:ask("/v3/lease/timetolive", { ID = lease.number })).grantedTTL or 0) > 0
  end

  -- @return the follower of somebody who died at once, and that one's lease
  local function follower_of(number, ttl)
    local two = candidate "two"
    local client = two.state.session.client
    local lease = dies(client, keys.place(players.name, ("b"):rep(16), DIGEST, 1):gsub("01$", number), ttl + keys.SPARE)
    assert.equal("denied", two:claim()[1])
    return two, lease, client
  end

  local function awaits(two)
    eventually(function() return two:message() == "look" end, 20)
    return core.now()
  end

  it("ends as soon as its holder's time is over, and no sooner", function()
    eventually(function() -- again, where the machine stood still
      local two, lease = follower_of("01", TTL)
      local took = awaits(two) - lease.sent
      assert.is_true(took >= TTL * (1 - DRIFT))
      assert.equal("granted", two:call("handle_info", "look")[1])
      two:abdicate()
      return took < (TTL + keys.SPARE) * (1 - DRIFT)
    end, 60)
  end)

  it("lasts for longer than a leader acts on it that is cut off", function()
    local one, two = candidate("one", { ttl = TTL }), candidate "two"
    one:win()
    local session = one.state.session
    overhear(one, function() return nil, "cut off", "closed" end)
    assert.equal("denied", two:claim()[1])
    assert.is_true(awaits(two) - session.from >= TTL * (1 - DRIFT))
  end)

  it("is waited for until etcd ends it where its holder may act on all of it", function()
    local two, lease = follower_of("1", TTL)
    assert.is_true(awaits(two) - lease.sent >= (TTL + keys.SPARE) * (1 - DRIFT))
  end)

  it("is not ended while its holder keeps it", function()
    local two, lease, client = follower_of("01", 2 * TTL)
    local other, kept = dies(client, "beside-" .. players.serial, 3 * TTL), nil
    eventually(function()
      kept = core.now()
      assert(client:ask("/v3/lease/keepalive", { ID = lease.number }))
      return not is_there(client, other)
    end, 20)
    assert.is_nil(two:message())
    assert.is_true(awaits(two) - kept >= 2 * TTL * (1 - DRIFT))
  end)

  local lies = {
    ["of another term"] = function(path, answer, ...)
      if path == "/v3/kv/range" then answer.header.raft_term = tostring(core.now()) end
      return answer, ...
    end,
    ["that was not asked before"] = function(path, answer, ...)
      if path == "/v3/lease/timetolive" then answer.header.member_id = "7" end
      return answer, ...
    end,
  }
  for whose, lie in pairs(lies) do
    it("is not ended on the word of a member that a majority may have deposed: one " .. whose, function()
      local two, lease = follower_of("01", TTL)
      overhear(two, lie)
      assert.is_true(awaits(two) - lease.sent >= (TTL + keys.SPARE) * (1 - DRIFT))
    end)
  end

  it("is never used again when it was kept after its holder's time was over", function()
    local one = candidate("one", { ttl = TTL, refresh = 0.2 })
    local epoch = one:win()[4]
    local session = one.state.session
    local lease = session.lease
    overhear(one, function(path, ...)
      if path == "/v3/lease/keepalive" and session.lease == lease then core.sleep(math.max(0, session.from + TTL - core.now())) end
      return ...
    end)
    eventually(function() return one:message() == "look" end, 20)
    assert.equal("denied", one:call("handle_info", "look")[1])
    assert.is_true(one:win()[4] > epoch)
    assert.are_not.equal(lease, session.lease)
    eventually(function() return not is_there(session.client, { number = lease }) end, 20)
  end)
end)

teardown(function() server:destroy() end)
