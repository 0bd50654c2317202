-- How a term of crown.elect ends, and what its candidate does then.
local crown = require "crown"
local Elections = require "support.elections"
local promise = require "crown.core.promise"
local testing = require "crown.testing"

describe("crown.elect", function()
  local clock
  local mine = Elections.new()

  local function elect(options) return mine:elect(options) end

  after_each(function()
    if clock then clock:restore() end
    clock = nil
    mine:stop()
  end)

  describe("stands back for as long as restarts are counted, so that another candidate leads,", function()
    local function stands_back(options, within)
      local reason
      local fake = testing.fake_oracle():grant(60, { ttl = 600, epoch = 1 })
      options.oracle, options.handlers = fake, options.handlers or {}
      options.handlers.lost = function(why) reason = why end
      elect(options)
      testing.eventually(function() return reason end)
      testing.eventually(function() return fake:count "abdicate" == 1 end)
      fake:deny()
      clock = testing.fake_clock()
      clock:advance(within - 0.5)
      assert.equal(1, fake:count "claim")
      clock:advance(0.6)
      assert.equal(2, fake:count "claim")
      return reason
    end

    it("when its child failed", function()
      assert.equal("child_failed", stands_back({
        child = { command = { "false" }, restart = { policy = "temporary", within = 5 } } }, 5))
    end)

    it("when its child cannot be started", function()
      assert.equal("child_failed", stands_back({
        child = { command = { "/no/such/command" }, restart = { policy = "permanent", within = 5 } } }, 5))
    end)

    it("when its child failed too often", function()
      assert.equal("child_failed", stands_back({
        child = { command = { "false" }, restart = { policy = "permanent", max = 2, within = 5, backoff = { 0.01, 0.01 } } } }, 5))
    end)

    it("when its handler failed", function()
      assert.equal("handler_failed", stands_back({ handlers = { won = function() error "boom" end } }, 60))
    end)
  end)

  describe("when it is stopped", function()
    -- An answer that comes when the spec lets it come.
    local function later(gate, ...)
      local answers = { ... }
      return function()
        gate:wait(60)
        return unpack(answers)
      end
    end

    it("while a claim is under way: never leads, and gives back what it may have got", function()
      local fake, gate, won = testing.fake_oracle(), promise(), false
      fake:answer("claim", { later(gate, true, 5, { ttl = 60, epoch = 1 }) })
      local election = elect { oracle = fake, handlers = { won = function() won = true end } }
      testing.eventually(function() return fake:count "claim" == 1 end)
      election:stop()
      gate:resolve(true)
      testing.eventually(function() return election.handle:finished() end)
      assert.same({ { "claim", "abdicate" }, false }, { fake.calls, won })
    end)

    it("while a refresh is under way: gives the lease back once", function()
      local fake, gate = testing.fake_oracle():grant(0.02, { ttl = 60, epoch = 1 }), promise()
      fake:answer("refresh", { later(gate, true, 5, { ttl = 60, epoch = 1 }) })
      local election = elect { oracle = fake }
      testing.eventually(function() return fake:count "refresh" == 1 end)
      election:stop()
      gate:resolve(true)
      testing.eventually(function() return election.handle:finished() end)
      assert.same({ "claim", "refresh", "abdicate" }, fake.calls)
    end)

    it("ends although the store never answers, as a leader and as a follower", function()
      for _, leads in ipairs { true, false } do
        local fake = testing.fake_oracle():grant(60, { ttl = 600, epoch = 1 })
        fake:answer("abdicate", { function() crown.sleep(math.huge) end })
        if not leads then fake:answer("claim", { function() crown.sleep(math.huge) end }) end
        local election = elect { oracle = fake, call_timeout = 0.05 }
        testing.eventually(function() return fake:count "claim" == 1 and (election:is_leader() or not leads) end)
        election:stop()
        testing.eventually(function() return election.handle:finished() end)
        assert.equal(1, fake:count "abdicate")
      end
    end)
  end)
end)
