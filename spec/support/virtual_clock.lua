--- A clock that jumps from event to event: a binary heap by time, then by order.
local Clock = {}
Clock.__index = Clock

--- @number now where it begins, in seconds
function Clock.new(now)
  return setmetatable({ now = now, order = 0, heap = {} }, Clock)
end

local function before(a, b)
  if a.at ~= b.at then return a.at < b.at end
  return a.order < b.order
end

--- Calls a function when some seconds have passed.
function Clock:after(seconds, fn)
  self.order = self.order + 1
  local heap, event = self.heap, { at = self.now + seconds, order = self.order, fn = fn }
  local i = #heap + 1
  heap[i] = event
  while i > 1 do
    local up = math.floor(i / 2)
    if not before(heap[i], heap[up]) then break end
    heap[i], heap[up] = heap[up], heap[i]
    i = up
  end
end

--- Jumps to the next event.
function Clock:step()
  local heap = self.heap
  local event = heap[1]
  heap[1] = heap[#heap]
  heap[#heap] = nil
  local i = 1
  while true do
    local least = i
    for child = 2 * i, 2 * i + 1 do
      if heap[child] and before(heap[child], heap[least]) then least = child end
    end
    if least == i then break end
    heap[i], heap[least] = heap[least], heap[i]
    i = least
  end
  self.now = event.at
  event.fn()
end

return Clock
