-- What refreshes the leaders of a runtime on etcd, and has them leave: one question for all, and no call of the oracle while nothing
-- has changed.
local base64 = require "crown.text.base64"
local crown = require "crown"
local Elections = require "support.elections"
local Etcd = require "support.etcd"
local etcd = require "crown.oracles.etcd"
local eventually = require("crown.testing").eventually
local refreshed_together = require "support.refreshed"

local MANY, TTL = 200, 9

local server
local states = {} -- by election

local init = etcd.init
function etcd.init(opts)
  local state, problem = init(opts)
  states[opts.crown_name] = state
  return state, problem
end

local function key_of(name) return base64.decode(states[name].place.encoded) end

local function keys_of(name)
  return server:ctl("get", "--prefix", "--keys-only", name .. "/")
end

refreshed_together("a leader's key on etcd", {
  oracle = etcd, word = "etcd",
  start = function() server = Etcd.start():trusted() end,
  url = function() return server.url end,
  ends_at = function(name) return states[name].place.sent end,
  is_free = function(name) return keys_of(name) == "" end,
  evict = function(name) server:ctl("put", name .. ".evict", key_of(name)) end,
  take = function(name)
    server:ctl("put", name .. "/abc", "somebody")
    server:ctl("del", key_of(name))
  end,
  taken = "our key is gone from the store",
  freeze = function() server:freeze() end,
  thaw = function() server:thaw() end,
  more = function(it, leader, refreshed, is_lost)
    -- Also where the word of the watch is not acted on.
    local function unheard(name) states[name].place.send = function() end end

    it("is lost by the next refresh when it is known to be gone", function()
      local election = leader()
      unheard(election.name)
      refreshed(1)
      server:ctl("del", key_of(election.name))
      assert.same({ "denied", "our key is gone from the store" }, { is_lost().reason, is_lost().error })
    end)

    it("is given up by the next refresh when it is known that the leader is to go, and contended for with another key", function()
      local election, problems = leader(), {}
      crown.on("oracle.error", function(event)
        if event.name == election.name then problems[#problems + 1] = event.error end
      end)
      unheard(election.name)
      server:ctl("put", election.name .. ".evict", key_of(election.name))
      assert.equal("evicted", is_lost().reason)
      eventually(function() return election:is_leader() end, 20)
      assert.same({}, problems)
    end)

    it("is deleted together with others, while the rest is led on", function()
      local stays, many = leader(), Elections.new()
      local all = many:lead(MANY, function() return { oracle = { "etcd", url = server.url, ttl = TTL, refresh = TTL / 12 } } end)
      local client, deletes = states[stays.name].session.client, 0
      local ask = client.ask
      function client.ask(self, path, body)
        if path == "/v3/kv/txn" and body.success[1].request_delete_range then deletes = deletes + 1 end
        return ask(self, path, body)
      end
      many:stop()
      client.ask = nil
      for _, one in ipairs(all) do assert.equal("", keys_of(one.name)) end
      assert.is_true(deletes > 0 and deletes <= MANY / 10, deletes)
      refreshed(2)
      assert.is_true(stays:is_leader())
    end)
  end,
})

teardown(function() server:destroy() end)
