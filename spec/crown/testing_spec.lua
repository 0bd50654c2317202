-- The conformance suite must find what it is there for: each broken oracle fails it.
local crown = require "crown"
local run = require "support.run"
local tempdir = require "support.tempdir"

local BROKEN = {
  ["grants to everybody"] = "function M:claim() return true, 1, { ttl = 1, epoch = 1 } end M.refresh = M.claim",
  ["goes by the node's name"] = [[
    function M:claim() local l = leases[self.name] or {} leases[self.name] = l
      if l.node and l.node ~= self.node then return false end
      l.node = self.node l.epoch = (l.epoch or 0) + 1 return true, 1, { ttl = 1, epoch = l.epoch } end
    function M:refresh() local l = leases[self.name] or {} if l.node ~= self.node then return false end
      return true, 1, { ttl = 1, epoch = l.epoch } end
    function M:abdicate() local l = leases[self.name] or {} if l.node == self.node then l.node = nil end end]],
  ["forgets the epoch on release"] = [[
    function M:claim() local l = leases[self.name] if l and l.token ~= self.token then return false end
      leases[self.name] = { token = self.token } return true, 1, { ttl = 1, epoch = 1 } end
    function M:refresh() local l = leases[self.name] if not l or l.token ~= self.token then return false end
      return true, 1, { ttl = 1, epoch = 1 } end
    function M:abdicate() local l = leases[self.name] if l and l.token == self.token then leases[self.name] = nil end end]],
  ["lets anybody release"] = [[
    function M:claim() local l = leases[self.name] or { epoch = 0 } leases[self.name] = l
      if l.token and l.token ~= self.token then return false end
      l.token = self.token l.epoch = l.epoch + 1 return true, 1, { ttl = 1, epoch = l.epoch } end
    function M:refresh() local l = leases[self.name] or {} if l.token ~= self.token then return false end
      return true, 1, { ttl = 1, epoch = l.epoch } end
    function M:abdicate() local l = leases[self.name] if l then l.token = nil end end]],
}

-- A correct one, to be broken by a word: its functions are made of these lines.
local CORRECT = {
  claim = [[function M:claim()
    local l = leases[self.election] or { epoch = 0 } leases[self.election] = l
    if l.token and l.token ~= self.token then return false, { node = l.node, epoch = l.epoch, expires_in = 1 } end
    l.token, l.node, l.epoch, self.mine = self.token, self.node, l.epoch + 1, l.epoch + 1
    l.send = self.send
    return true, 0.3, { ttl = 1, epoch = l.epoch } end]],
  refresh = [[function M:refresh()
    if self.silent() then return nil, "no answer" end local l = leases[self.election] or {}
    if l.token ~= self.token or l.epoch ~= self.mine then return false end
    return true, 0.3, { ttl = 1, epoch = l.epoch } end]],
  abdicate = [[function M:abdicate() local l = leases[self.election] or {}
    if l.token == self.token and l.epoch == self.mine then l.token, l.node = nil, nil end end]],
  list = [[function M.list() local found = {}
    for name, l in pairs(leases) do found[#found + 1] = { name = name, node = l.node, epoch = l.epoch } end return found end]],
  timing = "function M.timing() return 1, 0.3 end",
  evict = [[function M.evict(opts, name) local l = leases[name]
    if not l or not l.token then return nil, "nobody leads", "no_leader" end
    local found = { node = l.node, epoch = l.epoch } l.send "go"
    local last = crown.now() + (opts.wait or 5)
    while l.token do if crown.now() > last then return nil, "it is still there" end crown.sleep(0.01) end
    return found end]],
  handle_info = "function M:handle_info(message) if message == 'go' then return false, { evicted = true } end end",
}
local ORDER = { "claim", "refresh", "abdicate", "list", "timing", "evict", "handle_info" }

local function correct_but(fn, before, after)
  local parts = {}
  for i, name in ipairs(ORDER) do
    parts[i] = CORRECT[name]
    if name == fn then
      local from, to = parts[i]:find(before, 1, true)
      parts[i] = parts[i]:sub(1, from - 1) .. after .. parts[i]:sub(to + 1)
    end
  end
  return table.concat(parts, "\n")
end

BROKEN["refreshes later than its lease lasts"] = correct_but("claim", "true, 0.3", "true, 3")
BROKEN["counts expires_in in milliseconds"] = correct_but("claim", "expires_in = 1 ", "expires_in = 1000 ")
BROKEN["wins by a refresh"] = correct_but("refresh", "l.token ~= self.token or l.epoch ~= self.mine", "l.token and l.token ~= self.token")
BROKEN["lets a late release undo a later claim"] = correct_but("abdicate", " and l.epoch == self.mine", "")
BROKEN["returns its state with a grant"] = correct_but("claim", "{ ttl = 1, epoch = l.epoch }", "self")
BROKEN["returns its state with a denial"] = correct_but("claim", "{ node = l.node, epoch = l.epoch, expires_in = 1 }", "self")
BROKEN["returns a lease as the grant"] = correct_but("refresh", "{ ttl = 1, epoch = l.epoch }", "l")
BROKEN["gives an epoch twice"] = correct_but("claim", "l.epoch + 1, l.epoch + 1", "math.max(l.epoch, 1), math.max(l.epoch, 1)")
BROKEN["lists a leader who has released"] = correct_but("abdicate", "l.token, l.node = nil, nil", "l.token = nil")
BROKEN["tells another timing than it grants"] = correct_but("timing", "return 1", "return 2")
BROKEN["does not say that it was asked to go"] = correct_but("handle_info", "evicted = true", "expires_in = 1")
BROKEN["does not wait until who is evicted has gone"] = correct_but("evict", "while l.token do", "while false do")
BROKEN["takes the lease of who is evicted away"] = correct_but("evict", 'l.send "go"', 'l.send "go" l.token = nil crown.sleep(1)')
BROKEN["says that who does not go has gone"] = correct_but("evict", [[nil, "it is still there"]], "found")
BROKEN["tells another epoch of who was evicted"] = correct_but("evict", "epoch = l.epoch }", "epoch = l.epoch + 1 }")
BROKEN["evicts nobody without saying so"] = correct_but("evict", '"nobody leads", "no_leader"', '"nobody leads"')
BROKEN["stumbles over an eviction"] = correct_but("evict", "local found =", "local found = nil + ")
BROKEN["takes an outage for a loss"] = correct_but("refresh", [[nil, "no answer"]], "false")

-- The case that finds it, for those that are a word away from a correct one.
local FAILS = {
  ["refreshes later than its lease lasts"] = "first refresh delay is 3, and may be 0.99 at most",
  ["counts expires_in in milliseconds"] = "expires_in is 1000, and may be 3 at most",
  ["wins by a refresh"] = "win again by a refresh",
  ["lets a late release undo a later claim"] = "comes late",
  ["returns its state with a grant"] = "claim returned its own state as the grant",
  ["returns its state with a denial"] = "claim returned its own state as the holder",
  ["returns a lease as the grant"] = "refresh returned a grant with the unknown field '",
  ["gives an epoch twice"] = "epoch 1 was granted after epoch 1",
  ["lists a leader who has released"] = "nobody after a release",
  ["tells another timing than it grants"] = "the timing that it grants",
  ["does not say that it was asked to go"] = "asks the leader to go, and waits until it has gone",
  ["does not wait until who is evicted has gone"] = "evict returned while the leader was still there",
  ["takes the lease of who is evicted away"] = "a leader that was evicted and is still there",
  ["says that who does not go has gone"] = "a leader that does not go",
  ["tells another epoch of who was evicted"] = "asks the leader to go, and waits until it has gone",
  ["evicts nobody without saying so"] = "says that nobody leads where",
  ["stumbles over an eviction"] = "evict raised",
  ["takes an outage for a loss"] = "knows nothing while",
}

local SPEC = [[
local crown = require "crown"
local leases, silent = {}, false
local M = {}
M.__index = M
function M.init(opts)
  return setmetatable({ name = opts.crown_name, election = opts.crown_name, node = opts.node, token = opts.token, send = opts.send,
    silent = function() return silent end }, M)
end
%s
require("crown.testing").conformance("a broken oracle", function()
  return { module = M, options = {}, expires = false, numbered = true, outage = M.abdicate and function()
    silent = true
    return function() silent = false end
  end }
end)
]]

local function judged(code)
  local path = tempdir() .. "/oracle_spec.lua"
  local file = assert(io.open(path, "w"))
  file:write(SPEC:format(code))
  file:close()
  return run({ "/usr/bin/busted", "--ignore-lua", path }, { timeout = 30 })
end

describe("the conformance suite", function()
  for what, code in pairs(BROKEN) do
    it("fails an oracle that " .. what, function()
      local result = judged(code)
      assert.are_not.equal(0, result.code)
      assert.matches(FAILS[what] or "[1-9]%d* failure", result.stdout)
    end)
  end

  it("lets a correct one pass, whatever its fields are called", function()
    local result = judged(correct_but())
    assert.equal(0, result.code, result.stdout)
  end)

  it("says which call broke the contract, at once and in each case, instead of waiting for it to mend", function()
    for code, what in pairs {
      [ correct_but("claim", "true, 0.3", "true, 'soon'") ] = "claim returned true and a refresh delay of the text 'soon'",
      [ correct_but("claim", "local l =", "local l = nil + ") ] = "claim raised: .*arithmetic",
    } do
      local at = crown.now()
      local result = judged(code)
      assert.matches(what, result.stdout)
      assert.is_true(crown.now() - at < 15) -- a wait for it to mend is of twenty seconds
    end
  end)
end)
