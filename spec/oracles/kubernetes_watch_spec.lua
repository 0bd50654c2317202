-- How followers hear of a Lease, on the small API server of the specs.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Players = require "support.kubernetes_players"
local Server = require "support.kubernetes_server"

describe("a watch of Leases", function()
  local server
  local _, add = Players.of_each_test(function() return "k8s:spec" end, 30)

  local function candidate(node, options)
    options = options or {}
    options.trust_empty = true
    return add(node, server:options(options))
  end

  local function live(one)
    eventually(function() return one.state.watch:is_live() end)
    while one:message() do end
  end

  local function heard(one) eventually(function() return one:message() == "look" end) end

  before_each(function() server = Server.start() end)
  after_each(function() server:destroy() end)

  it("tells a follower of a release, and of no renewal", function()
    local one, two = candidate "one", candidate "two"
    one:win()
    live(two)
    local left = two:claim()[2]
    assert.is_true(left > 30, left)
    crown.sleep(1)
    for _ = 1, 3 do one:refresh() end
    eventually(function() return two:claim()[2] > left - 0.8 end)
    assert.is_nil(two:message())
    one:abdicate()
    heard(two)
    assert.equal("granted", two:call("handle_info", "look")[1])
  end)

  it("begins anew where the server has ended it, and forgotten what it had told", function()
    local one, two = candidate "one", candidate "two"
    one:win()
    two:claim()
    live(two)
    server:trick { close = true, compact = true }
    one:refresh()
    heard(two) -- something may have been missed
    assert.equal("denied", two:claim()[1])
    live(two)
    one:abdicate()
    heard(two)
  end)

  it("goes on where the server has ended it, without asking for all", function()
    local one, two = candidate "one", candidate "two"
    one:win()
    two:claim()
    live(two)
    one:refresh()
    eventually(function() return two.state.watch.version == server:lease(two.state.name).metadata.resourceVersion end)
    local version = two.state.watch.version
    server:trick { close = true }
    eventually(function() return not two.state.watch:is_live() end)
    live(two)
    assert.equal(version, two.state.watch.version)
    one:abdicate()
    heard(two)
  end)

  it("tells of several Leases by one stream", function()
    local one, two = candidate "one", candidate "two"
    local other = candidate("two", { lock = "another-lease" })
    one:win()
    two:claim()
    other:win()
    assert.equal(two.state.watch, other.state.watch)
    eventually(function() return two.state.watch.wide and two.state.watch:is_live() end)
    while two:message() do end
    one:abdicate()
    heard(two)
    assert.is_nil(other:message())
  end)

  it("needs no right but that to its own Lease", function()
    local named = server:token "named"
    local one, two = candidate("one", { lock = "only" }), candidate("two", { lock = "only", token_file = named })
    one:win()
    live(two)
    assert.equal("denied", two:claim()[1])
    one:abdicate()
    heard(two)
    assert.equal("granted", two:claim()[1])
  end)

  it("is done without where the right is missing: followers ask", function()
    local one, two = candidate "one", candidate("two", { token_file = server:token "plain", retry = 0.7 })
    one:win()
    eventually(function() return two.state.watch.code == 403 end)
    local verdict = two:claim()
    assert.same({ "denied", 0.7 }, { verdict[1], verdict[6] })
  end)
end)
