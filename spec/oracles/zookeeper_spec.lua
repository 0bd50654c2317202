-- What only ZooKeeper's elections have: nodes in a peer's words, sessions, rights of nodes.
local crown = require "crown"
local eventually = require("crown.testing").eventually
local Players = require "support.zookeeper_players"
local recipe = require "crown.zookeeper.recipe"
local Server = require "support.zookeeper"
local wire = require "crown.zookeeper.wire"
local zookeeper = require "crown.oracles.zookeeper"

describe("an election in ZooKeeper", function()
  local server
  setup(function() server = Server.start() end)
  teardown(function() server:destroy() end)

  local players, add = Players.of_each_test(function() return server.url .. "/app" end)

  local function candidate(node, options)
    local given = { trust_empty = true }
    for key, value in pairs(options or {}) do given[key] = value end
    return add(node, given)
  end

  local function base() return "/app/" .. players.name end

  local function nodes() return server:ask("children", base()) or {} end

  local function make(name, data)
    assert(server:ask("create", ("%s/%s"):format(base(), name), data or "", wire.OPEN, wire.PERSISTENT))
  end

  it("has nodes as Curator's LeaderLatch makes them", function()
    candidate("one"):win()
    assert.matches("^_c_%x%x%x%x%x%x%x%x%-%x%x%x%x%-8%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x%-latch%-0000000000$", nodes()[1])
    assert.equal("one", server:ask("get", base() .. "/" .. nodes()[1], false).data)
  end)

  it("has nodes as kazoo's Election makes them", function()
    candidate("one", { recipe = "kazoo" }):win()
    assert.matches("^%x+__lock__0000000000$", nodes()[1])
    assert.equal(32 + 8 + 10, #nodes()[1])
  end)

  it("tells only the next candidate that a leader has left", function()
    local one, two, three = candidate "one", candidate "two", candidate "three"
    one:win()
    assert.equal("denied", two:claim()[1])
    local verdict = three:claim()
    assert.equal("one", verdict[3])
    one:abdicate()
    eventually(function() return two:message() == "look" end, 5)
    assert.equal("granted", two:claim()[1])
    assert.is_nil(three:message())
  end)

  it("takes a place that it has made by a claim whose answer was lost, and no second one", function()
    local one = candidate "one"
    local session = one.state.session
    local connection = assert(session:ready())
    local ask = connection.ask
    function connection.ask(self, timeout, kind, ...)
      local found, problem, code = ask(self, timeout, kind, ...)
      if kind ~= "create" or not found then return found, problem, code end
      self:close "lost"
      return nil, "lost", "closed"
    end
    assert.equal("unknown", one:claim()[1])
    assert.equal(1, #nodes())
    one:win()
    assert.equal(1, #nodes())
  end)

  it("deletes a node that comes after its candidate has left", function()
    local one = candidate "one"
    candidate("two"):win()
    local session = one.state.session
    local connection = assert(session:ready())
    local ask = connection.ask
    function connection.ask(self, timeout, kind, ...)
      local found, problem, code = ask(self, timeout, kind, ...)
      if kind == "create" and found then return nil, "lost", "closed" end
      return found, problem, code
    end
    assert.equal("unknown", one:claim()[1])
    assert.equal(2, #nodes())
    one.state:abdicate()
    eventually(function() return #nodes() == 1 end, 10)
  end)

  it("takes over from a runtime of the same candidate that has died", function()
    local one = candidate("one", { token = "same" })
    local before = one:win()
    one.state.session.link:close()
    one.state.session.link = nil
    local again = candidate("one", { token = "same", amnesia_wait = 1 }) -- a session of its own
    local verdict = again:claim()
    assert.equal("granted", verdict[1])
    assert.is_true(verdict[4] > before[4])
  end)

  it("is lost when the session is over, and is won in another one", function()
    local one = candidate "one"
    local before = one:win()
    local session = one.state.session
    session.link.connection:ask(5, "close")
    eventually(function() return one:refresh()[1] == "denied" end, 10)
    assert.is_true(one:win()[4] > before[4])
  end)

  it("does not lead by a session that nobody has proved for too long", function()
    local one = candidate "one"
    one:win()
    local session = one.state.session
    function session.beat() return true end -- answers that prove nothing
    crown.sleep(0.46 * session.time)
    local verdict = one:refresh()
    assert.equal("unknown", verdict[1])
    assert.matches("not proved to live", verdict[2])
  end)

  it("is not won beside another recipe's nodes", function()
    candidate("one"):win()
    local verdict = candidate("two", { recipe = "kazoo" }):claim()
    assert.equal("unknown", verdict[1])
    assert.matches("which no candidate by recipe=kazoo makes", verdict[2])
    assert.equal(1, #nodes())
    make "somebody-else"
    assert.matches("has the node 'somebody%-else'", candidate("three"):claim()[2])
  end)

  it("is listed with all candidates, and evicts the leader", function()
    local one, two = candidate "one", candidate "two"
    one:win()
    two:claim()
    local listed = assert(zookeeper.list { url = server.url .. "/app" })
    local found
    for _, each in ipairs(listed) do found = each.name == players.name and each or found end
    assert.same({ "one", "two" }, found.candidates)
    local gone
    crown.spawn(function() gone = zookeeper.evict({ url = server.url .. "/app" }, players.name) end)
    eventually(function() return one:message() == "look" end, 5)
    assert.is_true(one:refresh()[6] or one.state.told_to_go)
    assert.equal("granted", one:refresh()[1]) -- said once; its term ends meanwhile
    one:abdicate()
    eventually(function() return gone end, 5)
    assert.equal("one", gone.node)
  end)

  it("is listed with what keeps everybody from telling who leads", function()
    candidate("one"):win()
    make "somebody-else"
    local found
    for _, each in ipairs(assert(zookeeper.list { url = server.url .. "/app" })) do
      found = each.name == players.name and each or found
    end
    assert.is_nil(found.node)
    assert.matches("has the node 'somebody%-else'", found.trouble)
  end)

  it("lets nobody lead by a node of the store that was overwritten, which check tells", function()
    local url = server.url .. "/odd"
    assert(server:ask("create", "/odd", "", wire.OPEN, wire.PERSISTENT))
    assert(server:ask("create", "/odd/@crown", "x", wire.OPEN, wire.PERSISTENT))
    assert.matches("/odd/@crown was overwritten: delete it", zookeeper.rights({ url = url, crown_name = "n" })[1])
    assert(server:ask("set", "/odd/@crown", "text old", -1))
    assert.same({}, (zookeeper.rights { url = url, crown_name = "n" }))
  end)

  it("does not evict a leader that hears no such wish", function()
    assert(server:ask("create", base(), "", wire.OPEN, wire.PERSISTENT))
    make("_c_01234567-89ab-4def-8123-456789abcdef-latch-0000000007", "java")
    local gone, problem = zookeeper.evict({ url = server.url .. "/app" }, players.name)
    assert.is_nil(gone)
    assert.matches("clients of Curator's LeaderLatch hear no request to go", problem)
    assert.equal(1, #nodes())
  end)

  it("names the rights that an ACL does not give", function()
    local login = (server.url .. "/secret"):gsub("//", "//app:word@")
    local one = Players.new():add(login, "one", { trust_empty = true, name = "x" })
    one:win()
    local function rights(url) return zookeeper.rights { url = url, crown_name = "x" } end
    assert.same({}, rights(login))
    local lacks = rights(server.url .. "/secret")
    assert.same({ "this candidate lacks READ in the ACL of /secret/x", "this candidate lacks CREATE in the ACL of /secret/x",
      "this candidate lacks DELETE in the ACL of /secret/x", "this candidate lacks READ in the ACL of /secret/@crown",
      "this candidate lacks WRITE in the ACL of /secret/@crown" }, lacks)
    assert.matches("the ACL does not allow it", Players.new():add(server.url .. "/secret", "two", { name = "x" }):claim()[2])
    one:abdicate()
  end)

  it("says which session the server makes of a ttl", function()
    local health = assert(zookeeper.health { url = server.url, ttl = 80 })
    assert.matches("makes a ttl of 80 s one of 60 s", health.warnings[1])
    assert.same({}, zookeeper.health({ url = server.url }).warnings)
  end)
end)

describe("a queue in ZooKeeper", function()
  local function curator(guid, count) return ("_c_%s-latch-%010d"):format(guid, count) end

  it("goes by the number, whatever stands before it", function()
    local high, low = curator("00000000-0000-4000-8000-000000000000", 3), curator("ffffffff-ffff-4fff-8fff-ffffffffffff", 2)
    local queue = recipe.queue(recipe.of "curator", "/e", { high, low })
    assert.equal(low, queue[1].name)
    assert.is_false(recipe.is_ours(queue[1]))
  end)

  it("passes by what kazoo passes by", function()
    local name = ("0"):rep(32) .. "__lock__0000000001"
    assert.equal(1, #recipe.queue(recipe.of "kazoo", "/e", { name, "notes" }))
    assert.is_nil(recipe.queue(recipe.of "kazoo", "/e", { name, curator("00000000-0000-4000-8000-000000000000", 0) }))
  end)

  it("has directories that no name leads out of", function()
    assert.equal("/p/a%2Fb", recipe.base("/p", "a/b"))
    assert.equal("/p/%2E%2E", recipe.base("/p", ".."))
    assert.equal("/p/%40crown", recipe.base("/p", "@crown"))
  end)
end)
