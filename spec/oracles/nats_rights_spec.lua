-- Rights on a NATS server that are missing, taken away and given back while candidates are connected.
local eventually = require("crown.testing").eventually
local kv = require "crown.oracles.nats_kv"
local Nats = require "support.nats"
local own_servers = require "support.own_servers"
local Player = require "support.oracle_candidate"

describe("rights on a NATS server", function()
  local start, destroy = own_servers(Nats.start)
  after_each(destroy)

  local function users(permissions)
    return ("authorization { users = [ { user: joe, password: secret%s } ] }"):format(
      permissions and (", permissions: { %s }"):format(permissions) or "")
  end

  local function serve(permissions)
    local server = start()
    server:configure(users(permissions))
    eventually(function() return server.process:output():find "Reloaded" end)
    return server
  end

  local function player(server, node)
    return Player.new(kv, { name = "x", node = node or "one", ttl = 4, trust_empty = true, timeout = 2, amnesia_wait = 0,
      url = ("nats://joe:secret@127.0.0.1:%d/B"):format(server.port) })
  end

  -- What status --stores shows of a candidate's connection.
  local function shown(one)
    return one.state.bucket.link:condition().problem
  end

  local INBOX, EVICT = 'subscribe: { deny: ["_INBOX.>"] }', 'subscribe: { deny: ["crown.>"] }'

  it("to subscribe to an inbox: who lacks it is told so, and leads once it is given", function()
    local server = serve(INBOX)
    local one = player(server)
    local verdict = one:claim()
    assert.equal("unknown", verdict[1])
    assert.matches('Permissions Violation for Subscription to "_INBOX.>"', verdict[2], 1, true)
    assert.matches('Subscription to "_INBOX.>"', shown(one), 1, true)
    server:configure(users())
    eventually(function() return one:claim()[1] == "granted" end, 20)
  end)

  it("to subscribe to an inbox, taken and given back under a leader", function()
    local server = serve()
    local one = player(server)
    assert.equal("granted", one:win()[1])
    server:configure(users(INBOX))
    eventually(function()
      local verdict = one:refresh()
      return verdict[1] == "unknown" and verdict[2]:find('Subscription to "_INBOX.>"', 1, true)
    end, 10)
    server:configure(users())
    eventually(function()
      local verdict = one:refresh()
      return verdict[1] == "granted" or verdict[1] == "denied" and one:claim()[1] == "granted"
    end, 20)
  end)

  it("to hear of evictions: it is tried again until it is given", function()
    local server = serve(EVICT)
    local one = player(server)
    local epoch = one:win()[4]
    eventually(function() return (shown(one) or ""):find('Subscription to "crown.evict.B.>"', 1, true) end, 5)
    server:configure(users())
    eventually(function() return shown(one) == nil end, 20)
    assert.is_true(one.state.bucket:ask_to_go("x", epoch))
    eventually(function() return one:message() == "evict" end, 5)
  end)

  it("to ask for the bucket's state: a win that cannot be confirmed is sought once, and the right is named", function()
    local server = serve()
    local one = player(server)
    assert.equal("granted", one:win()[1])
    one:abdicate()
    server:configure(users 'publish: { deny: ["$JS.API.STREAM.INFO.>"] }')
    local verdict
    eventually(function()
      verdict = one:claim()
      if verdict[1] == "granted" then one:abdicate() end
      return verdict[1] == "unknown"
    end, 10)
    assert.matches('Permissions Violation for Publish to "$JS.API.STREAM.INFO.KV_B"', verdict[2], 1, true)
    one:abdicate()
    local before = one.state.bucket.highest
    for _ = 1, 3 do
      verdict = one:claim()
      assert.equal("unknown", verdict[1])
      assert.matches('Publish to "$JS.API.STREAM.INFO.KV_B"', verdict[2], 1, true)
      one:abdicate()
    end
    assert.equal(before, one.state.bucket.highest)
  end)

  it("to read a value: who asks is told at once", function()
    local server = serve 'publish: { deny: ["$JS.API.STREAM.MSG.GET.>"] }'
    local one, two = player(server), player(server, "two")
    assert.equal("granted", one:win()[1])
    local verdict
    eventually(function() verdict = two:claim() return verdict[1] == "unknown" end, 5)
    assert.matches('Publish to "$JS.API.STREAM.MSG.GET.KV_B"', verdict[2], 1, true)
  end)
end)
