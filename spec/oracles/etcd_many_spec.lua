-- Many elections of one runtime on etcd: they share a lease, a watch and their questions.
local contract = require "crown.election.contract"
local crown = require "crown"
local Etcd = require "support.etcd"
local etcd = require "crown.oracles.etcd"
local eventually = require("crown.testing").eventually
local Players = require "support.etcd_players"

describe("many elections of one runtime on etcd", function()
  local server, players, serial, many

  setup(function() server = Etcd.start():trusted() end)
  teardown(function() server:destroy() end)

  -- Elections of one runtime: they have one token.
  local function elect(name, options)
    local given = { crown_name = name, node = "one", token = "many-" .. serial, given = {} }
    for _, list in ipairs { { url = server.url .. "/many" .. serial, ttl = 10 }, options or {} } do
      for key, value in pairs(list) do
        given[key] = value
        if key ~= "token" and key ~= "node" then given.given[key] = value end -- the runtime's
      end
    end
    local one = { messages = {} }
    given.send = function(message) one.messages[#one.messages + 1] = message return true end
    one.state = assert(etcd.init(given))
    function one:call(fn, ...) return { contract.verdict(fn, self.state, etcd[fn](self.state, ...)) } end
    many[#many + 1] = one
    return one
  end

  local function keys_of(name)
    return select(2, server:ctl("get", "--prefix", "--keys-only", ("many%d/%s/"):format(serial, name)):gsub("many", ""))
  end

  before_each(function()
    players, many = Players.new(), {}
    serial = players.serial
    server:trusted("many" .. serial)
  end)
  after_each(function()
    for _, one in ipairs(many) do etcd.abdicate(one.state) end
    players:close()
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
    assert.is_table(assert(batch:ask(late))[1].response_put) -- it is there, if only for a moment
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

  -- As after a freeze of the server that was longer than the TTL: thousands may come with the lease of before.
  it("asks for all together, not one by one, when the lease that they share has ended", function()
    local token, count, ended, transactions = "shared-" .. serial, 100, 0, 0
    local first = players:add(server.url, "first", { token = token, name = "first-" .. serial })
    assert.equal("granted", first:claim()[1])
    local session = first.state.session
    local ask = session.client.ask
    session.client.ask = function(self, path, body)
      if path == "/v3/kv/txn" then transactions = transactions + 1 end
      return ask(self, path, body)
    end
    assert(session.client:ask("/v3/lease/revoke", { ID = session.lease }))
    local all = {}
    for i = 1, count do
      all[i] = players:add(server.url, "one", { token = token, name = ("many-%d-%d"):format(serial, i) })
      crown.spawn(function()
        all[i]:claim()
        ended = ended + 1
      end)
    end
    eventually(function() return ended == count end, 20)
    session.client.ask = nil
    assert(transactions < count / 2, transactions .. " transactions")
    for i = 1, count do all[i]:win() end
  end)
end)
