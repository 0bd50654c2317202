-- The kinds of NATS servers that a bucket can be on, what they may say, and how a bucket is campaigned in.
local authority = require "support.authority"
local Connection = require "crown.nats.connection"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local kv = require "crown.oracles.nats_kv"
local Nats = require "support.nats"
local own_servers = require "support.own_servers"
local Player = require "support.oracle_candidate"
local port = require "support.port"
local run = require "support.run"
local tempdir = require "support.tempdir"
local Wire = require "support.nats_wire"
local within = require("support.stillness").within

describe("a NATS server", function()
  local server
  local start, destroy = own_servers(Nats.start)

  after_each(destroy)

  local function ask(url)
    return Player.new(kv, { name = "x", node = "one", url = url, ttl = 2 }):claim()
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

  local function settled(name)
    server = start()
    return Wire.settled(server, name)
  end

  it("asks for user and password", function()
    server = start { config = "authorization { user: joe, password: secret }" }
    let_in(("nats://joe:secret@127.0.0.1:%d/B"):format(server.port))
    refused(("nats://joe:secret-not@127.0.0.1:%d/B"):format(server.port), "Authorization Violation")
    refused(server.url .. "/B", "Authorization Violation")
  end)

  it("asks for a token", function()
    server = start { config = "authorization { token: secret }" }
    let_in(("nats://secret@127.0.0.1:%d/B"):format(server.port))
    refused(("nats://wrong@127.0.0.1:%d/B"):format(server.port), "Authorization Violation")
  end)

  it("asks for a signature with an nkey", function()
    -- The example of the nkeys documentation: a user's seed and its public key.
    local seed = tempdir() .. "/seed"
    local file = assert(io.open(seed, "w"))
    file:write "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n"
    file:close()
    server = start { config =
      "authorization { users = [ { nkey: UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4 } ] }" }
    let_in(server.url .. "/B?nkey=" .. seed)
    local fine, problem = pcall(ask, server.url .. "/B?nkey=/no/such/file")
    assert.is_false(fine)
    assert.matches("nkey: ", tostring(problem))
    refused(server.url .. "/B", "Authorization Violation")
  end)

  it("may deny a subject: who asks there is told, and all others on the connection go on", function()
    server = start { config =
      "authorization { users = [ { user: joe, password: secret, permissions: { publish: { deny: [\"no.>\"] } } } ] }" }
    local link = { hosts = {}, user = "joe", password = "secret" }
    local connection = assert(Connection.open(link, { host = "127.0.0.1", port = server.port }, 20))
    finally(function() connection:close() end)
    local _, problem = connection:request("no.way", nil, "", 1)
    assert.matches("Permissions Violation for Publish to \"no.way\"", problem, 1, true)
    local answer = connection:request("$JS.API.INFO", nil, "", 20)
    assert.is_table(crown.json.decode(answer))
  end)

  it("is reached by TLS, with a certificate that is checked", function()
    local dir = authority()
    server = start { config = ("tls { cert_file: %s/s.crt, key_file: %s/s.key, ca_file: %s/ca.crt, verify: true }")
      :format(dir, dir, dir) }
    local at = ("127.0.0.1:%d/B?cert=%s/s.crt&key=%s/s.key&ca=%s/"):format(server.port, dir, dir, dir)
    let_in("tls://" .. at .. "ca.crt")
    let_in("nats://" .. at .. "ca.crt") -- the server asks for it
    refused("tls://" .. at .. "other.crt", "certificate")
    local plain = start()
    for _, option in ipairs { "ca=" .. dir .. "/ca.crt", "server_name=other", "insecure=true" } do
      refused(("%s/B?%s"):format(plain.url, option), option:match "^[^=]*" .. " has no effect without TLS.-tls://")
    end
  end)

  it("may be a cluster of three: a lease rides out the loss of the stream's leader", function()
    local servers = Nats.cluster(3)
    local hosts = {}
    for i, one in ipairs(servers) do hosts[i] = "127.0.0.1:" .. one.port end
    local url = "nats://" .. table.concat(hosts, ",") .. "/B"
    local options = { name = "x", node = "one", url = url, ttl = 20, refresh = 2, timeout = 1, replicas = 3, amnesia_wait = 0 }
    local one = Player.new(kv, options)
    eventually(function() return one:claim()[5] end, 20) -- the cluster forms; the bucket is new
    one.state.bucket.trust.since = nil -- a TTL of 20 s is not what this is about
    local verdict
    eventually(function() verdict = one:claim() return verdict[1] == "granted" end, 10)
    local epoch = verdict[4]
    local leader = one.state.bucket:info().leader
    assert.matches(("Replicas   3: %s %%(leader%%), n%%d, n%%d\n"):format(leader), run({ "info", "--oracle", url }).stdout)
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
    eventually(function()
      local told = table.concat(crown.json.decode(run({ "info", "--oracle", url, "--json" }).stdout).warnings, "\n")
      return told:find("replica " .. leader .. " is", 1, true)
    end, 20)
    for _, each in ipairs(servers) do each:destroy() end
  end)

  -- Choria's broker makes it so.
  it("keeps Choria's bucket, where it has to be made, on every server of its cluster", function()
    local servers = Nats.cluster(3)
    local hosts = {}
    for i, one in ipairs(servers) do hosts[i] = "127.0.0.1:" .. one.port end
    local url = "nats://" .. table.concat(hosts, ",")
    local options = { name = "x", node = "one", url = url .. "/B", ttl = 20, timeout = 2, replicas = 3, amnesia_wait = 0 }
    local other = Player.new(kv, options)
    eventually(function() return other:claim()[5] end, 20) -- all three servers have met
    local one = Player.new(kv, { name = "x", node = "one", url = url, timeout = 5 })
    eventually(function() return one:claim()[5] end, 20)
    local made = one.state.bucket:info()
    assert.same({ 3, 60 }, { made.replicas, made.ttl })
    for _, each in ipairs(servers) do each:destroy() end
  end)

  it("is one of several: another one is asked when one does not answer", function()
    server = start()
    let_in(("nats://127.0.0.1:1,127.0.0.1:%d/B"):format(server.port))
  end)

  it("is noticed to be silent within a part of the TTL", function()
    local one = settled "SILENT"
    local connection = one.state.bucket.link.connection
    server:freeze()
    -- A ping comes within two seconds, and is waited for for one.
    within(8, function() eventually(function() return connection.closed end, 9) end)
    server:thaw()
  end)

  -- A watch that stops is told from one with nothing to tell by its signs of life, of which three have to be missed.
  it("is watched anew when it has dropped the watch", function()
    local one, two, _, wire = settled "DROPPED"
    local watches = wire:ask("$JS.API.CONSUMER.NAMES.KV_DROPPED", nil, "").consumers
    for _, name in ipairs(watches) do wire:ask("$JS.API.CONSUMER.DELETE.KV_DROPPED." .. name, nil, "") end
    assert.is_true(#watches > 0)
    while two:message() do end
    one:abdicate()
    eventually(function() return two:message() == "freed" end, 30)
  end)

  it("lets a leader be evicted whose name has dots", function()
    settled "DOTS"
    local one = Player.new(kv, { name = "a.b.c", node = "one", url = server.url .. "/DOTS", amnesia_wait = 0 })
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
      local connection, problem = Connection.open({ hosts = {} }, { host = "127.0.0.1", port = listener:port() }, 0.5)
      assert.is_true(connection ~= nil or type(problem) == "string")
      if connection then connection:close() end
      listener:close()
    end
  end)

  it("may keep a bucket that does not take the key: that is said, and not that nobody answers", function()
    server = start()
    local wire = Wire.open(server.port)
    wire:make_bucket("S", 2, { subjects = { "$KV.S.other" } })
    local one = Player.new(kv, { name = "x", node = "one", url = server.url .. "/S", amnesia_wait = 0 })
    local verdict
    eventually(function() verdict = one:claim() return verdict[1] == "unknown" end, 10)
    assert.matches("the bucket S does not take $KV.S.x: its subjects are $KV.S.other", verdict[2], 1, true)
    wire.connection:close()
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

  it("is asked for no key that is no subject: it would close the connection, which others share", function()
    server = start()
    local no_key, no_lock = "no key of a NATS bucket", "oracle 'nats_kv': lock "
    for key, words in pairs { [""] = no_lock, ["a b"] = no_key, ["a\r\nPING"] = no_lock, ["a.*"] = no_key, ["a.>"] = no_key,
      [".a"] = no_key, ["a."] = no_key, ["a..b"] = no_key, [("x"):rep(1025)] = no_key } do
      local fine, problem = pcall(Player.new, kv, { name = "x", node = "one", url = server.url .. "/KEYS", lock = key })
      assert.is_false(fine, key)
      assert.matches(words, tostring(problem))
    end
    local odd = Player.new(kv, { name = "x", node = "one", url = server.url .. "/KEYS", lock = "ä/ö." .. ("x"):rep(1000), ttl = 1,
      amnesia_wait = 0 })
    assert.equal("granted", odd:win()[1])
  end)

  for url, pattern in pairs { ["nats://a b:x/B"] = "no valid host or port", ["nats://h/B?ttl=0.5"] = "ttl must be at least 1" } do
    it("is not asked for by a wrong URL: " .. url, function()
      local result = run { "info", "--oracle", url }
      assert.is_true(result.code == 2 or result.code == 3)
      assert.matches(pattern, result.stderr)
    end)
  end
end)
