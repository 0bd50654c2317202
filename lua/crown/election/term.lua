--- A term: one unbroken period of leading. Handlers get it from `won`.
-- @classmod crown.election.term

local Term = {}
Term.__index = Term

--- Makes a term.
-- @param handle the election of crown.core.election
-- @string name of the election
-- @number epoch its fencing token
function Term.new(handle, name, epoch)
  return setmetatable({ handle = handle, name = name, epoch = epoch }, Term)
end

--- How many seconds the term may act on; 0 when it is over, math.huge without a deadline.
function Term:remaining()
  return self.handle:term_remaining(self.epoch)
end

--- Whether the term may act now.
function Term:valid()
  return self:remaining() > 0
end

return Term
