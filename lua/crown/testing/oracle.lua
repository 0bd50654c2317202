--- An oracle that a spec plays by hand: it grants, denies and fails as told, and writes down what it was asked.
-- @module crown.testing.oracle

local FakeOracle = {}
FakeOracle.__index = FakeOracle

local function answer(self, fn)
  self.calls[#self.calls + 1] = fn
  local script = self.answers[fn]
  local given = script[1]
  if #script > 1 then table.remove(script, 1) end
  if type(given) == "function" then return given(self) end
  return unpack(given, 1, given.n)
end

local function pack(...)
  return { n = select("#", ...), ... }
end

--- From now on claims and refreshes are granted.
-- @number[opt=1] delay of the next refresh, in seconds
-- @tparam[opt] table grant `{ ttl =, epoch = }`
function FakeOracle:grant(delay, grant)
  self.answers.claim = { pack(true, delay or 1, grant) }
  self.answers.refresh = { pack(true, delay or 1, grant) }
  return self
end

--- From now on claims and refreshes are denied.
-- @tparam[opt] table holder `{ node =, epoch =, expires_in = }`
function FakeOracle:deny(holder)
  self.answers.claim, self.answers.refresh = { pack(false, holder) }, { pack(false, holder) }
  return self
end

--- From now on nothing is known.
-- @string[opt] reason
function FakeOracle:fail(reason)
  self.answers.claim = { pack(nil, reason or "out of order") }
  self.answers.refresh = { pack(nil, reason or "out of order") }
  return self
end

--- Sets a function's answers one by one; the last one stays.
-- @string fn "claim", "refresh", "abdicate" or "handle_info"
-- @tparam table answers arrays of return values, or functions that are called
function FakeOracle:answer(fn, answers)
  self.answers[fn] = answers
  return self
end

--- How often a function was called.
-- @string fn its name
function FakeOracle:count(fn)
  local count = 0
  for _, called in ipairs(self.calls) do
    if called == fn then count = count + 1 end
  end
  return count
end

--- Makes an oracle for `oracle = fake` in crown.elect.
-- @treturn FakeOracle denying until told otherwise
local function fake_oracle()
  local answers = { abdicate = { {} }, handle_info = { {} } }
  local self = setmetatable({ calls = {}, name = "fake", answers = answers }, FakeOracle)
  self:deny()
  self.init = function() return self end
  for _, fn in ipairs { "claim", "refresh", "abdicate", "handle_info" } do
    self[fn] = function() return answer(self, fn) end
  end
  return self
end

return fake_oracle
