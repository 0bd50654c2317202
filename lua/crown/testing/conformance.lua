--- The contract suite: runs against any oracle. A factory makes candidates of one election that contend with each
-- other, each with its own token.
-- @module crown.testing.conformance

local oracle = require "crown.election.contract"
local core = require "crown.core"
local eventually = require "crown.testing.eventually"

-- busted's own, which a spec's environment has; this module's has not.
local function busted_function(name)
  return require("busted")[name] or _G[name]
end

local serial = 0

-- A candidate: the oracle's state with a token of its own, and verdicts in place of raw returns.
local Candidate = {}
Candidate.__index = Candidate

local function new_candidate(suite, election, node)
  serial = serial + 1
  local messages = {}
  local self = setmetatable({ module = suite.module, messages = messages, node = node }, Candidate)
  local opts = {}
  for key, value in pairs(suite.options) do opts[key] = value end
  opts.crown_name, opts.node = election, node
  opts.token = ("%s-%d"):format(core.token, serial)
  opts.send = function(message) messages[#messages + 1] = message return true end
  opts.emit = function() end
  self.state = assert(suite.module.init(opts))
  return self
end

function Candidate:call(fn, ...)
  return { oracle.verdict(fn, self.module[fn](self.state, ...)) }
end

function Candidate:claim()
  return self:call "claim"
end

function Candidate:abdicate()
  if self.module.abdicate then self.module.abdicate(self.state) end
end

-- Claims until granted; a lease of the suite's own TTL may have to run out first.
function Candidate:win(seconds)
  return eventually(function()
    local verdict = self:claim()
    return verdict[1] == "granted" and verdict
  end, seconds)
end

local function cases(suite, it, assert)
  local function pair()
    serial = serial + 1
    local election = ("conformance-%d-%d"):format(os.time(), serial)
    return new_candidate(suite, election, "one"), new_candidate(suite, election, "two")
  end

  it("grants a free election, with a delay until the next refresh", function()
    local one = pair()
    local verdict = one:win()
    assert.is_true(verdict[2] > 0)
    one:abdicate()
  end)

  it("never grants to a second candidate while the first one leads", function()
    local one, two = pair()
    one:win()
    for _ = 1, 5 do assert.equal("denied", two:claim()[1]) end
    one:abdicate()
  end)

  it("tells two candidates of one node name apart, by their tokens", function()
    local one, two = pair()
    two = new_candidate(suite, two.state.name or "conformance-" .. serial, "one")
    one = new_candidate(suite, one.state.name or "conformance-" .. serial, "one")
    one:win()
    assert.equal("denied", two:claim()[1])
    one:abdicate()
  end)

  it("keeps the leader on refresh, in the same epoch", function()
    local one = pair()
    local epoch = one:win()[4]
    for _ = 1, 3 do
      local verdict = one:call "refresh"
      assert.equal("granted", verdict[1])
      assert.equal(epoch, verdict[4])
    end
    one:abdicate()
  end)

  it("refuses a refresh to one who does not lead", function()
    local one, two = pair()
    one:win()
    assert.are_not.equal("granted", two:call("refresh")[1])
    one:abdicate()
  end)

  if suite.module.abdicate then
    it("frees the election at once on abdicate", function()
      local one, two = pair()
      one:win()
      one:abdicate()
      assert.equal("granted", two:claim()[1])
      two:abdicate()
    end)

    it("does not free somebody else's lease on abdicate", function()
      local one, two = pair()
      one:win()
      two:abdicate()
      assert.equal("denied", two:claim()[1])
      assert.equal("granted", one:call("refresh")[1])
      one:abdicate()
    end)

    it("raises the epoch with every term, also across a release", function()
      local one, two = pair()
      local last = 0
      for _ = 1, 3 do
        for _, candidate in ipairs { one, two } do
          local epoch = candidate:win()[4]
          if not epoch then return end -- an oracle without epochs
          assert.is_true(epoch > last)
          last = epoch
          candidate:abdicate()
        end
      end
    end)
  end

  if suite.expires then
    it("lets a lease that is not refreshed run out, and no sooner", function()
      local one, two = pair()
      local verdict = one:win()
      local granted_at = core.now()
      two:win(verdict[3] + 5)
      assert.is_true(core.now() - granted_at >= verdict[3] * 0.9)
      assert.are_not.equal("granted", one:call("refresh")[1])
      two:abdicate()
    end)
  end
end

--- Describes the suite for busted.
-- @string name what to call it
-- @tparam function factory called once; returns `{ module =, options = { … }, expires = true|false }`: the oracle's
-- module, the options that its init gets besides crown_name, node and token, and whether its leases run out
local function conformance(name, factory)
  local describe, it = busted_function "describe", busted_function "it"
  describe(name .. " keeps the oracle contract", function()
    cases(factory(), it, require "luassert")
  end)
end

return conformance
