local authority = require "support.authority"
local base64 = require "crown.text.base64"
local Candidate = require "support.candidate"
local Client = require "crown.etcd.client"
local contract = require "crown.election.contract"
local crown = require "crown"
local Etcd = require "support.etcd"
local etcd = require "crown.oracles.etcd"
local eventually = require("crown.testing").eventually
local Player = require "support.oracle_candidate"
local Proxy = require "support.proxy"
local run = require "support.run"
local tempdir = require "support.tempdir"
local testing = require "crown.testing"
local Watch = require "crown.etcd.watch"

local server = Etcd.start():trusted()
local serial = 0

testing.conformance("etcd", function()
  return { module = etcd, options = { url = server.url, ttl = 1 }, expires = true }
end)

describe("the oracle on etcd", function()
  local players

  before_each(function()
    serial = serial + 1
    players = {}
  end)
  after_each(function()
    for _, player in ipairs(players) do player:abdicate() end
  end)

  local function candidate(node, options)
    local given = { name = "e-" .. serial, node = node, url = server.url, ttl = 5 }
    for key, value in pairs(options or {}) do given[key] = value end
    players[#players + 1] = Player.new(etcd, given)
    return players[#players]
  end

  it("goes by the revision that made its key, also where it was told of it only when it put it again", function()
    local one = candidate "one"
    local batch = one.state.session.batch
    local ask = batch.ask
    batch.ask = function(self, ops, wanted)
      batch.ask = nil
      ask(self, ops, wanted)
      return nil, "the answer is lost", "closed"
    end
    assert.equal("unknown", one:claim()[1])
    local verdict = one:claim()
    assert.equal("granted", verdict[1])
    local listed
    for _, found in ipairs(assert(etcd.list { url = server.url })) do
      if found.name == "e-" .. serial then listed = found.epoch end
    end
    assert.equal(listed, verdict[4])
  end)

  it("tells a follower who leads, in which epoch: the revision of the leader's key", function()
    local one, two = candidate "one", candidate "two"
    local won = one:claim()
    assert.equal("granted", won[1])
    local denied = two:claim()
    assert.same({ "denied", "one", won[4] }, { denied[1], denied[3], denied[4] })
    local kv = crown.json.decode(server:ctl("get", "--prefix", "--sort-by=CREATE", "e-" .. serial .. "/", "-w", "json")).kvs[1]
    assert.equal(won[4], tonumber(kv.create_revision))
  end)

  it("hands over to the candidate that has waited longest, and wakes no other", function()
    local one, two, three = candidate "one", candidate "two", candidate "three"
    one:claim()
    two:claim()
    three:claim()
    one:abdicate()
    eventually(function() return two:message() == "look" end)
    assert.is_nil(three:message())
    assert.equal("granted", two:call("handle_info", "look")[1])
  end)

  it("is the same election as that of etcdctl elect", function()
    local one = candidate "one"
    one:claim()
    local other = Candidate.start { program = "/usr/bin/etcdctl", node = "other", log = tempdir() .. "/log",
      args = { "--endpoints", server.endpoint, "elect", "e-" .. serial, "theirs" } }
    eventually(function() return server:ctl("get", "--prefix", "e-" .. serial .. "/", "--keys-only"):match "e%-%S+\n\ne%-" end)
    assert.matches("\none\n", "\n" .. server:ctl("get", "--prefix", "--print-value-only", "--sort-by=CREATE", "e-" .. serial .. "/"))
    one:abdicate()
    eventually(function() return other:output():find "theirs" end)
    local denied
    eventually(function() denied = candidate("two"):claim() return denied[1] == "denied" end)
    assert.equal("theirs", denied[3])
    other:hurt_self "INT"
    other:wait(10)
  end)

  it("steps down at once when somebody deletes its key", function()
    local one = candidate("one", { ttl = 600 }) -- it looks for itself in so many seconds only
    one:claim()
    server:ctl("del", "--prefix", "e-" .. serial .. "/")
    eventually(function() return one:message() == "look" end)
    assert.equal("denied", one:call("handle_info", "look")[1])
  end)

  it("takes another place, and so another epoch, for each term: what comes late of the one before finds nothing", function()
    local token = "same-" .. serial
    candidate("one", { token = token, lock = "another-" .. serial }):claim() -- keeps the lease, which is a part of the key
    local one = candidate("one", { token = token })
    local epoch, key = one:claim()[4], one.state.place.encoded
    for _, ends in ipairs { function() one:abdicate() end, function() end } do -- also without a release
      ends()
      local verdict
      eventually(function() verdict = one:claim() return verdict[1] == "granted" end)
      assert.are_not.equal(key, one.state.place.encoded)
      assert.is_true(verdict[4] > epoch)
      epoch, key = verdict[4], one.state.place.encoded
    end
  end)

  it("gives each of those that are asked for at once its own answer", function()
    local lock, verdicts = "both-" .. serial, {}
    assert.equal("granted", candidate("held", { lock = lock }):claim()[1])
    local token = "same-" .. serial -- one runtime's, so that they are asked for together
    local both = { candidate("other", { lock = lock, token = token }), candidate("free", { token = token }) }
    for i, one in ipairs(both) do crown.spawn(function() verdicts[i] = one:claim()[1] end) end
    eventually(function() return verdicts[1] and verdicts[2] end)
    assert.same({ "denied", "granted" }, verdicts)
  end)

  it("keeps a follower's place for as long as it waits", function()
    local one, two = candidate("one", { ttl = 4 }), candidate("two", { ttl = 4 })
    one:claim()
    two:claim()
    local function second()
      return server:ctl("get", "--prefix", "--keys-only", "--sort-by=CREATE", "e-" .. serial .. "/"):match "\n(e%-%S+)"
    end
    local key = second()
    -- Until a lease of the same time, which nobody keeps alive, is over.
    local lease = assert(server:ctl("lease", "grant", "4"):match "lease (%x+) granted")
    server:ctl("put", "--lease=" .. lease, "unkept-" .. serial, "here")
    eventually(function()
      assert.equal("granted", one:refresh()[1])
      return server:ctl("get", "unkept-" .. serial) == ""
    end, 20)
    assert.equal(key, second())
    assert.equal("denied", two:claim()[1])
  end)

  it("is in line again when its place was lost while it waited", function()
    local one, two = candidate("one", { ttl = 10 }), candidate("two", { ttl = 10, refresh = 0.2 })
    one:claim()
    two:claim()
    server:ctl("lease", "revoke", two.state.session.hex)
    eventually(function() return two:message() == "look" end, 20)
    eventually(function() return two:call("handle_info", "look")[1] == "denied" end, 20)
    one:abdicate()
    eventually(function() return two:call("handle_info", "look")[1] == "granted" end, 20)
  end)

  it("does not lead by a lease that has just run out, though its key was still seen", function()
    local one = candidate "one"
    local client = one.state.session.client
    local ask = client.ask
    client.ask = function(self, path, body)
      if path == "/v3/lease/keepalive" then return { ID = body.ID } end -- as etcd answers for a lease that is gone
      return ask(self, path, body)
    end
    assert.equal("unknown", one:claim()[1])
    client.ask = nil
  end)

  -- Has `answered(path, answer)` see, and change, what the client of a candidate is answered. @return how often each path was asked
  local function overhear(one, answered)
    local client, count = one.state.session.client, {}
    local ask = client.ask
    function client.ask(self, path, body)
      count[path] = (count[path] or 0) + 1
      local answer, problem, code = ask(self, path, body)
      answered(path, answer, count)
      return answer, problem, code
    end
    finally(function() client.ask = nil end)
    return count
  end

  it("asks for all that a win needs at once", function()
    local one, two = candidate("one", { ttl = 60 }), candidate("two", { ttl = 60 })
    one:claim()
    two:claim()
    one:abdicate()
    eventually(function() return two:message() == "look" end)
    overhear(two, function(path, _, count)
      if path == "/v3/kv/txn" then
        eventually(function() return count["/v3/lease/keepalive"] and count["/v3/lease/timetolive"] and count["/v3/kv/range"] end, 5)
      end
    end)
    assert.equal("granted", two:call("handle_info", "look")[1])
  end)

  it("does not ask for its lease when it looks whether it still waits for another", function()
    local one, two = candidate("one", { ttl = 60 }), candidate("two", { ttl = 60 })
    one:claim()
    two:claim()
    local count = overhear(two, function() end)
    assert.equal("denied", two:claim()[1])
    assert.same({ ["/v3/kv/txn"] = 1 }, count)
  end)

  it("does not believe a deposed leader of etcd that has kept its lease", function()
    local one = candidate("one", { ttl = 60 })
    overhear(one, function(path, answer)
      if path == "/v3/lease/keepalive" then answer.header.raft_term = "1" end
    end)
    local verdict = one:claim()
    assert.same({ "unknown", "etcd changed its leader while it was asked" }, { verdict[1], verdict[2] })
  end)

  it("asks for its lease again where etcd got another leader since", function()
    local one = candidate("one", { ttl = 60 })
    local count = overhear(one, function(path, answer)
      if path == "/v3/kv/txn" then answer.header.raft_term = "1" end
    end)
    assert.equal("granted", one:claim()[1])
    assert.equal(2, count["/v3/lease/keepalive"])
  end)

  it("takes the place away that an earlier lease of its own has left in the queue", function()
    local one, two = candidate "one", candidate "two"
    local session = one.state.session
    assert(session.client:ask("/v3/lease/grant", { TTL = "60", ID = "1234567" }))
    local key = ("e-%d/%016x%sabc"):format(serial, 1234567, session.digest)
    assert(session.client:ask("/v3/kv/put", { key = base64.encode(key), value = "", lease = "1234567" }))
    assert.equal("denied", two:claim()[1])
    assert.equal("a key of an earlier lease of this candidate was first in the queue", one:claim()[2])
    eventually(function() return one:claim()[3] == "two" end, 20)
  end)

  it("takes back what a claim without an answer has made: the lease's number is ours", function()
    local one = candidate "one"
    local client = one.state.session.client
    local ask = client.ask
    client.ask = function(self, path, body)
      local answer, problem, code = ask(self, path, body)
      if path == "/v3/kv/txn" and body.success[1].request_put then return nil, "cut off", "closed" end
      return answer, problem, code
    end
    assert.equal("unknown", one:claim()[1])
    client.ask = nil
    one:abdicate()
    assert.equal("granted", candidate("two"):claim()[1])
  end)

  it("says so where the leader's key was written over without a lease, and what to do", function()
    local one, two = candidate("one", { ttl = 600 }), candidate("two", { ttl = 600 })
    one:claim()
    two:claim()
    local name, key = "e-" .. serial, base64.decode(one.state.place.encoded)
    server:ctl("put", key, "mine")
    local words = ("first key of the queue was written over without a lease, and nobody leads behind it: etcdctl del '%s'"):format(key)
    local function says(text) assert.is_truthy(text:find(words, 1, true), text) end
    says(two:claim()[2])
    local info = crown.json.decode(run({ "info", "--oracle", server.url, "--json", "^" .. name .. "$" }).stdout)
    assert.same({ { name = name, epoch = info.elections[1].epoch, candidates = { "two" } } }, info.elections)
    says(table.concat(info.warnings))
    says(run({ "evict", "--oracle", server.url, "--force", name }).stderr)
    server:ctl("del", key)
    eventually(function() return two:claim()[1] == "granted" end)
  end)

  it("evicts and lists, from the command line", function()
    local one = candidate "one"
    local epoch = one:claim()[4]
    local info = crown.json.decode(run({ "info", "--oracle", server.url, "--json", "^e-" .. serial .. "$" }).stdout)
    assert.same({ "one", epoch }, { info.elections[1].node, info.elections[1].epoch })
    crown.spawn(function()
      eventually(function() return one:message() == "look" end, 10)
      assert.equal("evicted", one:call("handle_info", "look")[1])
      one:abdicate()
    end)
    local result = run { "evict", "--oracle", server.url, "--force", "--wait", "3", "e-" .. serial }
    assert.equal(0, result.code, result.stderr)
    assert.matches("evicted one from", result.stdout)
  end)

  describe("with many elections in one runtime", function()
    local many

    -- Elections of one runtime: they have one token.
    local function elect(name, options)
      local given = { crown_name = name, node = "one", token = "many-" .. serial, url = server.url .. "/many" .. serial, ttl = 3 }
      for key, value in pairs(options or {}) do given[key] = value end
      local one = { messages = {} }
      given.given = given
      given.send = function(message) one.messages[#one.messages + 1] = message return true end
      one.state = assert(etcd.init(given))
      function one:call(fn, ...) return { contract.verdict(fn, etcd[fn](self.state, ...)) } end
      many[#many + 1] = one
      return one
    end

    local function keys_of(name)
      return select(2, server:ctl("get", "--prefix", "--keys-only", ("many%d/%s/"):format(serial, name)):gsub("many", ""))
    end

    before_each(function()
      many = {}
      server:trusted("many" .. serial)
    end)
    after_each(function()
      for _, one in ipairs(many) do etcd.abdicate(one.state) end
    end)

    it("has one lease for all of them", function()
      local before = server:ctl("lease", "list") -- some of these end meanwhile
      local led = 0
      for i = 1, 250 do
        local one = elect("e" .. i)
        crown.spawn(function()
          eventually(function() return one:call("claim")[1] == "granted" end, 30)
          led = led + 1
        end)
      end
      eventually(function() return led == 250 end, 30)
      local made = 0
      for id in server:ctl("lease", "list"):gmatch "\n(%x+)" do
        if not before:find(id, 1, true) then made = made + 1 end
      end
      assert.equal(1, made)
      local refreshed = 0
      for _, one in ipairs(many) do
        crown.spawn(function()
          eventually(function() return one:call("refresh")[1] == "granted" end, 30)
          refreshed = refreshed + 1
        end)
      end
      eventually(function() return refreshed == 250 end, 30)
    end)

    it("frees an election that nobody refreshes, although the others keep the lease alive", function()
      local stuck, lively = elect "stuck", elect "lively"
      assert.equal("granted", stuck:call("claim")[1])
      assert.equal("granted", lively:call("claim")[1])
      eventually(function()
        assert.equal("granted", lively:call("refresh")[1])
        crown.sleep(0.2)
        return keys_of "stuck" == 0
      end, 30)
      assert.equal("denied", stuck:call("refresh")[1])
      assert.equal(1, keys_of "lively")
    end)

    it("deletes a key that a claim has made too late", function()
      local one = elect "late"
      elect("lively"):call "claim"
      local batch = one.state.session.batch
      local ask, late = batch.ask, nil
      batch.ask = function(self, ops, wanted)
        if not ops[1].request_put then return ask(self, ops, wanted) end
        assert.is_true(wanted())
        late = ops
        return nil, "cut off", "closed"
      end
      assert.equal("unknown", one:call("claim")[1])
      batch.ask = nil
      etcd.abdicate(one.state)
      assert(batch:ask(late))
      assert.equal(1, keys_of "late")
      eventually(function()
        many[2]:call "refresh"
        crown.sleep(0.2)
        return keys_of "late" == 0
      end, 30)
    end)

    it("puts no key for a claim that was given up before it was sent", function()
      local one = elect "given-up"
      elect("lively"):call "claim"
      local batch = one.state.session.batch
      local ask = batch.ask
      local given_up
      batch.ask = function(self, ops, wanted)
        if ops[1].request_put then
          etcd.abdicate(one.state)
          given_up = true
        end
        return ask(self, ops, wanted)
      end
      crown.spawn(function() one:call "claim" end)
      eventually(function() return given_up end)
      batch.ask = nil
      many[2]:call "refresh"
      assert.equal(0, keys_of "given-up")
    end)

    it("takes a new place, and a higher epoch, after each term", function()
      local one = elect "again"
      elect("lively"):call "claim"
      local last = 0
      for _ = 1, 3 do
        local epoch = one:call("claim")[4]
        assert.is_true(epoch > last)
        last = epoch
        server:ctl("del", "--prefix", ("many%d/again/"):format(serial))
        eventually(function() return one:call("refresh")[1] == "denied" end)
      end
    end)

    it("goes on when the watch breaks off", function()
      local one, two = elect "watched", elect("watched", { token = "other-" .. serial, node = "two" })
      one:call "claim"
      assert.equal("denied", two:call("claim")[1])
      two.state.session.watch.stream:close()
      etcd.abdicate(one.state)
      eventually(function() return two.messages[1] == "look" end, 20)
      assert.equal("granted", two:call("handle_info", "look")[1])
    end)
  end)

  it("tries another endpoint when one does not answer", function()
    server:trusted "some/prefix"
    local one = candidate("one", { url = "etcd://127.0.0.1:1," .. server.endpoint .. "/some/prefix" })
    assert.equal("granted", one:claim()[1])
    assert.matches("^some/prefix/e%-%d+/%x+\n", server:ctl("get", "--prefix", "some/prefix/e-" .. serial .. "/", "--keys-only"))
  end)

  -- As after a freeze of the server that was longer than the TTL: thousands may come with the lease of before.
  it("asks for all together, not one by one, when the lease that they share has ended", function()
    local token, many, ended, transactions = "shared-" .. serial, 100, 0, 0
    local first = candidate("first", { token = token, name = "first-" .. serial })
    assert.equal("granted", first:claim()[1])
    local session = first.state.session
    local ask = session.client.ask
    session.client.ask = function(self, path, body)
      if path == "/v3/kv/txn" then transactions = transactions + 1 end
      return ask(self, path, body)
    end
    assert(session.client:ask("/v3/lease/revoke", { ID = session.lease }))
    local all = {}
    for i = 1, many do
      all[i] = candidate("one", { token = token, name = ("many-%d-%d"):format(serial, i) })
      crown.spawn(function()
        all[i]:claim()
        ended = ended + 1
      end)
    end
    eventually(function() return ended == many end, 20)
    session.client.ask = nil
    assert(transactions < many / 2, transactions .. " transactions")
    for i = 1, many do all[i]:win() end
  end)

  it("asks the next endpoint in time when the first one freezes, and stays with that", function()
    local proxy = Proxy.start(server.port)
    local one = candidate("one", { url = ("etcd://127.0.0.1:%d,%s"):format(proxy.port, server.endpoint), ttl = 10, timeout = false })
    local epoch = one:claim()[4]
    proxy:freeze()
    local at = crown.now()
    local verdict = one:refresh()
    local took = crown.now() - at
    at = crown.now()
    assert.equal("granted", one:refresh()[1])
    assert.is_true(crown.now() - at < 0.8)
    proxy:thaw()
    proxy:destroy()
    assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
    assert.is_true(took < 1.6) -- the core waits for 1.8 s
  end)

  it("counts a server that does not answer as not known, within the time-out", function()
    candidate("one", { ttl = 20, timeout = 1 }):outlasts(server) -- the TTL would make it 5 s
  end)

  it("says what is wrong with an URL, and who refused", function()
    assert.is_nil((etcd.list { url = "etcd:nothing" }))
    local result = run { "info", "--oracle", "etcd://joe:secret@127.0.0.1:1" }
    assert.equal(3, result.code)
    assert.is_nil(result.stderr:find "secret")
  end)

  it("logs in, and again when its pass has run out", function()
    server:secure "root:secret"
    local one = candidate("one", { url = "etcd://root:secret@" .. server.endpoint })
    local claimed = one:claim()
    one.state.session.client.login.pass = "not.valid"
    local refreshed = one:refresh()
    local refused = candidate("two"):claim()
    local wrong = candidate("three", { url = "etcd://root:wrong@" .. server.endpoint }):claim()
    one:abdicate()
    server:ctl("--user", "root:secret", "auth", "disable")
    assert.same({ "granted", "granted" }, { claimed[1], refreshed[1] })
    assert.equal("unknown", refused[1])
    assert.equal("unknown", wrong[1])
    assert.matches("etcd: .*invalid user ID or password", wrong[2])
    assert.is_nil(wrong[2]:find "root:wrong")
  end)
end)

describe("an etcd server", function()
  local one

  after_each(function() one:destroy() end)

  it("is reached by TLS, with a certificate that is checked", function()
    local dir = authority()
    one = Etcd.start(dir)
    local options = { name = "x", node = "one", url = one.url, ttl = 5, ca = dir .. "/ca.crt", trust_empty = true }
    assert.equal("granted", Player.new(etcd, options):claim()[1])
    options.ca = dir .. "/other.crt"
    local verdict = Player.new(etcd, options):claim()
    assert.equal("unknown", verdict[1])
    assert.matches("certificate problem: .*issuer", verdict[2])
  end)

  it("is logged in to again after a change of its users, which makes every pass of before old", function()
    local dir = tempdir()
    for _, words in ipairs { { "genrsa", "-out", dir .. "/key.pem", "2048" },
      { "rsa", "-in", dir .. "/key.pem", "-pubout", "-out", dir .. "/pub.pem" } } do
      assert.equal(0, crown.exec({ "openssl", unpack(words) }, { timeout = 30 }).code)
    end
    one = Etcd.start(nil, { "--auth-token", ("jwt,pub-key=%s/pub.pem,priv-key=%s/key.pem,sign-method=RS256,ttl=10m"):format(dir, dir) })
    one:secure "root:secret"
    local leader = Player.new(etcd, { name = "x", node = "one", url = "etcd://root:secret@" .. one.endpoint, ttl = 60,
      timeout = 20, trust_empty = true })
    local epoch = leader:claim()[4]
    one:ctl("--user", "root:secret", "user", "add", "joe:other")
    local verdict = leader:refresh()
    assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
  end)

  it("is watched with a new pass when the old one has run out, and says who may not watch", function()
    local range = { key = "YQ==", range_end = "Yg==" }
    local function watch_of(user)
      local client = Client.new(Client.parse(("etcd://%s@%s"):format(user, one.endpoint)), 5)
      local watch = Watch.new { client = client, timeout = 5, on_event = function() end, on_missed = function() end }
      return watch, client
    end
    one = Etcd.start()
    one:ctl("user", "add", "joe:other")
    one:secure "root:secret"
    local watch, client = watch_of "root:secret"
    client.login.pass = "not.valid"
    local problem
    local watched = pcall(eventually, function() return watch:over(range) end, 20)
    local forbidden = watch_of "joe:other"
    eventually(function() problem = select(2, forbidden:over(range)) return problem:find "permission" end, 20)
    watch:close()
    forbidden:close()
    assert.is_true(watched)
  end)
end)

teardown(function() server:destroy() end)
