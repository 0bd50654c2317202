--- What both apps of the matrix begin with: the plan is read, and a healthy election starts, which says whether each refresh came in
-- time.
local crown = require "crown"

local REFRESH = 1

--- @string path of the plan
-- @treturn table the plan
return function(path)
  local file = assert(io.open(path))
  local plan = crown.json.decode(file:read "*a")
  file:close()
  local refreshed
  crown.on("leadership.refreshed", function(event)
    if event.name ~= "healthy" then return end
    local now = crown.now()
    print(now - (refreshed or now) < 2 * REFRESH and "REFRESHED" or "LATE " .. now - refreshed)
    refreshed = now
  end)
  crown.elect { name = "healthy", oracle = { "memory", ttl = 3 * REFRESH, refresh = REFRESH }, handlers = {
    won = function() print "HEALTHY" end,
    lost = function() print "UNHEALTHY" end,
  } }
  return plan
end
