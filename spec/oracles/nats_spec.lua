local Connection = require "crown.nats.connection"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local kv = require "crown.oracles.nats_kv"
local Nats = require "support.nats"
local Player = require "support.oracle_candidate"
local run = require "support.run"
local Wire = require "support.nats_wire"

local json = crown.json

local COOL_DOWN = 10 -- where a verdict says it

local serial = 0

describe("the oracle on a NATS bucket", function()
  local server, wire, players

  setup(function()
    server = Nats.start()
    wire = Wire.open(server.port)
    wire:make_bucket("ELECTIONS", 4)
    local first = Player.new(kv, { name = "first", node = "one", url = server.url .. "/ELECTIONS", amnesia_wait = 0 })
    eventually(function() return first:claim()[1] == "granted" end, 10) -- a bucket that is younger than its TTL is sat out
    first:abdicate()
  end)
  teardown(function() server:destroy() end)
  before_each(function()
    serial = serial + 1
    players = {}
  end)
  after_each(function()
    for _, player in ipairs(players) do player:abdicate() end
  end)

  local function candidate(node, options)
    local given = { name = "e-" .. serial, node = node, url = server.url .. "/ELECTIONS", amnesia_wait = 0 }
    for key, value in pairs(options or {}) do given[key] = value end
    players[#players + 1] = Player.new(kv, given)
    return players[#players]
  end

  -- Waits until a candidate has heard of all that was written so far: a stream delivers in order.
  local function caught_up(one)
    local key, follower = ("fence-%d"):format(math.random(1e9)), { heard = function(self) self.has_heard = true end }
    one.state.bucket:join(key, follower)
    assert(wire:campaign("ELECTIONS", key, "spec", 0))
    eventually(function() return follower.has_heard end)
  end

  it("leads by the bucket's TTL, campaigns at three quarters of it, in the revision of its win as epoch", function()
    local one = candidate("one", { ttl = 60 })
    local verdict = one:claim()
    assert.same({ "granted", 4 }, { verdict[1], verdict[3] })
    assert(verdict[2] <= 3, "what is won together is not refreshed together, and no later than ever")
    local epoch, refreshed = verdict[4], one:refresh()
    assert.same({ "granted", 3, 4, epoch }, { unpack(refreshed, 1, 4) })
    local last = one.state.bucket:get("e-" .. serial)
    assert.same({ "one", tostring(epoch) }, { last.data, last.headers["crown-epoch"] })
  end)

  it("looks at the bucket once for all of a runtime, and not at its keys", function()
    local looks, ended = 0, 0
    local listener = assert(Connection.open({}, { host = "127.0.0.1", port = server.port }, 5))
    listener:subscribe("$JS.API.STREAM.INFO.KV_ELECTIONS", function(message)
      looks = looks + 1
      assert.equal("", message:data())
    end)
    assert(listener:prove(20))
    local url = ("nats://localhost:%d/ELECTIONS"):format(server.port) -- another connection than the other specs have
    for i = 1, 50 do
      local one = Player.new(kv, { name = ("all-%d-%d"):format(serial, i), node = "one", url = url,
        amnesia_wait = 0 })
      crown.spawn(function()
        one:claim()
        ended = ended + 1
      end)
    end
    eventually(function() return ended == 50 end, 20)
    assert(listener:prove(20))
    listener:close()
    assert(looks >= 2 and looks < 25, ("%d looks for 50 elections"):format(looks))
  end)

  it("lists all elections by a handful of questions, however many there are", function()
    wire:make_bucket("LISTED", 60)
    local options = { url = server.url .. "/LISTED" }
    assert.same({}, kv.list(options))
    for i = 1, 300 do assert(wire:campaign("LISTED", "e" .. i, "node" .. i, 0)) end
    assert.is_number(wire:ask("$KV.LISTED.e300", "KV-Operation: DEL", "").seq)
    local questions = 0
    local listener = assert(Connection.open({}, { host = "127.0.0.1", port = server.port }, 5))
    listener:subscribe("$JS.API.>", function() questions = questions + 1 end)
    assert(listener:prove(20))
    local found = assert(kv.list(options))
    assert(listener:prove(20))
    listener:close()
    assert.equal(299, #found)
    local one = found[1]
    assert.same({ "e1", "node1", 1 }, { one.name, one.node, one.revision })
    assert.is_true(one.expires_in > 30 and one.expires_in <= 60)
    local asked = wire:ask("$JS.API.STREAM.MSG.GET.KV_LISTED", nil, json.encode { last_by_subj = "$KV.LISTED.e1" })
    assert.equal(asked.message.time:sub(1, 20), one.written:sub(1, 20))
    assert(questions <= 4, questions .. " questions")
  end)

  it("lists them also while their leaders write", function()
    wire:make_bucket("BUSY", 60)
    local leaders = assert(Connection.open({}, { host = "127.0.0.1", port = server.port }, 5))
    for i = 1, 32 do
      crown.spawn(function()
        while leaders:request(("$KV.BUSY.e%d"):format(i % 4), nil, "one", 5) do end
      end)
    end
    local listed, ended = 0, false
    crown.spawn(function()
      for _ = 1, 100 do listed = listed + #kv.list { url = server.url .. "/BUSY" } end
      ended = true
    end)
    local is_over = pcall(eventually, function() return ended end, 20)
    leaders:close()
    assert.is_true(is_over)
    assert.equal(100 * 4, listed)
  end)

  it("puts those off that find no room where very many claim, and has asked nothing for them", function()
    local first = candidate "one"
    first:win()
    local found, ended = { denied = 0, unknown = 0 }, 0
    server:freeze()
    for i = 1, 300 do
      local one = Player.new(kv, { name = ("crowd-%d-%d"):format(serial, i), node = "one", url = server.url .. "/ELECTIONS",
        amnesia_wait = 0, timeout = 4 })
      crown.spawn(function()
        local verdict = one:claim()
        found[verdict[1]], ended = found[verdict[1]] + 1, ended + 1
        if verdict[1] == "denied" then assert(verdict[6] >= 1, "it comes again in a while") end
      end)
    end
    eventually(function() return ended == 300 end, 20)
    server:thaw()
    assert.equal(300, found.denied + found.unknown)
    assert.is_true(found.unknown == 256 or found.unknown == 255, found.unknown) -- the first one may have a question under way
  end)

  it("has won only when it has written over its own value: a cluster may let two write over one", function()
    local one = candidate "one"
    local looks, key = one.state.bucket.looks, "e-" .. serial
    local known = assert(one.state.bucket:fit())
    known.replicas = 3
    finally(function() known.replicas = 1 end)
    one.state.heard = function() end -- the watch is late
    one.state.bucket.looks = { ask = function(_, ...) -- between the win and the next write
      assert(wire:campaign("ELECTIONS", key, "another", one.state.bucket:get(key).revision))
      return looks:ask(...)
    end }
    local verdict = one:claim()
    one.state.bucket.looks = looks
    assert.equal("denied", verdict[1])
    assert.equal("another", one.state.bucket:get(key).data)
    assert.are_not.equal("granted", one:refresh()[1])
  end)

  it("writes over its own value while it looks at its bucket, where one server keeps that", function()
    local one = candidate "one"
    local bucket, puts = one.state.bucket, 0
    local looks, put = bucket.looks, bucket.put
    function bucket.put(...)
      puts = puts + 1
      return put(...)
    end
    assert(bucket:fit())
    bucket.looks = { ask = function(_, ...)
      eventually(function() return puts == 2 end)
      return looks:ask(...)
    end }
    finally(function() bucket.looks, bucket.put = looks, nil end)
    assert.equal("granted", one:claim()[1])
  end)

  it("hands over at once on abdicate, by the watch", function()
    local one, two = candidate "one", candidate "two"
    local epoch = one:claim()[4]
    local denied = two:claim()
    assert.same({ "denied", "one" }, { denied[1], denied[3] })
    caught_up(two)
    while two:message() do end
    one:abdicate()
    eventually(function() return two:message() == "freed" end)
    assert.is_true(two:call("handle_info", "freed")[4] > epoch)
  end)

  -- Questions for the value of the election's key, while fn runs.
  local function looks_at_the_key(fn)
    local looks = 0
    local listener = assert(Connection.open({}, { host = "127.0.0.1", port = server.port }, 5))
    listener:subscribe("$JS.API.STREAM.MSG.GET.KV_ELECTIONS", function(message)
      if message:data():find('"$KV.ELECTIONS.e-' .. serial .. '"', 1, true) then looks = looks + 1 end
    end)
    assert(listener:prove(5))
    fn()
    assert(listener:prove(5))
    listener:close()
    return looks
  end

  -- One leads, another one follows and has heard of it.
  local function leader_and_follower()
    local one, two = candidate "one", candidate "two"
    one:win()
    assert.equal("denied", two:claim()[1])
    caught_up(two)
    while two:message() do end
    return one, two
  end

  it("hands over without a look at the key, which both know", function()
    local one, two = leader_and_follower()
    assert.equal(0, looks_at_the_key(function()
      one:abdicate()
      eventually(function() return two:message() == "freed" end)
      assert.equal("granted", two:call("handle_info", "freed")[1])
    end))
  end)

  it("writes over no value by a mark that it has heard of: not where somebody was sooner, nor on another connection", function()
    local one, two = leader_and_follower()
    one:abdicate()
    eventually(function() return two:message() == "freed" end)
    two.state.heard = function() end -- nothing of what comes now
    local epoch = candidate("three"):win()[4]
    assert.equal("denied", two:claim()[1])
    local last = two.state.bucket:get("e-" .. serial)
    assert.same({ "three", epoch }, { last.data, tonumber(last.headers["crown-epoch"]) })
    two.state.heard = nil
    assert.equal(1, looks_at_the_key(function()
      players[3]:abdicate()
      eventually(function() return two:message() == "freed" end)
      two.state.mark.connection = {}
      assert.equal("granted", two:call("handle_info", "freed")[1])
    end))
  end)

  it("contends with Choria's campaigners, and neither leads while the other does", function()
    local one = candidate "one"
    local key = "e-" .. serial
    local theirs = assert(wire:campaign("ELECTIONS", key, "choria-host", 0))
    local denied = one:claim()
    assert.same({ "denied", "choria-host" }, { denied[1], denied[3] })
    theirs = assert(wire:campaign("ELECTIONS", key, "choria-host", theirs))
    assert.equal("denied", one:claim()[1])
    eventually(function() return one:claim()[1] == "granted" end, 10)
    assert.is_nil(wire:campaign("ELECTIONS", key, "choria-host", theirs))
    assert.is_nil(wire:campaign("ELECTIONS", key, "choria-host", 0))
    assert.equal("granted", one:refresh()[1])
    one:abdicate()
    assert.is_true(one.state.bucket:get(key).gone)
  end)

  it("stands down at once when its key is deleted, as by choria election evict", function()
    local one = candidate "one"
    one:claim()
    caught_up(one)
    wire:ask("$KV.ELECTIONS.e-" .. serial, "KV-Operation: DEL", "")
    eventually(function() return one:message() == "check" end)
    assert.equal("denied", one:call("handle_info", "check")[1])
  end)

  it("does not take a refused write of somebody else's for a change of the key", function()
    local one = candidate "one"
    one:claim()
    caught_up(one)
    while one:message() do end
    for _ = 1, 3 do assert.is_nil(wire:campaign("ELECTIONS", "e-" .. serial, "other", 0)) end
    caught_up(one)
    assert.is_nil(one:message())
  end)

  it("goes on with an update whose answer was lost", function()
    local one = candidate "one"
    local epoch = one:claim()[4]
    one.state.bucket:put("e-" .. serial, "one", ("Crown-Token: %s\r\nCrown-Epoch: %d\r\n"):format(one.state.token, epoch),
      one.state.revision) -- written, but never heard of
    assert.equal("unknown", one:refresh()[1])
    assert.same({ "granted", epoch }, { one:refresh()[1], one:refresh()[4] })
  end)

  it("has lost its lease when another claim of its own name has won since", function()
    local one = candidate("one", { token = "same-" .. serial })
    one:claim()
    assert.equal("granted", candidate("one", { token = "same-" .. serial }):claim()[1])
    assert.equal("denied", one:refresh()[1])
  end)

  it("asks for the cool-down that it is told, keeps the key meanwhile, and says there how long it takes", function()
    local one = candidate("one", { cool_down = 60 })
    local verdict = one:win()
    assert.equal(60, verdict[COOL_DOWN])
    assert.equal("denied", candidate("two"):claim()[1])
    local function said()
      return tonumber(one.state.bucket:get("e-" .. serial).headers["crown-acts-in"])
    end
    local first = said()
    assert.is_true(first > 30 and first <= 60, first)
    local refreshed = one:refresh()
    assert.same({ "granted", verdict[4], nil }, { refreshed[1], refreshed[4], refreshed[COOL_DOWN] })
    assert.is_true(said() < first)
    one:abdicate()
    one.state.cool_down = 0
    assert.equal(0, one:win()[COOL_DOWN])
    assert.is_nil(said())
  end)

  -- Choria's leader hears of its loss at its next campaign, which goes by the bucket's TTL.
  it("asks in Choria's bucket for an interval of Choria's, whatever ttl and refresh are here, and elsewhere for none", function()
    local other = Nats.start()
    finally(function() other:destroy() end)
    local url = other.url .. "/CHORIA_LEADER_ELECTION"
    for _, options in ipairs { { ttl = 2 }, {}, { ttl = 9, refresh = 0.2 } } do -- the first one makes the bucket
      options.url, options.name, options.amnesia_wait, options.trust_empty = url, "cooling", 0, true
      local one = Player.new(kv, options)
      assert.equal(1.5, one:win()[COOL_DOWN])
      one:abdicate()
    end
    assert.equal(0, candidate("one"):win()[COOL_DOWN])
  end)

  -- As one that is between the two writes of its win then, or whose connection is being made anew.
  it("asks a leader to go again, who did not hear of it the first time", function()
    local one, missed = candidate "one", 0
    one:win()
    local heard = one.state.heard
    one.state.heard = function(state, what, ...)
      if what == "evict" and missed == 0 then
        missed = 1
        return
      end
      heard(state, what, ...)
    end
    crown.spawn(function()
      eventually(function()
        one:refresh()
        return one:message() == "evict"
      end, 20)
      one:abdicate()
    end)
    local result = run { "evict", "--oracle", server.url .. "/ELECTIONS", "--force", "--wait", "5", "e-" .. serial }
    assert.same({ 1, 0 }, { missed, result.code }, result.stderr)
  end)

  it("evicts, lists and describes the bucket, from the command line", function()
    local one, evicted = candidate "one", nil
    local epoch = one:claim()[4]
    crown.spawn(function() -- keeps its lease until it is asked to go
      repeat
        one:refresh()
        crown.sleep(0.1)
        evicted = one:message() == "evict"
      until evicted
      assert.equal("evicted", one:call("handle_info", "evict")[1])
      one:abdicate()
    end)
    local info = json.decode(run({ "info", "--oracle", server.url .. "/ELECTIONS?ttl=600", "--json", "^e-" .. serial .. "$" })
      .stdout)
    assert.same({ "one", epoch }, { info.elections[1].node, info.elections[1].epoch })
    assert.same({ "ELECTIONS", "file", "4 s" }, { info.store.bucket, info.store.storage, info.store.max_time })
    local warnings = table.concat(info.warnings, "\n")
    assert.matches("TTL is 4 s", warnings)
    assert.is_nil(warnings:find("600 s", 1, true)) -- the URL's is that of a bucket that is made
    local result = run { "evict", "--oracle", server.url .. "/ELECTIONS", "--force", "--wait", "3", "e-" .. serial }
    assert.equal(0, result.code, result.stderr)
    assert.matches("evicted one from", result.stdout)
    assert.is_true(evicted)
  end)

  it("refuses a bucket that keeps history, that drops or refuses values, or whose TTL suits no election", function()
    wire:make_bucket("HISTORY", 60, { max_msgs_per_subject = 5 })
    wire:make_bucket("LONG", 7200)
    wire:make_bucket("BYTES", 60, { discard = "old", max_bytes = 10000 })
    wire:make_bucket("COUNT", 60, { discard = "old", max_msgs = 10 })
    wire:make_bucket("INTEREST", 60, { retention = "interest" })
    wire:make_bucket("ONCE", 60, { discard_new_per_subject = true })
    wire:make_bucket("NO_ACK", 60, { no_ack = true })
    wire:make_bucket("SEALED", 60)
    wire:make_bucket("SEALED", 60, { verb = "UPDATE", sealed = true })
    assert.is_nil(wire:ask("$JS.API.STREAM.CREATE.KV_MIRROR", nil, crown.json.encode { name = "KV_MIRROR", storage = "file",
      max_msgs_per_subject = 1, max_age = 60e9, num_replicas = 1, retention = "limits", discard = "new", max_msgs = -1,
      max_bytes = -1, mirror = { name = "KV_INTEREST" } }).error)
    for bucket, pattern in pairs { HISTORY = "keeps history", LONG = "bucket LONG has a TTL of 7200 s",
      BYTES = "bucket BYTES drops old values when it is full", COUNT = "bucket COUNT drops old values when it is full",
      INTEREST = "bucket INTEREST drops values .retention interest.",
      ONCE = "bucket ONCE refuses to write over a value .discard_new_per_subject.",
      NO_ACK = "bucket NO_ACK acknowledges no write .no_ack.", SEALED = "bucket SEALED takes no writes .sealed.",
      MIRROR = "bucket MIRROR takes no writes .it is a mirror." } do
      local verdict = candidate("one", { url = server.url .. "/" .. bucket }):claim()
      assert.equal("unknown", verdict[1])
      assert.matches(pattern, verdict[2])
      local written = wire:ask("$JS.API.STREAM.MSG.GET.KV_" .. bucket, nil, ('{"last_by_subj":"$KV.%s.e-%d"}'):format(bucket, serial))
      assert.equal("no message found", written.error.description)
      local told = run({ "info", "--oracle", server.url .. "/" .. bucket }).stdout
      local warned = told:find("Warning    nobody can claim: [^\n]*" .. pattern)
      assert.truthy(warned or bucket == "MIRROR", told) -- which cannot be listed
    end
  end)

  it("takes a bucket that refuses values when it is full, and one without limits that would drop them", function()
    wire:make_bucket("REFUSES", 60, { max_bytes = 100000, max_msgs = 1000 })
    wire:make_bucket("BOUNDLESS", 60, { discard = "old" })
    for _, bucket in ipairs { "REFUSES", "BOUNDLESS" } do
      local verdict = candidate("one", { url = server.url .. "/" .. bucket }):claim()
      assert.same({ "denied", true }, { verdict[1], verdict[5] }) -- it is young
    end
  end)

  it("makes a bucket that is missing, and sits it out for one TTL", function()
    local one = candidate("one", { url = server.url .. "/MADE", ttl = 1 })
    local at, verdict = crown.now(), one:claim()
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[5])
    eventually(function() return one:claim()[1] == "granted" end)
    assert.is_true(crown.now() - at >= 0.9)
  end)

  it("makes Choria's bucket as Choria does: a minute's TTL, where none is given", function()
    local one = candidate("one", { url = server.url })
    assert.equal("denied", one:claim()[1])
    local made = one.state.bucket:info()
    assert.same({ "CHORIA_LEADER_ELECTION", 60, 1 }, { one.state.bucket.name, made.ttl, made.replicas })
    assert.matches("as many replicas as the cluster then has servers", kv.warnings(one.state)[1])
    local given = candidate("two", { url = server.url .. "/CHORIA_LEADER_ELECTION", replicas = 1 })
    assert.matches("60 s and 1 replica;", kv.warnings(given.state)[1])
    assert.same({}, kv.warnings(candidate("two").state))
    assert.same({ 60, 45, 45 }, { kv.timing { url = server.url .. "?replicas=1" } })
    assert.same({ 10, 7.5, 0 }, { kv.timing { url = server.url .. "/MINE" } })
    assert.same({ 20, 15, 15 }, { kv.timing { url = server.url, ttl = 20 } })
    assert.equal(3, select(3, kv.timing { url = server.url, cool_down = "3" }))
  end)
end)
