-- A value in a NATS bucket that ends, or is deleted, while a candidate of the same token claims: as a runtime does that was started
-- again. Nobody else leads there, so nobody waits for a TTL (R7).
local eventually = require("crown.testing").eventually
local kv = require "crown.oracles.nats_kv"
local Nats = require "support.nats"
local Player = require "support.oracle_candidate"
local Way = require "support.nats_way"
local Wire = require "support.nats_wire"

local TTL = 2
local PUT_OVER = "HPUB %$KV%.ENDED%.x .-Expected%-Last%-Subject%-Sequence: [1-9]"
local GET = "PUB %$JS%.API%.STREAM%.MSG%.GET%.KV_ENDED "

describe("a value in a NATS bucket that ends while it is claimed again", function()
  local server, way, wire

  setup(function() server = Nats.start() end)
  before_each(function() way, wire = Way.open(server.port), Wire.open(server.port) end)
  after_each(function()
    way.close()
    wire.connection:close()
  end)
  teardown(function() server:destroy() end)

  local function member(port, node, token)
    return Player.new(kv, { name = "x", node = node, url = ("nats://127.0.0.1:%d/ENDED"):format(port), ttl = TTL, amnesia_wait = 0,
      token = token })
  end

  local function is_gone()
    return wire:ask("$JS.API.STREAM.MSG.GET.KV_ENDED", nil, '{"last_by_subj":"$KV.ENDED.x"}').error ~= nil
  end

  -- A leader that dies, and its successor, which the store takes for it.
  local function leader_and_successor()
    member(server.port, "one", "same"):win()
    local again = member(way.port, "one", "same")
    assert(again.state.bucket:fit())
    return again
  end

  for what, pattern in pairs { ["between the look and the write over it"] = PUT_OVER, ["before the look"] = GET } do
    it("is won at once, where it ends " .. what, function()
      local again, waited = leader_and_successor(), 0
      way.asked = function(bytes)
        if waited > 0 or not bytes:find(pattern) then return end
        waited = waited + 1
        eventually(is_gone, 5 * TTL)
      end
      assert.equal("granted", again:claim()[1])
      assert.equal(1, waited)
      again:abdicate()
    end)
  end

  it("is another one's where that was quicker", function()
    local again, other = leader_and_successor(), member(server.port, "two", "other")
    way.asked = function(bytes)
      if not bytes:find(PUT_OVER) then return end
      way.asked = function() end
      eventually(is_gone, 5 * TTL)
      other:win()
    end
    local verdict = again:claim()
    assert.same({ "denied", "two" }, { verdict[1], verdict[3] })
    assert.is_true(verdict[2] > TTL / 2)
    other:abdicate()
  end)
end)
