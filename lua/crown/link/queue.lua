--- What waits for its turn, the first that came first.
-- @internal crown.link.queue

local Queue = {}
Queue.__index = Queue

--- Makes an empty one.
-- @treturn Queue
function Queue.new()
  return setmetatable({ first = 1, last = 0 }, Queue)
end

--- Adds one at the end.
-- @param one not nil
function Queue:push(one)
  self.last = self.last + 1
  self[self.last] = one
end

--- The first one, which stays.
-- @return it, or nil when there is none
function Queue:peek()
  return self[self.first]
end

--- Takes the first one out.
-- @return it, or nil when there is none
function Queue:pop()
  if self.first > self.last then return nil end
  local one = self[self.first]
  self[self.first], self.first = nil, self.first + 1
  return one
end

return Queue
