--- The condition of a server that is asked by requests of their own, each with whatever connection it gets: HTTP.
-- @internal crown.link.asked

local conditions = require "crown.link.conditions"
local core = require "crown.core"

local Asked = {}
Asked.__index = Asked

--- Makes one; it is shown while somebody holds it.
-- @string store
-- @string server
-- @tparam[opt] table connections `limit`: how many there can be at most; `count()`: how many there may be now
-- @treturn Asked
function Asked.new(store, server, connections)
  local self = setmetatable({ store = store, server = server, limit = connections and connections.limit,
    count = connections and connections.count, state = "not asked yet", since = core.now(), reconnects = 0 },
    Asked)
  conditions.add(self)
  return self
end

--- Takes note of a first request, which may be held open for long.
function Asked:begin()
  if self.state == "not asked yet" then self.state, self.since = "asked", core.now() end
end

--- Takes note of how a request ended.
-- @bool fine whether the server answered as it should
-- @string[opt] problem why not
function Asked:note(fine, problem)
  local state = fine and "proven" or "broken"
  if fine then self.heard, self.problem = core.now(), nil end
  if not fine then
    if self.state == "proven" then self.reconnects = self.reconnects + 1 end
    self.problem = problem
  end
  if state ~= self.state then self.state, self.since = state, core.now() end
end

function Asked:condition()
  self.connections = self.count and self.state ~= "not asked yet" and self.count() or self.limit and 0 or nil
  return self
end

return Asked
