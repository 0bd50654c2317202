-- One leader among candidates of crown-lua and of client-go, on the real API server. Without it the tests are skipped: `make
-- kubernetes-peer` builds both.
local Cluster = require "support.cluster"
local crown = require "crown"
local eventually = require("crown.testing").eventually
local kubernetes = require "crown.oracles.kubernetes"
local manifests_of = require "support.manifests"
local Peer = require "support.kubernetes_peer"
local Player = require "support.oracle_candidate"
local ticks = require "support.ticks"
local Way = require "torture.way"

local DURATION = 4 -- seconds: of all peers, unless a test is about another one

describe("beside client-go", function()
  local server, cluster, electors, ways

  setup(function() server = Peer.is_there and Peer.start() end)
  teardown(function()
    if server then server:destroy() end
  end)
  before_each(function()
    if not server then return end
    electors, ways = {}, {}
    server:ask("DELETE", "/spec")
    cluster = Cluster.new { url = "", ttl = DURATION }
  end)
  after_each(function()
    if not server then return end
    for _, one in ipairs(electors) do one:destroy() end
    for _, member in ipairs(cluster.members) do member:destroy() end
    for _, way in ipairs(ways) do way:close() end
  end)

  local function peer(what, fn)
    it(what, function()
      if not server then return pending(Peer.MISSING) end
      fn()
      assert.equal(0, ticks.overlap(cluster.ticks), "two children ticked at once")
    end)
  end

  local function url(at, more)
    return server:url("amnesia_wait=0&trust_empty=true&ca=" .. server.authority .. "/ca.crt" .. (more or ""), at)
  end

  local function ours(node, at, more) return cluster:join(node, url(at, more)) end

  local function way()
    ways[#ways + 1] = Way.open(function() return server.port end)
    return ways[#ways]
  end

  local function elector(node, options)
    options = options or {}
    options.ticks, options.duration = cluster.ticks, options.duration or DURATION
    electors[#electors + 1] = server:elector(node, options)
    return electors[#electors]
  end

  -- Waits until the newest child is this one's.
  local function leads(node, seconds)
    return eventually(function()
      local lives = ticks.lives(cluster.ticks)
      local last = lives[#lives]
      return last and last.node == node and last.count > 20 and last
    end, seconds or 30)
  end

  -- How long nobody ticked before the newest child.
  local function gap()
    local gaps = ticks.gaps(cluster.ticks)
    return gaps[#gaps].seconds
  end

  local function follows(one) eventually(function() return one:output():find("leader ", 1, true) end, 20) end

  peer("both hand over in order", function()
    local one = ours "one"
    leads "one"
    local go = elector "go"
    follows(go)
    one:signal "TERM"
    leads "go"
    assert.is_true(gap() < 3, gap())
    ours("two"):follows()
    crown.sleep(1) -- its watch
    go:signal "TERM"
    leads "two"
    assert.is_true(gap() < 0.5, gap())
  end)

  peer("the tree is dead before client-go leads: all but the child is killed", function()
    local one = ours "one"
    leads "one"
    follows(elector "go")
    one:hurt("KILL", "supervise", "runtime")
    leads "go"
  end)

  peer("the tree is dead before client-go leads: the leader is stopped", function()
    local one = ours "one"
    leads "one"
    follows(elector "go")
    one:hurt("STOP", "supervise", "runtime")
    leads "go"
    one:hurt("CONT", "supervise", "runtime")
    crown.sleep(1)
  end)

  peer("the tree is dead before client-go leads: the leader is cut off", function()
    local cut = way()
    ours("one", cut.port)
    leads "one"
    follows(elector "go")
    cut.held = { there = true, back = true }
    leads "go"
    cut:free() -- what was held comes late
    crown.sleep(1)
    leads "go"
  end)

  peer("a leader of client-go that was killed is followed when its Lease has stood still", function()
    local go = elector "go"
    leads "go"
    ours("one"):follows()
    go:hurt_self "KILL"
    leads "one"
  end)

  peer("renewals within one second keep the Lease", function()
    local one = Player.new(kubernetes, server:options { name = "spec", node = "one", ttl = DURATION, trust_empty = true })
    one:win()
    elector("go", { retry = 0.2 })
    local over = crown.now() + 3 * DURATION
    while crown.now() < over do
      assert.equal("granted", one:refresh()[1])
      crown.sleep(0.3)
    end
    assert.equal(0, #ticks.lives(cluster.ticks))
    one:abdicate()
    leads "go"
  end)

  peer("a lease counts no longer than the peer's, which judges by its own duration", function()
    local go = elector "go"
    leads "go"
    cluster.options.ttl = 30
    local cut = way()
    ours("one", cut.port):follows()
    go:hurt_self "KILL"
    leads "one"
    follows(elector "go2")
    cut.held = { there = true, back = true }
    leads "go2"
  end)

  peer("the API server may restart, and be slow", function()
    local slow = way()
    cluster.options.ttl = 60 -- longer than the server takes to come back on a busy machine
    local one = ours("one", slow.port, "&timeout=4&refresh=3")
    leads "one"
    local began = ticks.lives(cluster.ticks)[1].life
    follows(elector("go", { duration = 60, deadline = 50, retry = 1 }))
    server:down()
    server:up()
    local before = #one:output()
    eventually(function() return one:output():find("leadership.refreshed", before + 1, true) end, 20) -- it is connected again
    slow.delay = { there = 1, back = 1 }
    crown.sleep(15)
    slow:free()
    assert.is_nil(one:output():find("leadership.lost", 1, true))
    assert.equal(began, ticks.lives(cluster.ticks)[1].life)
    assert.equal(1, #ticks.lives(cluster.ticks))
  end)

  peer("epochs rise from holder to holder, and where the Lease was deleted", function()
    local one = Player.new(kubernetes, server:options { name = "spec", node = "one", ttl = DURATION, amnesia_wait = 0 })
    local epochs = { one:win()[4] }
    one:abdicate()
    local go = elector "go"
    leads "go"
    epochs[2] = one:claim()[4]
    go:signal "TERM"
    eventually(function() return go:output():find("stopped", 1, true) end, 10)
    epochs[3] = one:win()[4]
    server:ask("DELETE", "/spec")
    epochs[4] = one:win()[4]
    one:abdicate()
    for i = 2, 4 do assert.is_true(epochs[i] > epochs[i - 1], table.concat(epochs, " ")) end
  end)

  peer("a client's certificate logs in, in a kubeconfig's data", function()
    local base64, read_file = require "crown.text.base64", require "crown.text.read_file"
    local function data(path) return base64.encode(read_file(path)) end
    local file = require "support.write_file"(server.dir .. "/config", ([[
current-context: c
contexts:
- context: {cluster: k}
  name: c
]]):gsub("{cluster: k}", "\n    cluster: k\n    namespace: spec\n    user: u") .. ([[
clusters:
- cluster:
    certificate-authority-data: %s
    server: %s
  name: k
users:
- name: u
  user:
    client-certificate-data: %s
    client-key-data: %s
]]):format(data(server.authority .. "/ca.crt"), server.base, data(server.cert), data(server.key)))
    local one = Player.new(kubernetes, { url = "k8s:", kubeconfig = file, name = "spec", node = "one", ttl = DURATION,
      trust_empty = true })
    assert.equal("granted", one:claim()[1])
    one:abdicate()
  end)

  peer("the manifests are taken, and their rights are enough", function()
    local places = { ServiceAccount = "//api/v1/namespaces/spec/serviceaccounts", Deployment =
      "//apis/apps/v1/namespaces/spec/deployments", Role = "//apis/rbac.authorization.k8s.io/v1/namespaces/spec/roles",
      RoleBinding = "//apis/rbac.authorization.k8s.io/v1/namespaces/spec/rolebindings" }
    for _, manifest in ipairs(manifests_of "tools/kubernetes/lease.yaml") do
      local code, found = server:ask("POST", places[manifest.kind], manifest)
      assert.equal(201, code, manifest.kind .. ": " .. tostring(found.message))
    end
    local code, found = server:ask("POST", "//api/v1/namespaces/spec/serviceaccounts/reports/token", {
      apiVersion = "authentication.k8s.io/v1", kind = "TokenRequest", spec = { expirationSeconds = 3600 } })
    assert.equal(201, code, tostring(found.message))
    local file = require "support.write_file"(server.dir .. "/account", found.status.token)
    local options = { token_file = file, name = "reports", crown_name = "reports", node = "one", ttl = DURATION, trust_empty = true }
    local lacks = assert(kubernetes.rights(server:options { token_file = file, crown_name = "reports" }))
    assert.equal(0, #lacks)
    assert.matches("does not allow 'list'", lacks.warning)
    options.crown_name = nil
    local one, two = Player.new(kubernetes, server:options(options)), Player.new(kubernetes, server:options(options))
    one:win()
    eventually(function() return two.state.watch:is_live() end)
    while two:message() do end
    two:claim()
    one:refresh()
    one:abdicate()
    eventually(function() return two:message() == "look" end)
    assert.equal("granted", two:claim()[1])
    two:abdicate()
  end)
end)
