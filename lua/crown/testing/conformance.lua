--- The contract suite: runs against any oracle. A factory makes candidates of one election that contend with each
-- other, each with its own token.
-- @module crown.testing.conformance

local figure = require "crown.check.figure"
local oracle = require "crown.election.contract"
local core = require "crown.core"
local eventually = require "crown.testing.eventually"

-- busted's own, which a spec's environment has; this module's has not.
local function busted_function(name)
  return require("busted")[name] or _G[name]
end

local EVICT_WAITS = 0.3 -- seconds

local serial = 0

-- A candidate: the oracle's state with a token of its own, and verdicts in place of raw returns.
local Candidate = {}
Candidate.__index = Candidate

local function options_of(suite)
  local opts = {}
  for key, value in pairs(suite.options) do opts[key] = value end
  return opts
end

-- What breaks the contract is said once, at once, by whatever case comes next too: waiting for it to mend is in vain.
local function broken(suite, problem)
  suite.broken = problem
  error(problem, 0)
end

-- Options that the oracle refuses are the factory's, and not those of the busted that called it.
local function init(suite, opts)
  if suite.broken then error(suite.broken, 0) end
  local fine, state, problem = pcall(suite.module.init, opts)
  if fine and state then return state end
  local why = tostring(not fine and state or problem or "it returned nothing"):gsub("^%S*busted/%S+:%d+: ", "")
  broken(suite, ("init refuses the options that the factory returns: %s"):format(why))
end

local function new_candidate(suite, election, node, token)
  serial = serial + 1
  local messages = {}
  local self = setmetatable({ suite = suite, module = suite.module, messages = messages, node = node }, Candidate)
  local opts = options_of(suite)
  opts.crown_name, opts.node, opts.given = election, node, suite.options
  opts.token = token or ("%s-%d"):format(core.token, serial)
  self.token = opts.token
  opts.send = function(message) messages[#messages + 1] = message return true end
  opts.emit = function() end
  opts.leading = function() return false end
  self.state = init(suite, opts)
  return self
end

function Candidate:call(fn, ...)
  if self.suite.broken then error(self.suite.broken, 0) end
  local fine, verdict = pcall(function(...) return { oracle.verdict(fn, self.state, self.module[fn](self.state, ...)) } end, ...)
  if not fine then broken(self.suite, ("%s raised: %s"):format(fn, tostring(verdict))) end
  if verdict[1] == "unknown" and tostring(verdict[2]):find("see the oracle contract", 1, true) then
    broken(self.suite, verdict[2])
  end
  return verdict
end

function Candidate:claim()
  return self:call "claim"
end

function Candidate:abdicate()
  if self.module.abdicate then self.module.abdicate(self.state) end
end

-- Claims until granted; a lease of the suite's own TTL may have to run out first.
function Candidate:win(seconds)
  local until_then = core.now() + (seconds or 5)
  local verdict
  repeat
    verdict = self:claim()
    if verdict[1] == "granted" then return verdict end
    if verdict[5] and (verdict[2] or math.huge) > until_then - core.now() then
      broken(self.suite, ("the oracle holds that its store may have forgotten who leads, and grants nothing for %s s: give it "
        .. "amnesia_wait = 0 in the options that the factory returns"):format(figure.about(verdict[2] or math.huge)))
    end
    core.sleep(0.005)
  until core.now() >= until_then
  error(("a free election was not granted within %s s; the last answer was: %s %s"):format(figure.exact(seconds or 5), verdict[1],
    tostring(verdict[2])), 2)
end

local function pair(suite)
  serial = serial + 1
  local election = ("conformance-%s-%d"):format(core.token, serial)
  return new_candidate(suite, election, "one"), new_candidate(suite, election, "two"), election
end

local function at_most(assert, value, most, what)
  assert(value <= most, ("%s is %s, and may be %s at most"):format(what, tostring(value), tostring(most)))
end

local function claims(suite, it, assert)
  it("grants a free election, with a delay until the next refresh that is shorter than its TTL", function()
    local one = pair(suite)
    local verdict = one:win()
    at_most(assert, -verdict[2], 0, "the refresh delay, negated,")
    if verdict[3] then at_most(assert, verdict[2], verdict[3] * 0.99, "the first refresh delay") end
    one:abdicate()
  end)

  it("never grants to a second candidate while the first one leads, and tells for how long in seconds", function()
    local one, two = pair(suite)
    local ttl = one:win()[3]
    for _ = 1, 5 do
      local verdict = two:claim()
      assert.equal("denied", verdict[1])
      if verdict[2] and ttl then at_most(assert, verdict[2], 2 * ttl + 1, "expires_in") end
    end
    one:abdicate()
  end)

  it("tells two candidates of one node name apart, by their tokens", function()
    local _, _, election = pair(suite)
    local one, two = new_candidate(suite, election, "one"), new_candidate(suite, election, "one")
    one:win()
    assert.equal("denied", two:claim()[1])
    one:abdicate()
  end)
end

local function refreshes(suite, it, assert)
  it("keeps the leader on refresh, in the same epoch", function()
    local one = pair(suite)
    local epoch = one:win()[4]
    for _ = 1, 3 do
      local verdict = one:call "refresh"
      assert.equal("granted", verdict[1])
      assert.equal(epoch, verdict[4])
      if verdict[3] then at_most(assert, verdict[2], verdict[3] * 0.99, "the refresh delay") end
    end
    one:abdicate()
  end)

  it("refuses a refresh to one who does not lead", function()
    local one, two = pair(suite)
    one:win()
    assert.are_not.equal("granted", two:call("refresh")[1])
    one:abdicate()
  end)

  if not suite.outage then return end
  it("knows nothing while the store cannot be asked, and goes on afterwards", function()
    local one = pair(suite)
    local epoch = one:win()[4]
    local over = suite.outage()
    local verdict = one:call "refresh"
    over()
    assert.equal("unknown", verdict[1])
    assert.equal("string", type(verdict[2]))
    eventually(function()
      verdict = one:call "refresh"
      return verdict[1] ~= "unknown"
    end, 10)
    assert.same({ "granted", epoch }, { verdict[1], verdict[4] })
    one:abdicate()
  end)
end

local function releases(suite, it, assert)
  it("frees the election at once on abdicate", function()
    local one, two = pair(suite)
    one:win()
    one:abdicate()
    assert.equal("granted", two:claim()[1])
    two:abdicate()
  end)

  it("does not win again by a refresh after abdicate", function()
    local one, two = pair(suite)
    one:win()
    one:abdicate()
    assert.are_not.equal("granted", one:call("refresh")[1])
    assert.equal("granted", two:claim()[1])
    two:abdicate()
    assert.are_not.equal("granted", one:call("refresh")[1])
  end)

  it("does not free somebody else's lease on abdicate", function()
    local one, two = pair(suite)
    one:win()
    two:abdicate()
    assert.equal("denied", two:claim()[1])
    assert.equal("granted", one:call("refresh")[1])
    one:abdicate()
  end)

  it("raises the epoch with every term, also across a release", function()
    local one, two = pair(suite)
    local last = 0
    for _ = 1, 3 do
      for _, candidate in ipairs { one, two } do
        local epoch = candidate:win()[4]
        if not epoch then return end -- an oracle without epochs
        assert(epoch > last, ("epoch %.0f was granted after epoch %.0f"):format(epoch, last))
        last = epoch
        candidate:abdicate()
      end
    end
  end)

  if not suite.numbered then return end
  it("does not let a release that comes late undo a later claim of the same candidate", function()
    local one, two, election = pair(suite)
    one:win()
    local again = new_candidate(suite, election, "one", one.token)
    assert.equal("granted", again:claim()[1])
    one:abdicate()
    assert.equal("granted", again:call("refresh")[1])
    assert.equal("denied", two:claim()[1])
    again:abdicate()
  end)
end

local function expiry(suite, it, assert)
  it("lets a lease that is not refreshed run out, and no sooner", function()
    local one, two = pair(suite)
    local verdict = one:win()
    local granted_at = core.now()
    two:win(verdict[3] + 5)
    at_most(assert, verdict[3] * 0.9, core.now() - granted_at, "nine tenths of the TTL")
    assert.are_not.equal("granted", one:call("refresh")[1])
    two:abdicate()
  end)
end

local function listed(suite, election)
  local found = assert(suite.module.list(options_of(suite)))
  for _, one in ipairs(found) do
    if one.name == election then return one end
  end
end

-- An error in it would else be one of a task that nobody looks at.
local function evict(suite, opts, election)
  local fine, found, problem, code = pcall(suite.module.evict, opts, election)
  if not fine then return nil, "evict raised: " .. tostring(found) end
  return found, problem, code
end

local function tools(suite, it, assert)
  if suite.module.timing then
    it("tells the timing that it grants", function()
      local one = pair(suite)
      local ttl, delay = suite.module.timing(options_of(suite))
      local verdict = one:win()
      one:abdicate()
      if ttl and verdict[3] then assert.equal(verdict[3], ttl) end
      if delay then at_most(assert, verdict[2], delay, "the first refresh delay") end
    end)
  end

  if suite.module.list then
    it("lists the leader and its epoch, and nobody after a release", function()
      local one, _, election = pair(suite)
      local epoch = one:win()[4]
      local found = listed(suite, election)
      assert.same({ "one", epoch }, { found and found.node, found and found.epoch })
      one:abdicate()
      found = listed(suite, election)
      assert.is_nil(found and found.node)
    end)
  end

  if suite.module.evict and suite.evicts ~= false then
    it("asks the leader to go, and waits until it has gone", function()
      local one, two, election = pair(suite)
      local epoch, evicted, problem = one:win()[4], nil, nil
      local opts = options_of(suite)
      opts.wait = 5
      core.spawn(function() evicted, problem = evict(suite, opts, election) end)
      eventually(function()
        local message = table.remove(one.messages, 1)
        local verdict = message and one:call("handle_info", message) or one:call "refresh" -- whichever is told first
        return problem or verdict[1] == "evicted"
      end)
      core.sleep(EVICT_WAITS)
      assert(evicted == nil and problem == nil,
        problem or "evict returned while the leader was still there")
      assert.are_not.equal("granted", two:claim()[1], "the lease of a leader that was evicted and is still there")
      one:abdicate()
      eventually(function() return evicted ~= nil or problem ~= nil end, 10)
      assert.same({ node = "one", epoch = epoch }, evicted, problem)
      assert.equal("granted", two:claim()[1])
      two:abdicate()
    end)

    it("tells of a leader that does not go, after as long as it was told to wait", function()
      local one, _, election = pair(suite)
      one:win()
      local opts = options_of(suite)
      opts.wait = EVICT_WAITS
      local evicted, problem = evict(suite, opts, election)
      assert.is_nil(evicted)
      assert.equal("string", type(problem))
      one:abdicate()
    end)

    it("says that nobody leads where there is nobody to evict", function()
      local one, _, election = pair(suite)
      for _ = 1, 2 do -- never led, and led no more
        local evicted, problem, code = evict(suite, options_of(suite), election)
        assert.same({ "nil", "string", "no_leader" }, { type(evicted), type(problem), code })
        one:win()
        one:abdicate()
      end
    end)
  end
end

-- The pair by which an oracle takes operators' orders.
local function orders(suite, it, assert)
  it("keeps a text of orders beside an election, and changes it only from the one that is named", function()
    local _, _, election = pair(suite)
    local module, opts = suite.module, options_of(suite)
    local function step(was, now, done, stands)
      assert.equal(done, module.swap_orders(opts, election, was, now))
      assert.equal(stands, module.look_orders(opts, election))
    end
    local first, second = '{"why":"it\\\'s 100 % \\"full\\""}', '{"pause":true}'
    assert.is_false(module.look_orders(opts, election))
    step(first, second, false, false)
    step(false, first, true, first)
    step(false, second, false, first)
    step(second, second, false, first)
    step(first, second, true, second)
    step(second, false, true, false)
  end)
end

-- What `crown-lua check --laws` tries, where the oracle stands on a store with two verbs.
local function laws(suite, it, assert)
  it("keeps the laws of a store that compares and swaps", function()
    local results, problem = suite.module.laws(options_of(suite))
    assert(results, problem)
    for _, one in ipairs(results) do assert(not one.broken, ("%s: %s"):format(one.law, tostring(one.broken))) end
  end)
end

local function cases(suite, it, assert)
  claims(suite, it, assert)
  refreshes(suite, it, assert)
  if suite.module.abdicate then releases(suite, it, assert) end
  if suite.expires then expiry(suite, it, assert) end
  tools(suite, it, assert)
  if suite.module.look_orders then orders(suite, it, assert) end
  if suite.module.laws then laws(suite, it, assert) end
end

--- Describes the suite for busted.
-- @string name what to call it
-- @tparam function factory called once; returns `{ module =, options = { … }, expires = true|false }`: the oracle's
-- module, the options that its init gets besides crown_name, node and token, and whether its leases run out. Optional:
-- `outage()` makes the store silent, and returns a function that ends that; `numbered = true`: claims are numbered, so that a
-- late release undoes nothing; `evicts = false`: an eviction needs more than a candidate that is played by hand
local function conformance(name, factory)
  local describe, it = busted_function "describe", busted_function "it"
  describe(name .. " keeps the oracle contract", function()
    cases(factory(), it, require "luassert")
  end)
end

return conformance
