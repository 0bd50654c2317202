--- One connection to a store, made anew when it breaks: with the pauses of crown.core.retry, told once and not at every try. A
-- connection counts as good when it has lived for a moment: one that opens and dies at once is a failed try like any other, and
-- the pauses go on growing.
-- @internal crown.link.reconnecting

local barrier = require "crown.link.barrier"
local conditions = require "crown.link.conditions"
local core = require "crown.core"
local elections = require "crown.core.election"
local explain = require "crown.link.explain"
local figure = require "crown.check.figure"
local promise = require "crown.core.promise"
local retry = require "crown.core.retry"

local Reconnecting = {}
Reconnecting.__index = Reconnecting

local CAUSES_MOST = 8 -- that are told until then: a server may have a new word each time

local NO_TLS = "no answer to the beginning of TLS: is TLS turned on at the other end?"

-- A server without TLS may wait for more of what it takes for a question of its own.
local function without_tls(self)
  return self.opening and self.opening:step() == "handshaking" and NO_TLS
end

-- What happened, as a person reads it.
local function in_words(self, problem)
  if problem:find "timeout$" and without_tls(self) then problem = NO_TLS end
  if self.tls == nil then return problem end
  return explain.problem(problem, self.store, self.server, self.tls, (self.connection or self).heard ~= nil)
end

local function tell(self, event, problem, label)
  if not label then return end
  elections.emit(event, { store = label, server = self.server, error = problem and explain.bare(self.server or "", problem) })
end

-- Each cause is told once, until a connection has proved good.
local function tell_broken(self, reason)
  if self.told[reason] or self.told_count == CAUSES_MOST then return end
  self.told[reason], self.told_count = true, self.told_count + 1
  tell(self, "oracle.disconnected", reason, self.label)
end

local function tell_good(self)
  self.told, self.told_count, self.died_young = {}, 0, false
  tell(self, "oracle.connected", nil, self.label)
end

local function enter(self, state)
  self.state, self.since, self.opening = state, core.now(), nil
end

local function take_waiting(self)
  local waiting = self.waiting
  self.waiting = {}
  return waiting
end

local function wake(self, ...)
  for _, one in ipairs(core.atomic(take_waiting, self)) do one:resolve(...) end
end

-- The connection, if there is one; else the promise is kept for wake.
local function look(self, one)
  if self.connection or self.closed then return self.connection end
  self.waiting[#self.waiting + 1] = one
end

local connect

local function lost(self, connection, reason)
  if self.connection ~= connection then return end
  local settled = core.now() - self.opened >= retry.SETTLED
  self.connection, self.problem, self.heard = nil, reason, connection.heard or self.heard
  self.reconnects, self.died_young = self.reconnects + 1, not settled
  self.over:resolve(true)
  enter(self, "broken")
  if settled then self.backoff:reset() end
  tell_broken(self, reason)
  connect(self, true) -- with a pause: many lose theirs at the same moment
end

-- After tries that failed, or a connection that died young, a good one is told when it has proved good.
local function prove(self, connection, at_once)
  local over = promise()
  self.over = over -- a task that slept on would keep what connections that died had in memory
  if at_once then tell_good(self) end
  core.detach(function()
    over:wait(retry.SETTLED)
    if self.connection ~= connection then return end
    self.backoff:reset()
    self.problem = nil
    enter(self, "proven")
    if not at_once then tell_good(self) end
  end)
end

local function take(self, connection)
  self.connecting, self.connection, self.opened = false, connection, core.now()
  enter(self, "open")
  connection.on_close = function(reason) lost(self, connection, reason) end
  prove(self, connection, not self.died_young)
  wake(self, connection)
end

local function try(self)
  enter(self, "connecting")
  local connection, problem, code = barrier.call(self.open, self)
  if self.closed then
    if connection then connection:close() end
    return true
  end
  if connection and not connection.closed then
    take(self, connection)
    return true
  end
  self.problem = in_words(self, problem or connection and connection.closed or "the connection closed at once")
  self.code = code == "usage" and code or "closed"
  enter(self, "broken")
  tell_broken(self, self.problem)
  wake(self, nil, self.problem, self.code)
end

local function pause(self)
  self.paused = self.backoff:next()
  core.sleep(self.paused)
end

connect = function(self, after_a_pause)
  if self.connecting or self.closed then return end
  self.connecting, self.paused = true, 0
  core.detach(function()
    if after_a_pause then pause(self) end
    while not self.closed and not try(self) do pause(self) end
  end)
end

--- Makes one; it connects by itself.
-- @tparam table options `open(self)` → a connection (of crown.link.connection), or nil, a message and a code,
-- "usage" where the user is to mend something; it may
-- take `self:patience(timeout)` seconds for that, may set `self.server`, and hands on_opening and logging_in on to whom they
-- concern; `store`, how it is shown; `label` for events, nil for none; `quiet_label`: for no event but what the server refuses of
-- a connection that goes on; `timeout` in seconds; `server`, how messages name it;
-- `tls`, whether it is spoken, for those whose problems are put into words (crown.link.explain); `backoff` of crown.core.retry,
-- where it has one of its own
-- @treturn Reconnecting
function Reconnecting.new(options)
  local self = setmetatable({ open = options.open, label = options.label, quiet_label = options.quiet_label,
    timeout = options.timeout, store = options.store,
    server = options.server, tls = options.tls, waiting = {}, told = {}, told_count = 0,
    backoff = options.backoff or retry.new(), reconnects = 0,
    state = "connecting", since = core.now() }, Reconnecting)
  conditions.add(self)
  connect(self)
  return self
end

--- How long a try may take: as long as the pause before it at least, since on a busy host a login can take longer than any
-- question may.
-- @number timeout seconds for a question
-- @treturn number seconds
function Reconnecting:patience(timeout)
  return math.max(timeout, self.paused)
end

--- Waits until there is a connection.
-- @number[opt] timeout seconds
-- @return the connection; or nil, message, code
function Reconnecting:ready(timeout)
  local one = promise()
  local there = core.atomic(look, self, one)
  if there then return there end
  if self.closed then return nil, "closed", "closed" end
  local connection, problem, code = one:wait(timeout or self.timeout)
  if code == "timeout" then
    problem = self.problem or in_words(self, problem)
    if self.problem and self.code == "usage" then code = self.code end
  end
  return connection, problem, code
end

--- Why there is no connection, once a try has failed.
-- @treturn string a message; nil where there is one, or it was closed on purpose
function Reconnecting:trouble()
  return not self.connection and not self.closed and self.problem or nil
end

--- Why an answer did not come in time.
-- @number timeout seconds that it was waited for
-- @treturn string
function Reconnecting:late(timeout)
  return self:trouble() or in_words(self, ("no answer within %s s"):format(figure.about(timeout)))
end

--- Takes note of what is being opened, whose `step()` tells how far it is.
function Reconnecting:on_opening(opening)
  self.opening, self.since = opening, core.now()
end

--- Takes note that there is a connection, on which we log in.
function Reconnecting:logging_in()
  enter(self, "logging in")
end

--- Takes note of what a server refuses of a connection that goes on all the same. Told once, until it is allowed.
-- @string[opt] problem nil: the server refuses it no more
function Reconnecting:lacking(problem)
  if problem and self.lacks ~= problem then tell(self, "oracle.error", problem, self.label or self.quiet_label) end
  self.lacks = problem
end

--- How it is: "connecting" ("resolving", "dialling", "handshaking"), "logging in", "open", "proven" or "broken". See
-- crown.link.conditions.
function Reconnecting:condition()
  local connection = self.connection
  local problem = self.problem or connection and connection.lacks
  local state = self.opening and self.opening:step() or self.state
  if state == "proven" and connection and not connection.heard then state = "open" end -- it has lasted, and has said nothing yet
  return { store = self.store, server = self.server, state = state,
    since = self.since, heard = connection and connection.heard or self.heard, reconnects = self.reconnects,
    connections = (connection or self.opening or self.state == "logging in") and 1 or 0, limit = 1,
    problem = problem and explain.bare(self.server or "", problem) }
end

--- Ends it.
function Reconnecting:close()
  conditions.remove(self)
  local connection = self.connection
  self.closed, self.connection = true, nil
  if self.over then self.over:resolve(true) end
  wake(self, nil, "closed", "closed")
  if connection then connection:close() end
end

return Reconnecting
