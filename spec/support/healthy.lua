--- A healthy election in the memory of a program that other things happen to: it says whether each refresh came in time.
local crown = require "crown"

local REFRESH = 1

--- Starts it. It prints HEALTHY or UNHEALTHY, then REFRESHED each second, or LATE: a pause of two is a refresh that was missed.
return function()
  local refreshed
  crown.on("leadership.refreshed", function(event)
    if event.name ~= "healthy" then return end
    local now = crown.now()
    print(now - (refreshed or now) < 2 * REFRESH and "REFRESHED" or "LATE " .. now - refreshed)
    refreshed = now
  end)
  crown.elect { name = "healthy", oracle = { "memory", ttl = 3 * REFRESH, refresh = REFRESH }, handlers = {
    won = function(term) print "HEALTHY" while term:valid() do crown.sleep(0.1) end end,
    lost = function() print "UNHEALTHY" end,
  } }
end
