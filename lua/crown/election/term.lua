--- A term: one unbroken period of leading. Handlers get it from `won`.
-- @classmod crown.election.term

local usage = require "crown.check.usage"

local Term = {}
Term.__index = Term

local function method(self, name)
  if getmetatable(self) ~= Term then usage.error("term.%s() is a method: write term:%s()", name, name) end
end

--- Makes a term.
-- @param handle the election of crown.core.election
-- @string name of the election
-- @number epoch its fencing token
function Term.new(handle, name, epoch)
  return setmetatable({ handle = handle, name = name, epoch = epoch }, Term)
end

--- How many seconds the term may act on; 0 when it is over, math.huge without a deadline.
function Term:remaining()
  method(self, "remaining")
  return self.handle:term_remaining(self.epoch)
end

--- Whether the term may act now.
function Term:valid()
  method(self, "valid")
  return self:remaining() > 0
end

return Term
