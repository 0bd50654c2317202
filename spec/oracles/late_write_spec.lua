-- A doubt, or a claim, that reaches a real server only after another candidate was granted the election. It changes nothing there.
local ConsulServer = require "support.consul_server"
local crown = require "crown"
local driven = require "crown.oracle.driven"
local eventually = require("crown.testing").eventually
local Player = require "support.oracle_candidate"
local S3Server = require "support.s3_server"

local function of_stand_in(Server)
  return function()
    local server = Server.start()
    return { where = server:options(), destroy = function() server:destroy() end }
  end
end

local SERVERS = {
  consul = of_stand_in(ConsulServer),
  mysql = function() return require("support.mysql").start() end,
  postgres = function() return require("support.postgres").start() end,
  redis = function() return require("support.redis").start() end,
  s3 = of_stand_in(S3Server),
}

-- An oracle whose writes wait while its `gate` is shut; `waiting` counts them.
local function with_a_gate(driver)
  local gate = { waiting = 0 }
  local function open(place)
    local store, problem = driver.open(place)
    if not store then return nil, problem end
    local swap = store.swap
    function store.swap(self, writes)
      gate.waiting = gate.waiting + 1
      while gate.is_shut do crown.sleep(0.01) end
      return swap(self, writes)
    end
    return store
  end
  return driven.oracle(setmetatable({ open = open }, { __index = driver })), gate
end

for word, start in pairs(SERVERS) do
  describe("late writes on " .. word, function()
    local server, slow, gate, oracle

    before_each(function()
      server = start()
      slow, gate = with_a_gate(require("crown.stores." .. word))
      oracle = driven.oracle(require("crown.stores." .. word))
    end)
    after_each(function()
      gate.is_shut = false
      server:destroy()
    end)

    local function candidate(module, node, trusts)
      local options = { name = "late", node = node, ttl = 5, amnesia_wait = 0, trust_empty = trusts }
      for key, value in pairs(server.where or { url = server.url }) do options[key] = value end
      return Player.new(module, options)
    end

    -- Claims, and its writes stand still on their way.
    local function claims_late(player)
      gate.is_shut, gate.waiting = true, 0
      local verdict
      crown.spawn(function() verdict = player:claim() end)
      eventually(function() return gate.waiting > 0 end, 20)
      return function()
        gate.is_shut = false
        eventually(function() return verdict end, 20)
        return verdict[1]
      end
    end

    local function leads_on(leader, epoch, other)
      for _ = 1, 2 do
        local verdict = leader:answered "refresh"
        assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
        assert.equal("denied", other:answered("claim")[1])
      end
    end

    it("let a doubt of an empty store change nothing once somebody leads there (S8)", function()
      local late, leader = candidate(slow, "late", false), candidate(oracle, "leader", true)
      local arrives = claims_late(late)
      local epoch = leader:win()[4]
      assert.are_not.equal("granted", arrives())
      leads_on(leader, epoch, late)
    end)

    it("let a claim change nothing once somebody else leads (S1)", function()
      local late, leader, first = candidate(slow, "late", true), candidate(oracle, "leader", true), candidate(oracle, "first", true)
      first:win()
      assert.equal("denied", late:answered("claim")[1])
      first:abdicate()
      local arrives = claims_late(late)
      local epoch = leader:win()[4]
      assert.are_not.equal("granted", arrives())
      leads_on(leader, epoch, late)
    end)
  end)
end
