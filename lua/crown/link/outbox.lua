--- Writes for one connection: what is written in one turn goes out at once, by one task; what comes while it writes goes out
-- with its next write. Several tasks may write: none is interrupted between two halves of a change. Much goes out in pieces,
-- so the connection's time-out is one for progress, however much waits.
-- @internal crown.link.outbox

local core = require "crown.core"

local Outbox = {}
Outbox.__index = Outbox

local PIECE = 262144 -- bytes that are written at once
local LARGE = 16384  -- bytes that go out alone: joined to others they would be copied, and the copy collected

local function take(self)
  local from, waiting, bytes = self.first, self.waiting, 0
  while self.first <= self.last and bytes < PIECE do
    local size = #waiting[self.first]
    if bytes > 0 and size >= LARGE then break end
    bytes = bytes + size
    self.first = self.first + 1
    if size >= LARGE then break end
  end
  self.size = self.size - bytes
  self.writing = bytes > 0 and not self.failed
  local piece = self.writing and table.concat(waiting, "", from, self.first - 1)
  for i = from, self.first - 1 do waiting[i] = nil end
  return piece
end

local function write_all(self)
  local piece = core.atomic(take, self)
  while piece do
    local written, problem, code = self.stream:write(piece)
    if not written then
      self.failed = true
      self.on_failure(problem, code)
    end
    piece = core.atomic(take, self)
  end
end

--- Makes one.
-- @param stream the connection, of crown.core.tcp
-- @tparam function on_failure called with what went wrong and its code, once
-- @treturn Outbox its `size` is how many bytes wait
function Outbox.new(stream, on_failure)
  return setmetatable({ stream = stream, on_failure = on_failure, waiting = {}, first = 1, last = 0, size = 0 }, Outbox)
end

local function add(self, bytes, more)
  self.last = self.last + 1
  self.waiting[self.last] = bytes
  self.size = self.size + #bytes
  if more then return add(self, more) end
  if self.writing then return end
  self.writing = true
  core.detach(write_all, self)
end

--- Writes soon.
-- @string bytes
-- @string[opt] more what follows them: long bytes are not copied
function Outbox:write(bytes, more)
  core.atomic(add, self, bytes, more)
end

return Outbox
