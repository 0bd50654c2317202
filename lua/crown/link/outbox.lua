--- Writes for one connection: what is written in one turn goes out at once, by one task; what comes while it writes goes out
-- with its next write. Several tasks may write: none is interrupted between two halves of a change.
-- @module crown.link.outbox

local core = require "crown.core"

local Outbox = {}
Outbox.__index = Outbox

local function take(self)
  local waiting = self.waiting
  self.waiting, self.size = {}, 0
  self.writing = #waiting > 0 and not self.failed
  return self.writing and waiting
end

local function write_all(self)
  local waiting = core.atomic(take, self)
  while waiting do
    local written, problem = self.stream:write(table.concat(waiting))
    if not written then
      self.failed = true
      self.on_failure(problem)
    end
    waiting = core.atomic(take, self)
  end
end

--- Makes one.
-- @param stream the connection, of crown.core.tcp
-- @tparam function on_failure called with what went wrong, once
-- @treturn Outbox its `size` is how many bytes wait
function Outbox.new(stream, on_failure)
  return setmetatable({ stream = stream, on_failure = on_failure, waiting = {}, size = 0 }, Outbox)
end

local function add(self, bytes)
  self.waiting[#self.waiting + 1] = bytes
  self.size = self.size + #bytes
  if self.writing then return end
  self.writing = true
  core.detach(write_all, self)
end

--- Writes soon.
-- @string bytes
function Outbox:write(bytes)
  core.atomic(add, self, bytes)
end

return Outbox
