--- Writes for one connection: what is written in one turn goes out at once, by one task; what comes while it writes goes out
-- with its next write.
-- @module crown.outbox

local core = require "crown.core"

local Outbox = {}
Outbox.__index = Outbox

local function write_all(self)
  while #self.waiting > 0 and not self.failed do
    local bytes = table.concat(self.waiting)
    self.waiting, self.bytes = {}, 0
    local written, problem = self.stream:write(bytes)
    if not written then
      self.failed = true
      self.on_failure(problem)
    end
  end
  self.writing = false
end

--- Makes one.
-- @param stream the connection, of crown.core.tcp
-- @tparam function on_failure called with what went wrong, once
-- @treturn Outbox its `bytes` are those that wait
function Outbox.new(stream, on_failure)
  return setmetatable({ stream = stream, on_failure = on_failure, waiting = {}, bytes = 0 }, Outbox)
end

--- Writes soon.
-- @string bytes
function Outbox:write(bytes)
  self.waiting[#self.waiting + 1] = bytes
  self.bytes = self.bytes + #bytes
  if self.writing then return end
  self.writing = true
  core.detach(write_all, self)
end

return Outbox
