-- What only a Lease of Kubernetes has, on the small API server of the specs.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local kubernetes = require "crown.oracles.kubernetes"
local Players = require "support.kubernetes_players"
local read_file = require "crown.text.read_file"
local Server = require "support.kubernetes_server"
local write_file = require "support.write_file"

local TTL = 5

describe("the oracle on a Lease", function()
  local server
  local players, add = Players.of_each_test(function() return "k8s:spec" end, TTL)

  local function candidate(node, options)
    return add(node, server:options(options or { trust_empty = true }))
  end

  -- What a peer writes; `spec` beside what each writes.
  local function peer_holds(holder, spec)
    local given = { holderIdentity = holder, leaseDurationSeconds = TTL, leaseTransitions = 3,
      acquireTime = "2026-01-01T00:00:00.000000Z", renewTime = "2026-01-01T00:00:00.000000Z" }
    for key, value in pairs(spec or {}) do given[key] = value end
    assert.equal(201, (server:ask("POST", "", { apiVersion = "coordination.k8s.io/v1", kind = "Lease",
      metadata = { name = players.name }, spec = given })))
  end

  local function spec_now() return server:lease(players.name).spec end

  setup(function() server = Server.start() end)
  teardown(function() server:destroy() end)

  it("writes what client-go writes, and releases as client-go releases", function()
    local one = candidate "one"
    one:win()
    local spec = spec_now()
    assert.matches("^one_", spec.holderIdentity)
    assert.equal(TTL, spec.leaseDurationSeconds)
    assert.equal(0, spec.leaseTransitions)
    one:abdicate()
    spec = spec_now()
    assert.same({ "", 1, 0 }, { spec.holderIdentity, spec.leaseDurationSeconds, spec.leaseTransitions })
    candidate("two"):win()
    assert.equal(1, spec_now().leaseTransitions)
  end)

  it("writes a ttl that is no whole number of seconds as the next one, and counts on the smaller", function()
    local verdict = candidate("one", { trust_empty = true, ttl = 3.5 }):win()
    assert.equal(4, spec_now().leaseDurationSeconds)
    assert.equal(3.5, verdict[3])
  end)

  it("writes another whole second each time, however fast it renews", function()
    local one = candidate "one"
    one:win()
    local before = spec_now().renewTime:sub(1, 19)
    for _ = 1, 4 do
      assert.equal("granted", one:refresh()[1])
      local now = spec_now().renewTime:sub(1, 19)
      assert.is_true(now > before, ("%s after %s"):format(now, before))
      before = now
    end
  end)

  it("counts no longer on its lease than another holder did", function()
    peer_holds "peer_1"
    server:edit(players.name, function(found) found.spec.leaseDurationSeconds = 4 end)
    local one = candidate "one"
    assert.equal("denied", one:claim()[1])
    server:edit(players.name, function(found) found.spec.holderIdentity = "" end)
    assert.equal(4, one:win()[3])
    assert.equal(4, one:refresh()[3])
    assert.equal(TTL, spec_now().leaseDurationSeconds)
  end)

  it("waits for as long as the holder's lease lasts since it saw it change, whatever the times in it", function()
    peer_holds("peer_1", { leaseDurationSeconds = 3 })
    local one = candidate "one"
    eventually(function() return one.state.watch:is_live() end)
    local begun, verdict = crown.now(), one:claim()
    assert.same({ "denied", "peer" }, { verdict[1], verdict[3] })
    assert.is_true(verdict[2] > 3, verdict[2])
    crown.sleep(2)
    server:edit(players.name, function(found) found.spec.renewTime = "2020-01-01T00:00:00.000000Z" end) -- back, and a change
    one:win()
    assert.is_true(crown.now() - begun > 5, crown.now() - begun)
    assert.equal(4, spec_now().leaseTransitions)
  end)

  it("is not kept waiting by what is written beside the election", function()
    peer_holds("peer_1", { leaseDurationSeconds = 3 })
    local one, begun = candidate "one", crown.now()
    one:claim()
    local count, is_over = 0, false
    crown.spawn(function()
      while not is_over do
        count = count + 1
        server:edit(players.name, function(found) found.metadata.labels = { count = tostring(count) } end)
        crown.sleep(0.5)
      end
    end)
    one:win()
    is_over = true
    assert.is_true(count > 3, count)
    assert.is_true(crown.now() - begun < 8, crown.now() - begun)
  end)

  it("keeps what others have written into the Lease", function()
    peer_holds("", { preferredHolder = "somebody" })
    server:edit(players.name, function(found)
      found.metadata.labels = { team = "reports" }
      found.metadata.ownerReferences = { { apiVersion = "apps/v1", kind = "Deployment", name = "reports", uid = "1" } }
      found.metadata.managedFields = { { manager = "kubectl", fieldsV1 = { ["f:spec"] = { ["f:holderIdentity"] = {} } } } }
    end)
    local before = server:lease(players.name)
    local one = candidate "one"
    one:win()
    one:refresh()
    one:abdicate()
    local after = server:lease(players.name)
    assert.equal("somebody", after.spec.preferredHolder)
    for _, name in ipairs { "labels", "ownerReferences", "managedFields" } do
      assert.same(before.metadata[name], after.metadata[name])
    end
  end)

  it("goes on when somebody labels the Lease", function()
    local one = candidate "one"
    local epoch = one:win()[4]
    server:edit(players.name, function(found) found.metadata.labels = { seen = "yes" } end)
    local verdict = one:refresh()
    assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
    assert.same({ seen = "yes" }, server:lease(players.name).metadata.labels)
  end)

  it("takes no part where the control plane decides who holds the Lease", function()
    peer_holds("", { strategy = "OldestEmulationVersion" })
    local verdict = candidate("one"):claim()
    assert.equal("unknown", verdict[1])
    assert.matches("has the strategy 'OldestEmulationVersion'", verdict[2], 1, true)
    assert.equal("", spec_now().holderIdentity)
  end)

  it("has another identity than its namesake, and takes over what an earlier claim of its own left, in another epoch", function()
    local one, other = candidate "one", candidate "one"
    local epoch = one:win()[4]
    assert.equal("denied", other:claim()[1])
    assert.is_true(one:win()[4] > epoch)
    assert.equal(1, spec_now().leaseTransitions)
  end)

  it("gives back what a claim without an answer has got", function()
    local one = candidate "one"
    local ask = one.state.client.ask
    one.state.client.ask = function(self, method, ...)
      local found, problem, code = ask(self, method, ...)
      if method == "POST" then return nil, "the answer is lost", "closed" end
      return found, problem, code
    end
    assert.equal("unknown", one:claim()[1])
    one.state.client.ask = nil
    assert.matches("^one_", spec_now().holderIdentity)
    one:abdicate()
    assert.equal("", spec_now().holderIdentity)
  end)

  it("hears by its watch that its Lease was deleted, and has another epoch in the one that is made anew", function()
    local one = candidate "one"
    local epoch = one:win()[4]
    eventually(function() return one.state.watch:is_live() end)
    while one:message() do end
    server:ask("DELETE", "/" .. players.name)
    eventually(function() return one:message() == "look" end)
    local verdict = one:call("handle_info", "look")
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(one:win()[4] > epoch)
  end)

  it("doubts a Lease that is missing, unless nobody can have deleted it", function()
    local verdict = candidate("one", { amnesia_wait = 20 }):claim()
    assert.same({ "denied", true }, { verdict[1], verdict[5] }, verdict[2])
    assert.is_true(verdict[2] > 20, verdict[2])
    assert.equal("granted", candidate("two"):claim()[1])
  end)

  it("doubts a server that has gone back to an older state, and never comes to an epoch again", function()
    local one, two = candidate("one", { amnesia_wait = 0 }), candidate("two", { amnesia_wait = 0 })
    peer_holds ""
    one:win()
    one:abdicate()
    local older = read_file(server.data)
    local epoch
    for _ = 1, 3 do
      epoch = one:win()[4]
      two:claim()
      one:abdicate()
    end
    server:down()
    write_file(server.data, older)
    server:up()
    local verdict = two:answered "claim"
    assert.same({ "denied", true }, { verdict[1], verdict[5] })
    assert.is_true(two:win()[4] > epoch)
  end)

  it("says what the server says, and comes again when the server wants to be asked", function()
    local one = candidate "one"
    server:trick { status = 429, retry_after = 7, count = 1 }
    local verdict = one:claim()
    assert.equal("unknown", verdict[1])
    assert.matches("^kubernetes at 127.0.0.1:%d+: it has too much to do %(429%)", verdict[2])
    assert.equal(7, verdict[4])
    server:trick { status = 503, count = 1 }
    assert.equal("unknown", one:claim()[1])
    assert.equal("granted", one:claim()[1])
    server:trick { status = 503, count = 1 }
    assert.equal("unknown", one:refresh()[1])
    assert.equal("granted", one:refresh()[1])
  end)

  it("knows nothing from a server that is slow, and loses nothing by an answer that comes too late", function()
    local one = candidate("one", { trust_empty = true, timeout = 0.5 })
    one:win()
    server:trick { slow = 1.5, count = 1 }
    assert.equal("unknown", one:refresh()[1])
    eventually(function() return one:refresh()[1] == "granted" end)
  end)

  it("tells in which namespace there is none", function()
    local verdict = candidate("one", { namespace = "nowhere", url = "k8s:", trust_empty = true }):claim()
    assert.equal("unknown", verdict[1])
    assert.matches('namespaces "nowhere" not found', verdict[2], 1, true)
  end)

  for name, words in pairs { ["Reports"] = "small letters", ["a_b"] = "small letters", ["a..b"] = "small letters" } do
    it(("refuses an election that no Lease can be called after: %s"):format(name), function()
      local state, problem = kubernetes.init(server:options { crown_name = name, node = "n", token = "t", send = function() end })
      assert.is_nil(state)
      assert.matches(words, problem, 1, true)
    end)
  end

  it("lets an operator evict, once a term", function()
    local one = candidate "one"
    local epoch, found = one:win()[4], nil
    eventually(function() return one.state.watch:is_live() end)
    while one:message() do end
    crown.spawn(function() found = assert(kubernetes.evict(server:options(), players.name)) end)
    eventually(function() return one:message() == "look" end)
    assert.equal("evicted", one:call("handle_info", "look")[1])
    assert.equal("granted", one:refresh()[1]) -- while its term ends
    one:abdicate()
    eventually(function() return found end)
    assert.same({ node = "one", epoch = epoch }, found)
    assert.is_nil(server:lease(players.name).metadata.annotations)
    assert.equal("granted", one:claim()[1])
    assert.equal("granted", one:refresh()[1])
  end)
end)
