--- Does one thing for each of a list, all at once.
-- @internal crown.link.each

local core = require "crown.core"
local promise = require "crown.core.promise"

--- Calls a function for each of a list, and waits for all.
-- @tparam table list
-- @tparam function fn of one of it → a value; or nil, message, code
-- @treturn table the values, where there are any, at their places in the list
-- @treturn table of a call that gave none `{ message, code }`; nil: there is no such call
return function(list, fn)
  local values, failed, left, done = {}, nil, #list, promise()
  local function call(i)
    local fine, value, problem, code = pcall(fn, list[i])
    if not fine then value, problem, code = nil, tostring(value), nil end
    values[i] = value
    if value == nil then failed = { problem, code } end
    left = left - 1
    if left == 0 then done:resolve(true) end
  end
  for i = 1, #list do core.detach(call, i) end
  if #list > 0 then done:wait(math.huge) end
  return values, failed
end
