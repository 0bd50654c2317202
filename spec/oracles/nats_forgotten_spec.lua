-- A bucket that may have forgotten who leads is sat out (R12).
local crown = require "crown"
local eventually = require("crown.testing").eventually
local kv = require "crown.oracles.nats_kv"
local Nats = require "support.nats"
local Player = require "support.oracle_candidate"
local Wire = require "support.nats_wire"

describe("a NATS server that may have forgotten", function()
  local server

  after_each(function()
    if server then server:destroy() end
    server = nil
  end)

  local function settled(name)
    server = Nats.start()
    return Wire.settled(server, name)
  end

  local function is_sat_out(two)
    local verdict
    eventually(function() verdict = two:claim() return verdict[1] ~= "unknown" end, 10)
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] > 1)
    eventually(function() verdict = two:claim() return verdict[1] == "granted" end, 10)
    return verdict[4]
  end

  it("is sat out when its bucket is made anew beneath a connection, before anything is granted (R12)", function()
    local _, two, _, wire = settled "AGAIN"
    assert.is_nil(wire:ask("$JS.API.STREAM.DELETE.KV_AGAIN", nil, "").error)
    wire:make_bucket("AGAIN", 2)
    is_sat_out(two)
  end)

  it("is not written to while it is sat out: that would disturb a leader of before", function()
    local _, two, _, wire = settled "QUIET"
    assert.is_nil(wire:ask("$JS.API.STREAM.DELETE.KV_QUIET", nil, "").error)
    wire:make_bucket("QUIET", 10)
    local verdict
    eventually(function() verdict = two:claim() return verdict[1] ~= "unknown" end, 10)
    assert.is_true(verdict[5])
    local function last() return wire:ask("$JS.API.STREAM.INFO.KV_QUIET", nil, "").state.last_seq end
    local before = last()
    verdict = two:claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.equal(before, last())
  end)

  it("is sat out when it has lost its last writes, as one sees who was there before (R12)", function()
    server = Nats.start()
    local wire = Wire.open(server.port)
    wire:make_bucket("TAIL", 2)
    server:down()
    assert.equal(0, os.execute(("cp -a %s/data %s/before"):format(server.dir, server.dir)))
    server:up()
    local function member(node)
      return Player.new(kv, { name = "x", node = node, url = server.url .. "/TAIL", ttl = 2, timeout = 1 })
    end
    local one, two = member "one", member "two"
    local verdict
    eventually(function() verdict = one:claim() return verdict[1] == "granted" end, 10)
    assert.equal("granted", one:refresh()[1])
    eventually(function() return two:claim()[1] == "denied" end)
    server:down()
    server:wipe()
    assert.equal(0, os.execute(("mv %s/before %s/data"):format(server.dir, server.dir)))
    server:up()
    is_sat_out(two)
  end)

  it("is sat out when it is behind what was heard of it (R12)", function()
    local one, two = settled "BEHIND"
    one:abdicate()
    two.state.bucket.highest = two.state.bucket.highest + 5 -- five writes that the stream has lost, and no start
    two.state.bucket.fitted = nil
    is_sat_out(two)
  end)

  it("is sat out after a start of its only server, which may not have had its last writes on disk (R12)", function()
    local one, two = settled "START"
    one:abdicate()
    server:down()
    server:up()
    is_sat_out(two)
  end)

  it("is sat out for one TTL when it has lost all its data", function()
    server = Nats.start()
    local options = { name = "x", node = "one", url = server.url .. "/B", ttl = 1, timeout = 0.5 }
    local one = Player.new(kv, options)
    eventually(function() return one:claim()[1] == "granted" end)
    server:down()
    server:wipe()
    server:up()
    local verdict
    eventually(function() verdict = one:refresh() return verdict[1] ~= "granted" and verdict[2] ~= "closed" end)
    options.node = "two"
    local two, at = Player.new(kv, options), crown.now()
    eventually(function() verdict = two:claim() return verdict[5] == true end)
    eventually(function() verdict = two:claim() return verdict[1] == "granted" end)
    assert.is_true(crown.now() - at > 0.5)
  end)
end)
