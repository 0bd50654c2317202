--- The wall clock of a server that judges leases by it, watched by a clock that never jumps. When it is stepped forward, leases
-- end early there. Each answer that tells the server's time shows how far the two are apart at least (the answer was under way
-- for no time) and at most (the question was). What is apart at least by more than it was at most before has been stepped.
-- A step back makes leases longer, until the clock is put right: `due` is for a store that notes such steps.
-- @internal crown.oracle.server_clock

local core = require "crown.core"

local ServerClock = {}
ServerClock.__index = ServerClock

local DRIFT = 0.01 -- what the margin of a lease is for, as a part of the time that has passed
local SLACK = 0.02 -- seconds: servers tell milliseconds

--- Makes one.
-- @treturn ServerClock
function ServerClock.new()
  return setmetatable({}, ServerClock)
end

local function note_least(self, sent, now, server)
  local least = self.least and self.least - DRIFT * (now - self.least_at)
  local set_back = least ~= nil and server - sent < least - SLACK
  if not least or set_back or server - now > least then self.least, self.least_at = server - now, now end
end

--- What time the server's clock shows at least at any time from now on, unless it has been set back.
-- @treturn number seconds, to which comes
-- @treturn number this part of `crown.now()`; both 0 where nothing was seen of it yet
function ServerClock:course()
  if not self.least then return 0, 0 end
  return self.least + DRIFT * self.least_at - SLACK, 1 - DRIFT
end

--- What time the server's clock shows from now on at least, unless it has been set back.
-- @treturn number seconds; 0 where nothing was seen of it yet
function ServerClock:due()
  local base, rate = self:course()
  return base + rate * core.now()
end

--- Notes an answer.
-- @number sent `crown.now()` before the question was sent
-- @number server the server's time in seconds
-- @treturn boolean whether the clock was found stepped forward since that question was sent
function ServerClock:saw(sent, server)
  local now = core.now()
  note_least(self, sent, now, server)
  local most = self.most and self.most + DRIFT * (now - self.at)
  local stepped = most ~= nil and server - now > most + SLACK
  if stepped then self.stepped = now end
  if not most or stepped or server - sent < most then self.most, self.at = server - sent, now end
  return self.stepped ~= nil and sent <= self.stepped
end

--- Notes an answer, as `saw` does. A step that was found stays a doubt until it is written down in the store.
-- @number sent
-- @number server
-- @treturn boolean whether there is a doubt that is not written down yet
function ServerClock:is_doubted(sent, server)
  self.doubted = self:saw(sent, server) or self.doubted or false
  return self.doubted
end

--- Notes that the doubt is written down in the store.
function ServerClock:settle()
  self.doubted = false
end

return ServerClock
