-- An etcd server that is one of several, that does not answer, that wants a login or TLS.
local authority = require "support.authority"
local Client = require "crown.etcd.client"
local crown = require "crown"
local Etcd = require "support.etcd"
local etcd = require "crown.oracles.etcd"
local eventually = require("crown.testing").eventually
local Player = require "support.oracle_candidate"
local Players = require "support.etcd_players"
local Proxy = require "support.proxy"
local run = require "support.run"
local tempdir = require "support.tempdir"
local Watch = require "crown.etcd.watch"
local within = require("support.stillness").within

describe("the servers of an election on etcd", function()
  local server

  setup(function() server = Etcd.start():trusted() end)
  teardown(function() server:destroy() end)

  local players, candidate = Players.of_each_test(function() return server.url end)

  it("tries another endpoint when one does not answer", function()
    server:trusted "some/prefix"
    local one = candidate("one", { url = "etcd://127.0.0.1:1," .. server.endpoint .. "/some/prefix" })
    assert.equal("granted", one:claim()[1])
    assert.matches("^some/prefix/e%-%d+/%x+\n", server:ctl("get", "--prefix", "some/prefix/e-" .. players.serial .. "/", "--keys-only"))
  end)

  it("counts a lease by what it lasts where etcd makes none so short, and says so", function()
    local slow = Etcd.start(nil, { "--election-timeout", "5000" })
    finally(function() slow:destroy() end)
    local one = Player.new(etcd, { name = "short", node = "one", url = slow.quick, ttl = 2, trust_empty = true })
    local verdict = one:claim()
    assert.same({ "granted", 8 }, { verdict[1], verdict[3] }) -- etcd's least
    verdict = one:refresh()
    assert.same({ "granted", 8 }, { verdict[1], verdict[3] })
    assert.matches("^8", slow:ctl("get", "crown.age", "--print-value-only")) -- so long everybody waits where it may be forgotten
    local result = run { "check", "--store", "--oracle", slow.quick .. "&ttl=2", "run", "short", "true" }
    assert.equal(0, result.code)
    assert.matches("warning%s+.-ttl of 2 s.-8 s", result.stdout)
    assert.is_nil(run({ "check", "--store", "--oracle", slow.quick .. "&ttl=8", "run", "short", "true" }).stdout:find "warning")
    local leases = select(2, slow:ctl("lease", "list"):gsub("\n%x+", ""))
    assert.equal(2, leases) -- the candidate's, and that of the memory
  end)

  it("asks the next endpoint in time when the first one freezes, and stays with that", function()
    local proxy = Proxy.start(server.port)
    local one = candidate("one", { url = ("etcd://127.0.0.1:%d,%s"):format(proxy.port, server.endpoint), ttl = 60, timeout = false })
    local epoch = one:claim()[4]
    proxy:freeze()
    local verdict
    within(5, function() verdict = one:refresh() end)
    -- Who asks the first one again waits for half of the five seconds.
    within(2.5, function() assert.equal("granted", one:refresh()[1]) end)
    proxy:thaw()
    proxy:destroy()
    assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
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
    assert.matches("etcd at [^ ]*: .*invalid user ID or password", wrong[2])
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
