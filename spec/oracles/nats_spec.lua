local authority = require "support.authority"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local json = crown.json
local kv = require "crown.oracles.nats_kv"
local Nats = require "support.nats"
local Player = require "support.oracle_candidate"
local port = require "support.port"
local run = require "support.run"
local tempdir = require "support.tempdir"

-- An independent client: the protocol by hand, one question at a time.
local Wire = {}
Wire.__index = Wire

function Wire.open(number, connect)
  local self = setmetatable({ connection = assert(crown.tcp.connect("127.0.0.1", number)) }, Wire)
  assert(self.connection:read "*l")
  self.connection:write(("CONNECT %s\r\nSUB answers 1\r\nPING\r\n"):format(connect or '{"verbose":false,"headers":true}'))
  repeat until self.connection:read "*l" == "PONG\r"
  return self
end

-- @return the answer's JSON
function Wire:ask(subject, head, data)
  local block = head and "NATS/1.0\r\n" .. head .. "\r\n\r\n" or ""
  self.connection:write(block ~= "" and ("HPUB %s answers %d %d\r\n%s%s\r\n"):format(subject, #block, #block + #data, block, data)
    or ("PUB %s answers %d\r\n%s\r\n"):format(subject, #data, data))
  while true do
    local line = assert(self.connection:read "*l")
    local size = line:match "^MSG answers 1%s+(%d+)\r$"
    if size then return json.decode((self.connection:read(tonumber(size) + 2))) end
  end
end

-- Choria's campaigner: creates when there is no value, updates at the last revision.
function Wire:campaign(bucket, key, name, revision)
  local answer = self:ask(("$KV.%s.%s"):format(bucket, key), ("Nats-Expected-Last-Subject-Sequence: %d"):format(revision), name)
  return not answer.error and answer.seq or nil
end

local serial = 0

local function make_bucket(wire, name, seconds, more)
  local config = { name = "KV_" .. name, subjects = { "$KV." .. name .. ".>" }, max_msgs_per_subject = 1, discard = "new",
    max_age = seconds * 1e9, storage = "file", num_replicas = 1, retention = "limits", max_consumers = -1, max_msgs = -1,
    max_bytes = -1, max_msg_size = -1, allow_rollup_hdrs = true }
  for key, value in pairs(more or {}) do config[key] = value end
  assert(not wire:ask("$JS.API.STREAM.CREATE.KV_" .. name, nil, json.encode(config)).error)
end

describe("the oracle on a NATS bucket", function()
  local server, wire, players

  setup(function()
    server = Nats.start()
    wire = Wire.open(server.port)
    make_bucket(wire, "ELECTIONS", 2)
    local first = Player.new(kv, { name = "first", node = "one", url = server.url .. "/ELECTIONS" })
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
    local given = { name = "e-" .. serial, node = node, url = server.url .. "/ELECTIONS" }
    for key, value in pairs(options or {}) do given[key] = value end
    players[#players + 1] = Player.new(kv, given)
    return players[#players]
  end

  -- Waits until a candidate has heard of all that was written so far: a stream delivers in order.
  local function caught_up(one)
    local key, heard = ("fence-%d"):format(math.random(1e9)), false
    one.state.bucket:join(key, function() heard = true end)
    assert(wire:campaign("ELECTIONS", key, "spec", 0))
    eventually(function() return heard end)
  end

  it("leads by the bucket's TTL, campaigns at three quarters of it, in the revision of its win as epoch", function()
    local one = candidate("one", { ttl = 60 })
    local verdict = one:claim()
    assert.same({ "granted", 1.5, 2 }, { verdict[1], verdict[2], verdict[3] })
    local epoch = verdict[4]
    assert.equal(epoch, one:refresh()[4])
    local last = one.state.bucket:get("e-" .. serial)
    assert.same({ "one", tostring(epoch) }, { last.data, last.headers["crown-epoch"] })
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

  it("contends with Choria's campaigners, and neither leads while the other does", function()
    local one = candidate "one"
    local key = "e-" .. serial
    local theirs = assert(wire:campaign("ELECTIONS", key, "choria-host", 0))
    local denied = one:claim()
    assert.same({ "denied", "choria-host" }, { denied[1], denied[3] })
    theirs = assert(wire:campaign("ELECTIONS", key, "choria-host", theirs))
    assert.equal("denied", one:claim()[1])
    eventually(function() return one:claim()[1] == "granted" end, 5)
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
    one.state.bucket:put("e-" .. serial, "one", { ["Crown-Token"] = one.state.token, ["Crown-Epoch"] = tostring(epoch) },
      one.state.revision) -- written, but never heard of
    assert.equal("unknown", one:refresh()[1])
    assert.same({ "granted", epoch }, { one:refresh()[1], one:refresh()[4] })
  end)

  it("cools down in a bucket that is shared with Choria, before it acts", function()
    local one = candidate("one", { cool_down = 0.6 })
    local at = crown.now()
    local verdict = one:claim()
    assert.equal("denied", verdict[1])
    assert.equal("denied", candidate("two"):claim()[1])
    eventually(function() verdict = one:claim() return verdict[1] == "granted" end)
    assert.is_true(crown.now() - at >= 0.6)
  end)

  it("has backoff policies for standby candidates", function()
    local one, two = candidate "one", candidate("two", { backoff = "five_sec" })
    one:claim()
    assert.equal(0.5, two:claim()[6])
    assert.equal(0.7, two:claim()[6])
  end)

  it("evicts, lists and describes the bucket, from the command line", function()
    local one = candidate "one"
    local epoch = one:claim()[4]
    local info = json.decode(run({ "info", "--oracle", server.url .. "/ELECTIONS", "--json", "^e-" .. serial .. "$" }).stdout)
    assert.same({ "one", epoch }, { info.elections[1].node, info.elections[1].epoch })
    assert.same({ "ELECTIONS", "file", "2 s" }, { info.store.bucket, info.store.storage, info.store.max_time })
    assert.matches("TTL is 2 s", table.concat(info.warnings, "\n"))
    crown.spawn(function()
      for _ = 1, 20 do
        if one:message() == "evict" then break end
        one:refresh()
        crown.sleep(0.1)
      end
      assert.equal("evicted", one:call("handle_info", "evict")[1])
      one:abdicate()
    end)
    local result = run { "evict", "--oracle", server.url .. "/ELECTIONS", "--force", "--wait", "3", "e-" .. serial }
    assert.equal(0, result.code, result.stderr)
    assert.matches("evicted one from", result.stdout)
  end)

  it("refuses a bucket that keeps history, and one whose TTL suits no election", function()
    make_bucket(wire, "HISTORY", 60, { max_msgs_per_subject = 5 })
    make_bucket(wire, "LONG", 7200)
    for bucket, pattern in pairs { HISTORY = "keeps history", LONG = "TTL of the bucket LONG is 7200 s" } do
      local verdict = candidate("one", { url = server.url .. "/" .. bucket }):claim()
      assert.equal("unknown", verdict[1])
      assert.matches(pattern, verdict[2])
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

  it("counts a server that does not answer as not known, within the time-out", function()
    candidate("one", { timeout = 0.3 }):outlasts(server)
  end)
end)

describe("a NATS server", function()
  local server

  after_each(function()
    if server then server:destroy() end
    server = nil
  end)

  local function ask(url)
    return Player.new(kv, { name = "x", node = "one", url = url, ttl = 2, timeout = 1 }):claim()
  end

  local function let_in(url) -- far enough to be told to wait for a new bucket
    local verdict = ask(url)
    assert.same({ "denied", true }, { verdict[1], verdict[5] }, verdict[2])
  end

  local function refused(url, pattern)
    local verdict = ask(url)
    assert.equal("unknown", verdict[1])
    assert.matches(pattern, verdict[2])
    assert.is_nil(verdict[2]:find "secret")
  end

  it("asks for user and password", function()
    server = Nats.start { config = "authorization { user: joe, password: secret }" }
    let_in(("nats://joe:secret@127.0.0.1:%d/B"):format(server.port))
    refused(("nats://joe:secret-not@127.0.0.1:%d/B"):format(server.port), "Authorization Violation")
    refused(server.url .. "/B", "Authorization Violation")
  end)

  it("asks for a token", function()
    server = Nats.start { config = "authorization { token: secret }" }
    let_in(("nats://secret@127.0.0.1:%d/B"):format(server.port))
    refused(("nats://wrong@127.0.0.1:%d/B"):format(server.port), "Authorization Violation")
  end)

  it("asks for a signature with an nkey", function()
    -- The example of the nkeys documentation: a user's seed and its public key.
    local seed = tempdir() .. "/seed"
    local file = assert(io.open(seed, "w"))
    file:write "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n"
    file:close()
    server = Nats.start { config =
      "authorization { users = [ { nkey: UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4 } ] }" }
    let_in(server.url .. "/B?nkey=" .. seed)
    refused(server.url .. "/B?nkey=/no/such/file", "nkey: ")
    refused(server.url .. "/B", "Authorization Violation")
  end)

  it("is reached by TLS, with a certificate that is checked", function()
    local dir = authority()
    server = Nats.start { config = ("tls { cert_file: %s/s.crt, key_file: %s/s.key, ca_file: %s/ca.crt, verify: true }")
      :format(dir, dir, dir) }
    local at = ("127.0.0.1:%d/B?cert=%s/s.crt&key=%s/s.key&ca=%s/"):format(server.port, dir, dir, dir)
    let_in("tls://" .. at .. "ca.crt")
    let_in("nats://" .. at .. "ca.crt") -- the server asks for it
    refused("tls://" .. at .. "other.crt", "certificate")
  end)

  it("may be a cluster of three: a lease rides out the loss of the stream's leader", function()
    local servers = Nats.cluster(3)
    local hosts = {}
    for i, one in ipairs(servers) do hosts[i] = "127.0.0.1:" .. one.port end
    local url = "nats://" .. table.concat(hosts, ",") .. "/B"
    local options = { name = "x", node = "one", url = url, ttl = 20, refresh = 2, timeout = 1, replicas = 3 }
    local one = Player.new(kv, options)
    eventually(function() return one:claim()[5] end, 20) -- the cluster forms; the bucket is new
    one.state.bucket.trust.since = nil -- a TTL of 20 s is not what this is about
    local verdict
    eventually(function() verdict = one:claim() return verdict[1] == "granted" end, 10)
    local epoch = verdict[4]
    local leader = one.state.bucket:info().leader
    for _, each in ipairs(servers) do
      if each.name == leader then each:down() end
    end
    local seen = {}
    eventually(function()
      verdict = one:refresh()
      seen[verdict[1]] = true
      return verdict[1] == "granted"
    end, 18)
    assert.equal(epoch, verdict[4])
    assert.is_nil(seen.denied)
    for _, each in ipairs(servers) do each:destroy() end
  end)

  it("is one of several: another one is asked when one does not answer", function()
    server = Nats.start()
    let_in(("nats://127.0.0.1:1,127.0.0.1:%d/B"):format(server.port))
  end)

  -- A bucket that has been there for a while, with a leader and a follower who knows it.
  local function settled(name)
    server = Nats.start()
    local wire = Wire.open(server.port)
    make_bucket(wire, name, 2)
    local function member(node, more)
      local given = { name = "x", node = node, url = ("%s/%s"):format(server.url, name), ttl = 2, timeout = 1 }
      for key, value in pairs(more or {}) do given[key] = value end
      return Player.new(kv, given)
    end
    local one, two = member "one", member "two"
    local verdict
    eventually(function() verdict = one:claim() return verdict[1] == "granted" end, 10)
    eventually(function() return two:claim()[1] == "denied" end)
    return one, two, verdict[4], wire
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
    make_bucket(wire, "AGAIN", 2)
    is_sat_out(two)
  end)

  it("is sat out when it has lost its last writes, as one sees who was there before (R12)", function()
    server = Nats.start()
    local wire = Wire.open(server.port)
    make_bucket(wire, "TAIL", 2)
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

  it("is noticed to be silent within a part of the TTL", function()
    local one = settled "SILENT"
    local connection = one.state.bucket.link.connection
    server:freeze()
    local at = crown.now()
    eventually(function() return connection.closed end, 9)
    assert.is_true(crown.now() - at < 8) -- a ping comes within two seconds, and is waited for for one
    server:thaw()
  end)

  it("is campaigned in after the splay, also one that is longer than a call may take", function()
    local given = { name = "splayed", node = "one", url = settled "SPLAY" and server.url .. "/SPLAY", ttl = 2 }
    given.splay = 3600
    local at, verdict = crown.now(), Player.new(kv, given):claim()
    assert.is_true(crown.now() - at < 5)
    assert.equal("denied", verdict[1])
    assert.is_true(verdict[6] > 0 and verdict[6] <= 3600)
    given.splay = 0.2
    local soon = Player.new(kv, given)
    eventually(function() return soon:claim()[1] == "granted" end)
  end)

  it("is campaigned in at the user's pace by a standby candidate", function()
    local one = settled "PACE"
    local paced = Player.new(kv, { name = "x", node = "three", url = server.url .. "/PACE", backoff = { 0.2, 0.4 } })
    for _, wait in ipairs { 0.2, 0.4, 0.4 } do
      assert.equal("granted", one:refresh()[1])
      local verdict = paced:claim()
      assert.equal("denied", verdict[1])
      assert.is_nil(verdict[2])
      assert.equal(wait, verdict[6])
    end
  end)

  it("lets a leader be evicted whose name has dots", function()
    settled "DOTS"
    local one = Player.new(kv, { name = "a.b.c", node = "one", url = server.url .. "/DOTS" })
    local epoch, evicted, verdict = one:claim()[4], nil, nil
    crown.spawn(function() evicted = kv.evict({ url = server.url .. "/DOTS", wait = 3 }, "a.b.c") end)
    eventually(function()
      local message = one:message()
      verdict = message and one:call("handle_info", message)
      return verdict and verdict[1] == "evicted"
    end)
    one:abdicate()
    eventually(function() return evicted end)
    assert.same({ node = "one", epoch = epoch }, evicted)
  end)

  it("that lost its data is sat out for one TTL", function()
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

  it("may say anything, and does no harm", function()
    math.randomseed(11)
    local alphabet = {
      "MSG", "HMSG", "INFO {}", "PING", "PONG", "-ERR 'x'", "+OK", " ", "\r\n", "1", "0", "99", "-1", "a", "\0", "_INBOX.x" }
    for _ = 1, 60 do
      local parts = { "INFO {}\r\n" }
      for i = 2, math.random(2, 30) do parts[i] = alphabet[math.random(#alphabet)] end
      local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
        connection:write(table.concat(parts))
        connection:close()
      end))
      local Connection = require "crown.nats.connection"
      local connection, problem = Connection.open({ hosts = {} }, { host = "127.0.0.1", port = listener:port() }, 0.5)
      assert.is_true(connection ~= nil or type(problem) == "string")
      if connection then connection:close() end
      listener:close()
    end
  end)

  it("without JetStream is no store", function()
    local number, dir = port.free(), tempdir()
    local plain = require("support.candidate").start { program = "/usr/sbin/nats-server", node = "nats", log = dir .. "/log",
      args = { "-a", "127.0.0.1", "-p", number } }
    eventually(function() return plain:output():find "Server is ready" end)
    refused(("nats://127.0.0.1:%d/B"):format(number), "is JetStream on%?")
    plain:hurt_self "KILL"
    plain:wait(5)
  end)

  it("that says nonsense ends the connection, with one clear line", function()
    for _, text in ipairs { "HTTP/1.1 400 Bad Request\r\n\r\n", "INFO {}\r\nMSG x 1 99999999999\r\n", "INFO x\r\n",
      "INFO {}\r\nHMSG a 1 50 10\r\n" } do
      local listener = assert(crown.tcp.listen("127.0.0.1", 0, function(connection)
        connection:write(text)
        connection:read("*a", 1)
      end))
      refused(("nats://joe:secret@127.0.0.1:%d/B"):format(listener:port()), "NATS")
      listener:close()
    end
  end)

  for url, pattern in pairs { ["nats://a b:x/B"] = "a host that is none", ["nats://h/B?ttl=0.5"] = "ttl must be at least 1" } do
    it("is not asked for by a wrong URL: " .. url, function()
      local result = run { "info", "--oracle", url }
      assert.is_true(result.code == 2 or result.code == 3)
      assert.matches(pattern, result.stderr)
    end)
  end
end)
