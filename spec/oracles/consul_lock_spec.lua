-- An election in the format of `consul lock`, on the stand-in: beside a peer that does what Consul's own client does, and what becomes of
-- a lock whose session ends early, or whose answer is lost.
local consul = require "crown.oracles.consul"
local core = require "crown.core"
local eventually = require("crown.testing").eventually
local json = require "crown.text.json"
local Player = require "support.oracle_candidate"
local run = require "support.run"
local Server = require "support.consul_server"

local FLAGS = "3304740253564472344"

-- As api/lock.go of Consul has it.
local Peer = {}
Peer.__index = Peer

function Peer.new(server, name)
  local answer = server:ask("PUT", "/v1/session/create", json.encode { Name = "Consul lock for 'work'", TTL = "15s" })
  return setmetatable({ server = server, key = name .. "/.lock", id = json.object(answer.body).ID }, Peer)
end

function Peer:put(how) return self.server:key("PUT", ("%s?%s=%s&flags=%s"):format(self.key, how, self.id, FLAGS)).body == "true" end
function Peer:acquire() return self:put "acquire" end

function Peer:release()
  assert(self:put "release")
  local entry = json.list(self.server:key("GET", self.key).body)[1]
  if not entry.Session then self.server:key("DELETE", ("%s?cas=%.0f"):format(self.key, entry.ModifyIndex)) end
end

describe("an election as consul lock has it", function()
  local server, name, players
  local serial = 0

  local function candidate(more)
    local options = server:options { recipe = "lock", ttl = 2, trust_empty = true, name = name, timeout = 1, retry = 1 }
    for key, value in pairs(more or {}) do options[key] = value end
    local one = Player.new(consul, options)
    players[#players + 1] = one
    return one
  end

  local function leave(one) consul.abdicate(one.state, true) end

  local function entry() return json.list(server:key("GET", name .. "/.lock?consistent").body or "[]")[1] end

  setup(function() server = Server.start() end)
  teardown(function() server:destroy() end)
  before_each(function()
    serial = serial + 1
    name, players = "lock-" .. serial, {}
    server:trick {}
  end)
  after_each(function()
    server:trick {}
    for _, one in ipairs(players) do leave(one) end
  end)

  it("is shared with consul lock, in both directions", function()
    local peer, ours = Peer.new(server, name), candidate()
    assert.is_true(peer:acquire())
    local _, _, leader = unpack(ours:claim())
    assert.equal("Consul lock for 'work'", leader)
    eventually(function() return ours.state.watch.is_live end, 5)
    assert.equal("Consul lock for 'work'", consul.list(server:options { recipe = "lock" })[1].node)
    local before = #ours.messages
    peer:release()
    eventually(function() return #ours.messages > before end, 5)
    assert.equal("granted", ours:claim()[1])
    assert.is_false(peer:acquire())
    assert.matches('"Flags":' .. FLAGS, server:key("GET", name .. "/.lock").body)
    assert.equal("granted", ours:refresh()[1])
    leave(ours)
    assert.matches('"Flags":' .. FLAGS, server:key("GET", name .. "/.lock").body)
    assert.is_true(peer:acquire()) -- at once: the lock was given back in order
    peer:release()
  end)

  it("is looked at by its followers when nobody tells them of changes any more", function()
    local one, two = candidate(), candidate()
    assert.equal("granted", one:claim()[1])
    assert.equal("denied", two:claim()[1])
    eventually(function() return two.state.watch.is_live end, 5)
    assert.equal("denied", two:claim()[1])
    local before = #two.messages
    server:down()
    eventually(function() return #two.messages > before and not two.state.watch.is_live end, 5)
    server:up()
    eventually(function() return two:claim()[1] == "denied" end, 5)
  end)

  it("is followed by many in one runtime with few of the connections that an agent allows", function()
    local leaders, all = {}, {}
    server:trick { connections = 24 }
    for i = 1, 30 do
      local own = ("%s.%d"):format(name, i)
      leaders[i], all[i] = candidate { name = own }, candidate { name = own }
    end
    for i = 1, 30 do
      assert.equal("granted", leaders[i]:claim()[1])
      assert.equal("denied", all[i]:claim()[1])
    end
    eventually(function() return all[30].state.watch.is_live end, 5)
    for i = 1, 30 do assert.equal("granted", leaders[i]:refresh()[1]) end
    local before = {}
    for i, one in ipairs(all) do before[i] = #one.messages end
    leave(leaders[7])
    eventually(function() return #all[7].messages > before[7] end, 5)
    assert.equal(before[8], #all[8].messages)
    assert.equal("granted", all[7]:claim()[1])
  end)

  it("refuses a key that is no lock", function()
    server:key("PUT", name .. "/.lock", "settings")
    assert.matches("is no lock of Consul's clients", candidate():claim()[2])
  end)

  it("is not led by another one before the lease is over, where a session ends as early as Consul may end it", function()
    server:trick { multiplier = 1 }
    local one, two = candidate(), candidate()
    local sent = core.now()
    assert.equal("granted", one:claim()[1])
    assert.equal("denied", two:claim()[1])
    two:win()
    assert.is_true(core.now() - sent >= 2)
    assert.equal("denied", one:refresh()[1])
    assert.equal("denied", one:claim()[1])
  end)

  it("keeps a lock back whose session somebody ends, for as long as its leader may lead", function()
    local one, two = candidate(), candidate()
    assert.equal("granted", one:claim()[1])
    assert.equal("denied", two:claim()[1])
    eventually(function() return one.state.watch.is_live end, 5)
    local ended, before = core.now(), #one.messages
    server:ask("PUT", "/v1/session/destroy/" .. entry().Session)
    local verdict = two:claim()
    assert.equal("denied", verdict[1])
    assert.matches("lock%-delay", tostring(consul.claim(two.state) == false and select(2, consul.claim(two.state)).error))
    eventually(function() return #one.messages > before end, 5) -- it is told, and not only at its next refresh
    assert.equal("denied", one:refresh()[1])
    two:win()
    assert.is_true(core.now() - ended >= 2)
  end)

  it("gives back what a claim may have won whose answer was lost", function()
    local one, two = candidate(), candidate()
    server:trick { unsaid = true, method = "PUT", count = 20 }
    for _ = 1, 3 do assert.equal("unknown", one:claim()[1]) end
    server:trick {}
    local version = one:claim()
    assert.equal("granted", version[1])
    assert.equal(version[4], entry().ModifyIndex)
    one:call "abdicate"
    assert.equal("granted", two:claim()[1])
  end)

  it("is led on by the runtime that comes after one that was killed", function()
    local one = candidate { token = "same" }
    local first = one:claim()
    assert.equal("granted", first[1])
    one.state.watch:stop()
    players = {}
    local other = candidate()
    assert.equal("denied", other:claim()[1])
    local again = candidate { token = "same" }
    local second = again:claim()
    assert.equal("granted", second[1])
    assert.is_true(second[4] > first[4])
    assert.equal("denied", other:claim()[1])
  end)

  it("is doubted in a new place, by newcomers too, and where indexes have gone back", function()
    local place = { url = server:options().url .. "/new-" .. serial, trust_empty = false, amnesia_wait = 2, ttl = 1 }
    local one = candidate(place)
    local began = core.now()
    assert.is_true(select(5, unpack(one:claim())) == true)
    place.trust_empty = true
    assert.equal("denied", candidate(place):claim()[1])
    one:win()
    assert.is_true(core.now() - began >= 2)
    local key = ("new-%d/believed,"):format(serial)
    assert.matches("fine", require("crown.text.base64").decode(json.list(server:key("GET", key).body)[1].Value))
    leave(one)
    assert.equal("granted", candidate(place):claim()[1])
    for _, player in ipairs(players) do leave(player) end
    server:key("DELETE", key)
    assert.equal("denied", one:claim()[1])
  end)

  it("is not won where another candidate begins to doubt at the same time", function()
    local one = candidate()
    assert.equal("granted", one:claim()[1])
    one:call "abdicate"
    local belief = one.state.belief
    local stands = belief.stands
    belief.stands = function(self, index) return stands(self, index - 1) end
    assert.equal("unknown", one:claim()[1])
    belief.stands = nil
    assert.equal("granted", one:claim()[1])
  end)

  it("takes a page of a proxy with status 200 for no empty place", function()
    local one = candidate()
    assert.equal("granted", one:claim()[1])
    server:trick { status = 200, message = "<html>captive portal</html>", count = 99, method = "GET" }
    local options = server:options { recipe = "lock", wait = 1 }
    for _, ask in ipairs { consul.evict, consul.list, consul.order } do
      options.order = { pause = true }
      local found, problem = ask(options, name)
      assert.is_nil(found)
      assert.matches("unexpected reply: is this Consul's HTTP port%?", problem)
    end
    server:trick {}
    one:call "abdicate"
  end)

  it("tells its leader that an operator wants it to go, and check what it lacks", function()
    local one = candidate()
    assert.equal("granted", one:claim()[1])
    eventually(function() return one.state.watch.is_live end, 5)
    local before = #one.messages
    local asked = false
    core.detach(function() asked = consul.evict(server:options { recipe = "lock", wait = 5 }, name) end)
    eventually(function() return #one.messages > before end, 5)
    assert.is_true(one:refresh()[1] ~= "granted")
    one:call "abdicate"
    eventually(function() return asked ~= false end, 5)
    assert.equal("node", asked.node)
    server:trick { anonymous = { "key:read", "key:list", "key:write" } }
    local result = run { "check", "--store", "--oracle", server:url "recipe=lock", "run", name, "true" }
    assert.matches('session:write: session_prefix "" { policy = "write" }', result.stdout, 1, true)
    server:trick { anonymous = Server.RIGHTS }
  end)
end)
