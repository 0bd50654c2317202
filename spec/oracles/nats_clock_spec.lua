-- A NATS server ends leases by its wall clock. When that is stepped forward a key is gone while its leader still acts; when it is
-- set back the key stays for ever (R14).
local crown = require "crown"
local eventually = require("crown.testing").eventually
local kv = require "crown.oracles.nats_kv"
local Nats = require "support.nats"
local own_servers = require "support.own_servers"
local Player = require "support.oracle_candidate"
local Wire = require "support.nats_wire"
local WrongClock = require "support.wrong_clock"

local HOUR, TTL = 3600, 6

describe("a NATS server whose clock is stepped", function()
  local start, destroy = own_servers(Nats.start)
  local clock, server

  before_each(function()
    clock = WrongClock.new(0)
    server = start { clock = clock }
  end)
  after_each(destroy)

  local function member(node, host)
    return Player.new(kv, { name = "x", node = node, url = ("nats://%s:%d/STEP"):format(host or "127.0.0.1", server.port), ttl = TTL,
      timeout = 1, amnesia_wait = 0 })
  end

  -- Of two, the first leads; the other one has a connection of its own where it names another host. @return both, and the epoch
  local function leader_and_follower(host)
    local one, two = member "one", member("two", host)
    local epoch = one:win()[4]
    assert.equal("denied", two:claim()[1])
    return one, two, epoch
  end

  -- The server looks at the ages of its messages when the first of them would be due; the leader has refreshed until then.
  -- @return when it did so last, at the earliest
  local function lets_the_key_go(leader, wire)
    local at, refreshed = crown.now(), nil
    eventually(function()
      refreshed = crown.now()
      assert.equal("granted", leader:refresh()[1])
      return refreshed - at > TTL * 2 / 3
    end, 2 * TTL)
    clock:set(HOUR)
    eventually(function() return wire:ask("$JS.API.STREAM.MSG.GET.KV_STEP", nil, '{"last_by_subj":"$KV.STEP.x"}').error end, 2 * TTL)
    return refreshed
  end

  it("gives no lease away before its time to a follower that heard of it last (R14)", function()
    local one, two = leader_and_follower()
    local refreshed = lets_the_key_go(one, Wire.open(server.port))
    local verdict = two:claim()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[2] > 0)
    eventually(function() return two:claim()[1] == "granted" end, 2 * TTL)
    assert.is_true(crown.now() - refreshed > TTL)
  end)

  it("frees no follower of what it knows when somebody who knows nothing wins meanwhile and releases (R14)", function()
    local one, two = leader_and_follower()
    local refreshed = lets_the_key_go(one, Wire.open(server.port))
    local three = member("three", "localhost")
    three:win()
    three:abdicate()
    eventually(function() return two:message() == "freed" end, 2 * TTL)
    local verdict = two:call("handle_info", "freed")
    assert.same({ "denied", true }, { verdict[1], crown.now() < refreshed + TTL })
    eventually(function() return two:claim()[1] == "granted" end, 2 * TTL)
    assert.is_true(crown.now() - refreshed > TTL)
  end)

  it("is sat out by a follower that had no way to it when the lease was refreshed last (R14)", function()
    local one, two = leader_and_follower "localhost"
    local bucket = two.state.bucket
    two.state.heard = function() end -- nothing of what comes now
    local refreshed = lets_the_key_go(one, Wire.open(server.port))
    eventually(function() return two.state.standing:left(TTL) == 0 end, 2 * TTL)
    bucket.link.connection:close "a new one comes"
    local verdict
    eventually(function() verdict = two:claim() return verdict[1] ~= "unknown" end, 2 * TTL)
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(crown.now() < refreshed + TTL)
  end)

  it("is led anew when nobody has refreshed for one TTL, also where its clock was set back (R7)", function()
    local one, two, epoch = leader_and_follower()
    clock:set(-HOUR)
    local verdict, at = nil, crown.now()
    eventually(function() verdict = two:claim() return verdict[1] == "granted" end, 3 * TTL)
    assert.is_true(crown.now() - at > TTL / 2)
    assert.is_true(verdict[4] > epoch)
    assert.equal("denied", one:refresh()[1])
  end)

  it("is asked again the sooner the less late it lets a dead leader's value go", function()
    local _, two = leader_and_follower()
    clock:set(-HOUR)
    local standing = two.state.standing
    eventually(function() return standing:left(TTL) == 0 end, 2 * TTL)
    local verdict = two:claim()
    local late = crown.now() - standing.at - TTL
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[2] <= math.max(0.011, late), verdict[2] .. " s, " .. late .. " s late")
  end)

  it("keeps a value that was refreshed since it was seen last (P1)", function()
    local one, two = leader_and_follower "localhost"
    local standing = two.state.standing
    two.state.heard = function() end -- nothing of what comes now
    eventually(function()
      assert.equal("granted", one:refresh()[1])
      return standing:is_over(standing.revision, standing.written, TTL)
    end, 3 * TTL)
    assert.equal("denied", two:claim()[1])
    assert.equal("granted", one:refresh()[1])
  end)

  it("is sat out no longer on account of a bucket that seems to be made in the future (R12)", function()
    local one = member "one"
    one:win()
    one:abdicate()
    clock:set(-5 * HOUR)
    local two, verdict = member("two", "localhost"), nil
    eventually(function() verdict = two:claim() return verdict[1] ~= "unknown" end, 2 * TTL)
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] < TTL + 1.5)
    one.state.bucket.link.connection:close "a new one comes"
    eventually(function() verdict = one:claim() return verdict[1] ~= "unknown" end, 2 * TTL)
    assert.equal("granted", verdict[1]) -- who knew it before knows its age
  end)
end)
