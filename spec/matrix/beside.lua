--- What both apps of the matrix begin with: the plan is read, and a healthy election starts, which says whether each refresh came in
-- time.
local crown = require "crown"
local healthy = require "support.healthy"

--- @string path of the plan
-- @treturn table the plan
return function(path)
  local file = assert(io.open(path))
  local plan = crown.json.decode(file:read "*a")
  file:close()
  healthy()
  return plan
end
