--- An oracle's state played by hand, without a runtime around it: one candidate, its verdicts and its messages.
local assert = require "luassert"
local core = require "crown.core"
local eventually = require("crown.testing").eventually
local oracle = require "crown.election.contract"
local Stillness = require "support.stillness"

local Player = {}
Player.__index = Player

-- Seconds that a server has for an answer, so that a machine that stands still for a moment is no answer of the store's. A test
-- of a server that does not answer gives its own.
local PATIENCE = 20
local OVER_MOST = 2 -- seconds that a candidate may wait beyond its time-out, less what the machine stood still

local serial = 0

--- @tparam table module the oracle
-- @tparam table options its options; `name` of the election and `node` besides; `timeout` false: what the oracle makes of the TTL
function Player.new(module, options)
  serial = serial + 1
  local self = setmetatable({ module = module, messages = {}, events = {} }, Player)
  local opts = { crown_name = options.name, node = options.node or "node", token = ("%s-%d"):format(core.token, serial),
    given = {} }
  for key, value in pairs(options) do
    if key ~= "name" and key ~= "node" then opts[key] = value end
    if key ~= "name" and key ~= "node" and key ~= "token" then opts.given[key] = value end -- the runtime's, in place of its own
  end
  if opts.timeout == nil and (opts.url or opts.urls) then opts.timeout = PATIENCE end
  opts.timeout, opts.given.timeout = opts.timeout or nil, opts.given.timeout or nil
  opts.send = function(message) self.messages[#self.messages + 1] = message return true end
  opts.emit = function(event, fields) self.events[#self.events + 1] = { event = event, fields = fields } end
  self.state, self.timeout = assert(module.init(opts)), opts.timeout
  return self
end

--- Calls a function of the oracle.
-- @treturn table the verdict: `{ "granted", delay, ttl, epoch }`, `{ "denied", expires_in, node, epoch, amnesia, retry_in }`,
-- `{ "unknown", reason }`, …
function Player:call(fn, ...)
  return { oracle.verdict(fn, self.state, self.module[fn](self.state, ...)) }
end

function Player:claim() return self:call "claim" end

--- Claims until it is granted.
-- @treturn table the verdict
function Player:win()
  local verdict
  eventually(function() verdict = self:claim() return verdict[1] == "granted" end, 20)
  return verdict
end

--- Calls a function of the oracle until the store has answered.
-- @string what
-- @number[opt] seconds at most (20)
-- @treturn table the verdict
function Player:answered(what, seconds)
  local verdict
  eventually(function()
    verdict = self:call(what)
    return verdict[1] ~= "unknown"
  end, seconds or 20)
  return verdict
end

function Player:refresh() return self:call "refresh" end
function Player:abdicate() self.module.abdicate(self.state) end

--- The first message that waits, taken out.
function Player:message()
  return table.remove(self.messages, 1)
end

--- Whether an event was emitted.
function Player:emitted(name)
  for _, one in ipairs(self.events) do
    if one.event == name then return one.fields or {} end
  end
end

--- Does what its time-out has to end, and sees to it that it takes hardly longer.
-- @func fn
-- @treturn number seconds that it took
function Player:in_time(fn)
  return Stillness.within(self.timeout + OVER_MOST, fn)
end

--- Leads while its server does not answer for a moment: not known is no loss, and has its time-out, which it was given.
-- @tparam table server with `freeze` and `thaw`
function Player:outlasts(server)
  local epoch = self:win()[4]
  server:freeze()
  local took = self:in_time(function() assert.equal("unknown", self:refresh()[1]) end)
  server:thaw()
  assert.is_true(took > self.timeout - 0.01, took)
  eventually(function()
    local verdict = self:refresh()
    return verdict[1] == "granted" and verdict[4] == epoch
  end)
end

--- Leads, and steps down when it is evicted.
-- @tparam Player other waits meanwhile
-- @tparam function evict returns what the oracle's evict did
function Player:gives_way(other, evict)
  local epoch = self:win()[4]
  other:claim()
  core.spawn(function()
    eventually(function() return self:message() == "evict" end)
    assert.equal("evicted", self:call("handle_info", "evict")[1])
    self:abdicate()
  end)
  assert.same({ node = "one", epoch = epoch }, evict())
end

return Player
