local base64 = require "crown.text.base64"
local Candidate = require "support.candidate"
local crown = require "crown"
local Etcd = require "support.etcd"
local etcd = require "crown.oracles.etcd"
local eventually = require("crown.testing").eventually
local Players = require "support.etcd_players"
local run = require "support.run"
local tempdir = require "support.tempdir"
local testing = require "crown.testing"

local overhear = Players.overhear
local server = Etcd.start():trusted()

testing.conformance("etcd", function()
  return { module = etcd, options = { url = server.url, ttl = 3, timeout = 20 }, expires = true }
end)

describe("the oracle on etcd", function()
  local players, candidate = Players.of_each_test(function() return server.url end)

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
      if found.name == players.name then listed = found.epoch end
    end
    assert.equal(listed, verdict[4])
  end)

  it("leads in the revision of its key", function()
    local won = candidate("one"):claim()
    local kv = crown.json.decode(server:ctl("get", "--prefix", "--sort-by=CREATE", players.name .. "/", "-w", "json")).kvs[1]
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
    local one = candidate("one", { ttl = 60 }) -- nobody refreshes it here
    one:claim()
    local other = Candidate.start { program = "/usr/bin/etcdctl", node = "other", log = tempdir() .. "/log",
      args = { "--endpoints", server.endpoint, "elect", players.name, "theirs" } }
    eventually(function() return server:ctl("get", "--prefix", players.name .. "/", "--keys-only"):match "e%-%S+\n\ne%-" end)
    assert.matches("\none\n", "\n" .. server:ctl("get", "--prefix", "--print-value-only", "--sort-by=CREATE", players.name .. "/"))
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
    server:ctl("del", "--prefix", players.name .. "/")
    eventually(function() return one:message() == "look" end)
    assert.equal("denied", one:call("handle_info", "look")[1])
  end)

  it("takes another place, and so another epoch, for each term: what comes late of the one before finds nothing", function()
    local token = "same-" .. players.serial
    candidate("one", { token = token, lock = "another-" .. players.serial }):claim() -- keeps the lease, which is a part of the key
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
    local lock, verdicts = "both-" .. players.serial, {}
    assert.equal("granted", candidate("held", { lock = lock }):claim()[1])
    local token = "same-" .. players.serial -- one runtime's, so that they are asked for together
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
      return server:ctl("get", "--prefix", "--keys-only", "--sort-by=CREATE", players.name .. "/"):match "\n(e%-%S+)"
    end
    local key = second()
    -- Until a lease of the same time, which nobody keeps alive, is over.
    local lease = assert(server:ctl("lease", "grant", "4"):match "lease (%x+) granted")
    server:ctl("put", "--lease=" .. lease, "unkept-" .. players.serial, "here")
    eventually(function()
      assert.equal("granted", one:refresh()[1])
      return server:ctl("get", "unkept-" .. players.serial) == ""
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

  it("asks for all that a win needs at once", function()
    local one, two = candidate("one", { ttl = 600 }), candidate("two", { ttl = 600 })
    one:claim()
    two:claim()
    one:abdicate()
    eventually(function() return two:message() == "look" end)
    local count
    count = overhear(two, function(path, ...)
      if path == "/v3/kv/txn" then
        eventually(function() return count["/v3/lease/keepalive"] and count["/v3/lease/timetolive"] and count["/v3/kv/range"] end, 5)
      end
      return ...
    end)
    assert.equal("granted", two:call("handle_info", "look")[1])
  end)

  it("does not ask for its lease when it looks whether it still waits for another", function()
    local one, two = candidate("one", { ttl = 60 }), candidate("two", { ttl = 60 })
    one:claim()
    two:claim()
    local count
    eventually(function() -- what the first claim has asked besides may be under way still
      count = overhear(two)
      assert.equal("denied", two:claim()[1])
      return not count["/v3/kv/range"]
    end, 10)
    assert.same({ ["/v3/kv/txn"] = 1 }, count)
  end)

  it("keeps the lease of who only follows, again and again", function()
    local one, two = candidate("one", { ttl = 60 }), candidate("two", { ttl = 60, refresh = 0.2 })
    one:claim()
    assert.equal("denied", two:claim()[1])
    local from = two.state.session.from
    for _ = 1, 3 do
      eventually(function() return two.state.session.from > from end, 20)
      from = two.state.session.from
    end
  end)

  it("does not believe a deposed leader of etcd that has kept its lease", function()
    local one = candidate("one", { ttl = 60 })
    overhear(one, function(path, answer, ...)
      if path == "/v3/lease/keepalive" then answer.header.raft_term = "1" end
      return answer, ...
    end)
    local verdict = one:claim()
    assert.same({ "unknown", "etcd changed its leader while it was asked" }, { verdict[1], verdict[2] })
  end)

  it("asks for its lease again where etcd got another leader since", function()
    local one = candidate("one", { ttl = 60 })
    local count = overhear(one, function(path, answer, ...)
      if path == "/v3/kv/txn" then answer.header.raft_term = "1" end
      return answer, ...
    end)
    assert.equal("granted", one:claim()[1])
    assert.equal(2, count["/v3/lease/keepalive"])
  end)

  it("takes the place away that an earlier lease of its own has left in the queue", function()
    local one, two = candidate "one", candidate "two"
    local session = one.state.session
    assert(session.client:ask("/v3/lease/grant", { TTL = "60", ID = "1234567" }))
    local key = ("e-%d/%016x%sabc"):format(players.serial, 1234567, session.digest)
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
    local name, key = players.name, base64.decode(one.state.place.encoded)
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

  it("says which key below the election is no candidate's, on which server, and what to do", function()
    local one, two = candidate("one", { ttl = 600 }), candidate("two", { ttl = 600 })
    one:claim()
    local name = players.name
    server:ctl("put", name .. "/zzz", "x")
    two:claim()
    one:abdicate()
    local words = ("etcd at %s: the first key below %s/ is no candidate's, and nobody leads behind it: etcdctl del '%s/zzz'")
      :format(server.endpoint, name, name)
    local function says(text) assert.is_truthy(text:find(words, 1, true), text) end
    eventually(function() return two:claim()[1] == "unknown" end)
    says(two:claim()[2])
    says(run({ "evict", "--oracle", server.url, "--force", name }).stderr)
    local function check() return run { "check", "--store", "--oracle", server.url, "run", name, "true" } end
    local checked = check()
    assert.equal(2, checked.code, checked.stdout)
    says(checked.stdout)
    server:ctl("del", name .. "/zzz")
    eventually(function() return two:claim()[1] == "granted" end)
    assert.equal(0, check().code)
  end)

  it("evicts and lists, from the command line", function()
    local one = candidate("one", { ttl = 60 }) -- nobody refreshes it here
    local epoch = one:claim()[4]
    local info = crown.json.decode(run({ "info", "--oracle", server.url, "--json", "^e-" .. players.serial .. "$" }).stdout)
    assert.same({ "one", epoch }, { info.elections[1].node, info.elections[1].epoch })
    crown.spawn(function()
      eventually(function() return one:message() == "look" end, 10)
      assert.equal("evicted", one:call("handle_info", "look")[1])
      one:abdicate()
    end)
    local result = run { "evict", "--oracle", server.url, "--force", "--wait", "3", players.name }
    assert.equal(0, result.code, result.stderr)
    assert.matches("evicted one from", result.stdout)
  end)
end)

teardown(function() server:destroy() end)
