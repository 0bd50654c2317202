-- A bucket that may have forgotten who leads is sat out (R12).
local crown = require "crown"
local eventually = require("crown.testing").eventually
local kv = require "crown.oracles.nats_kv"
local Nats = require "support.nats"
local own_servers = require "support.own_servers"
local Player = require "support.oracle_candidate"
local Wire = require "support.nats_wire"

describe("a NATS server that may have forgotten", function()
  local server
  local start, destroy = own_servers(Nats.start)

  after_each(destroy)

  local function settled(name)
    server = start()
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

  describe("when its bucket is made anew, in which revisions begin at 1 again", function()
    local two, wire, last

    -- Somebody has a value in the bucket, and a candidate that believes the bucket has seen it.
    before_each(function()
      server = start()
      wire = Wire.open(server.port)
      wire:make_bucket("ANEW", 2)
      two = Player.new(kv, { name = "x", node = "two", url = server.url .. "/ANEW", ttl = 2, timeout = 1, amnesia_wait = 0 })
      last = 0
      eventually(function()
        last = assert(wire:campaign("ANEW", "x", "old", last))
        local verdict = two:claim()
        return verdict[1] == "denied" and not verdict[5] and two.state.standing.revision == last
      end, 10)
    end)

    local function anew()
      two.state.heard = function() end -- its watch hears nothing of the new bucket
      assert.is_nil(wire:ask("$JS.API.STREAM.DELETE.KV_ANEW", nil, "").error)
      wire:make_bucket("ANEW", 2)
    end

    -- Another one leads in the new bucket, who has sat it out.
    local function is_led()
      for revision = 1, last do assert.equal(revision, wire:campaign("ANEW", "x", "ann", revision - 1)) end
    end

    local function is_let_be()
      assert.equal("denied", two:claim()[1])
      assert.equal("ann", two.state.bucket:get("x").data)
    end

    it("no value is taken for one that has stood in the bucket before (P1)", function()
      anew()
      eventually(function() return two:claim()[5] end, 10) -- it knows of the new one, and sits it out
      crown.sleep(2.5)
      is_led()
      is_let_be()
    end)

    it("nor by who has not noticed yet that it was (P1)", function()
      anew()
      crown.sleep(2.5)
      is_led()
      is_let_be()
    end)

    it("no value is taken for the mark of a deletion in the bucket before (P1)", function()
      last = wire:ask("$KV.ANEW.x", "KV-Operation: DEL", "").seq
      eventually(function() return two.state.mark end, 10)
      anew()
      crown.sleep(2.1)
      is_led()
      is_let_be()
    end)
  end)

  -- Whoever was there before may act on a longer lease than the new bucket gives.
  it("is sat out for amnesia_wait at least when it was made anew with a shorter TTL, also by who was never there (R12)", function()
    server = start()
    local wire = Wire.open(server.port)
    wire:make_bucket("SHORTER", 1)
    local verdict
    local function newcomer(host, options)
      local given = { name = "x", node = "new", url = ("nats://%s:%d/SHORTER"):format(host, server.port), ttl = 1, timeout = 1 }
      for key, value in pairs(options) do given[key] = value end
      return Player.new(kv, given)
    end
    local one = newcomer("127.0.0.1", {})
    eventually(function() verdict = one:claim() return verdict[1] ~= "unknown" end, 10)
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] > 20)
    local two, at = newcomer("localhost", { amnesia_wait = 3 }), crown.now()
    assert.equal("granted", two:win()[1])
    assert.is_true(crown.now() - at > 1.5)
  end)

  it("is believed at once with trust_empty by who sees it for the first time, and by nobody else", function()
    server = start()
    local function candidate(host, trusting)
      return Player.new(kv, { name = host, node = "new", url = ("nats://%s:%d/EMPTY"):format(host, server.port), ttl = 20,
        timeout = 2, trust_empty = trusting })
    end
    local first, verdict = candidate("127.0.0.1", true), nil
    eventually(function() verdict = first:claim() return verdict[1] ~= "unknown" end, 10)
    assert.equal("granted", verdict[1])
    first:abdicate()
    local second = candidate("localhost", true) -- it did not make it, and leads all the same when the first goes
    eventually(function() verdict = second:claim() return verdict[1] ~= "unknown" end, 10)
    assert.equal("granted", verdict[1])
    second:abdicate()
    local third = candidate("LOCALHOST", false)
    eventually(function() verdict = third:claim() return verdict[1] ~= "unknown" end, 10)
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(verdict[2] > 20)
    assert.is_nil(Wire.open(server.port):ask("$JS.API.STREAM.DELETE.KV_EMPTY", nil, "").error)
    for _, one in ipairs { first, second } do
      one.state.bucket.fitted = nil -- as on a new connection: the first makes the bucket again
      eventually(function() verdict = one:claim() return verdict[1] ~= "unknown" end, 10)
      assert.same({ "denied", true }, { verdict[1], verdict[5] })
      assert.is_true(verdict[2] > 25) -- amnesia_wait, not only the TTL
    end
  end)

  it("is sat out when its TTL was made shorter beneath a connection, as leases of before last longer (R12)", function()
    local one, two, _, wire = settled "EDITED"
    wire:make_bucket("EDITED", 1, { verb = "UPDATE" })
    one:abdicate()
    local verdict = is_sat_out(two)
    assert.is_true(verdict ~= nil)
    assert.equal(1, two.state.ttl)
  end)

  it("may have another TTL than before, and that one again: it is said each time, and no restart", function()
    local one, _, _, wire = settled "LONGER"
    one:abdicate()
    for _, change in ipairs { { 3, "from 2 s to 3 s" }, { 2, "from 3 s to 2 s" } } do
      wire:make_bucket("LONGER", change[1], { verb = "UPDATE" })
      eventually(function()
        local verdict = one:claim()
        if verdict[1] == "granted" then one:abdicate() end
        return verdict[1] == "denied" and verdict[5]
      end, 5)
      local said = one.state.bucket.doubt:words(one.state.bucket.trust:left())
      assert.matches(("LONGER: the TTL of the bucket LONGER was changed %s. Waiting"):format(change[2]), said, 1, true)
    end
    wire.connection:close()
  end)

  -- Such a TTL is a slip of the hand: nobody was given a lease that long.
  for what, more in pairs { ["a TTL"] = { max_age = 86400 * 1e9 }, ["a history"] = { max_msgs_per_subject = 5 } } do
    it(("grants nothing while it has %s that suits no election, and is sat out for no day when that was put right"):format(what),
      function()
        local one, two, epoch, wire = settled "SLIP"
        more.verb = "UPDATE"
        wire:make_bucket("SLIP", 2, more)
        one:abdicate()
        local verdict
        for _ = 1, 2 do -- the first claim finds it out by its win, the next one before it writes
          eventually(function() verdict = two:claim() return verdict[1] ~= "denied" end, 10)
          assert.equal("unknown", verdict[1])
          assert.matches("the bucket SLIP", verdict[2])
          two:abdicate()
        end
        wire:make_bucket("SLIP", 2, { verb = "UPDATE" })
        eventually(function() verdict = two:claim() return verdict[1] == "granted" end, 20)
        assert.is_true(verdict[4] > epoch)
      end)
  end

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
    server = start()
    local wire = Wire.open(server.port)
    wire:make_bucket("TAIL", 2)
    server:down()
    assert.equal(0, os.execute(("cp -a %s/data %s/before"):format(server.dir, server.dir)))
    server:up()
    local function member(node)
      return Player.new(kv, { name = "x", node = node, url = server.url .. "/TAIL", ttl = 2, timeout = 1,
        amnesia_wait = 0 })
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

  -- Replicas of one stream may come apart when their servers crash (seen with NATS 2.9): the one that a watch is on then numbers
  -- each write higher than the stream's leader does.
  it("is sat out once for each watch when the watch's replica is ahead of the stream's leader, not for ever", function()
    local servers, hosts = Nats.cluster(3), {}
    finally(function() for _, each in ipairs(servers) do each:destroy() end end)
    for i, each in ipairs(servers) do hosts[i] = "127.0.0.1:" .. each.port end
    local one = Player.new(kv, { name = "x", node = "one", url = "nats://" .. table.concat(hosts, ",") .. "/APART", ttl = 3,
      timeout = 1, replicas = 3, amnesia_wait = 0 })
    local bucket, wire, joined = one.state.bucket, Wire.open(servers[1].port), {}
    local listener = { revision = 0 }
    function listener.heard(_, _, revision) listener.revision = revision or listener.revision end
    local function api(verb) return wire:ask("$JS.API." .. verb, nil, "") end
    local function told() -- a bucket that is far ahead tells the watches of its writes, too
      for _, name in ipairs(api("CONSUMER.NAMES.KV_APART").consumers) do
        local about = api("CONSUMER.INFO.KV_APART." .. name)
        local subject = about.config and about.config.deliver_subject
        if subject and not joined[subject] then
          joined[subject] = not wire:ask("$JS.API.CONSUMER.CREATE.KV_OTHER", nil, crown.json.encode { stream_name = "KV_OTHER",
            config = { deliver_subject = subject, deliver_policy = "new", ack_policy = "none", mem_storage = true } }).error
        end
      end
      local ahead = wire:ask("$KV.OTHER.k", nil, "").seq
      return crown.sleep(0.1) or listener.revision >= ahead
    end
    local function wins(before)
      local verdict, amnesia
      eventually(function()
        if before then eventually(before, 10) end
        verdict = one:claim()
        amnesia = amnesia or verdict[5] == true
        return verdict[1] == "granted"
      end, 20)
      one:abdicate()
      return amnesia
    end
    bucket:join("k", listener)
    wins()
    wire:make_bucket("OTHER", 60)
    for _ = 1, 200 do wire:ask("$KV.OTHER.k", nil, "") end
    assert.is_true(wins(told))
    assert.is_falsy(wins(told))
    bucket.link.connection:close "a new watch comes with the next one"
    bucket.highest = bucket.highest + 5 -- writes that the stream has lost: the new watch told nothing of them
    assert.is_true(wins())
    assert.is_true(wins(told))
  end)

  it("is sat out after a start of its only server, which may not have had its last writes on disk (R12)", function()
    local one, two = settled "START"
    one:abdicate()
    server:down()
    server:up()
    is_sat_out(two)
  end)

  describe("and keeps a bucket alone, in a cluster of three", function()
    local servers, keeper, other

    local function start_three(more)
      servers = Nats.cluster(3, more)
      local wire = Wire.open(servers[1].port)
      eventually(function() return (pcall(wire.make_bucket, wire, "ALONE", 2)) end, 20)
      local leader
      eventually(function()
        local about = wire:ask("$JS.API.STREAM.INFO.KV_ALONE", nil, "")
        leader = about.cluster and about.cluster.leader
        return leader
      end, 10)
      wire.connection:close()
      for _, one in ipairs(servers) do
        if one.name == leader then keeper = one else other = one end
      end
    end

    local function member(node)
      return Player.new(kv, { name = "x", node = node, url = other.url .. "/ALONE", ttl = 2, timeout = 2, amnesia_wait = 0 })
    end

    after_each(function()
      for _, one in ipairs(servers) do one:destroy() end
    end)

    it("is sat out after its start, also where the URL names another one (R12)", function()
      start_three()
      local one, two = member "one", member "two"
      assert.equal("granted", one:win()[1])
      one:abdicate()
      assert.equal("granted", two:win()[1])
      two:abdicate()
      keeper:down()
      keeper:up()
      is_sat_out(two)
    end)

    it("is spoken to again soon after it is back, by who had to go on without it", function()
      start_three()
      local two = member "two"
      assert.equal("granted", two:win()[1])
      two:abdicate()
      keeper:down()
      eventually(function() -- the others do not name it now
        local connection = two.state.bucket.link.connection
        return connection and connection.name ~= keeper.name
      end, 10)
      keeper:up()
      is_sat_out(two)
    end)

    it("grants nothing where it cannot be reached itself, so that its start would not be seen", function()
      start_three "no_advertise: true"
      local one, verdict = member "one", nil
      eventually(function()
        verdict = one:claim()
        assert.are_not.equal("granted", verdict[1])
        return verdict[1] == "unknown" and verdict[2]:find("one replica, on the server " .. keeper.name, 1, true)
      end, 20)
      assert.equal("unknown", one:claim()[1])
    end)
  end)
end)
