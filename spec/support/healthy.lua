--- A healthy election in the memory of a program that other things happen to: it says whether each refresh came in time.
local crown = require "crown"
local read_file = require "crown.text.read_file"

local REFRESH = 1
local TTL = 12 -- far more than two refreshes: on a busy machine it is the refreshes that tell, less what others had

-- Seconds for which this thread could have run while others had the processor.
local function waited()
  return tonumber((read_file "/proc/self/schedstat" or ""):match "^%d+ (%d+)" or 0) / 1e9
end

--- Starts it. It prints HEALTHY or UNHEALTHY, then REFRESHED each second, or LATE, with the pause and the instant: a pause of two
-- seconds, less what other processes had the processor for, is a refresh that was missed, unless the machine stood still.
return function()
  local refreshed, before
  crown.on("leadership.refreshed", function(event)
    if event.name ~= "healthy" then return end
    local now, others = crown.now(), waited()
    local pause = refreshed and now - refreshed - (others - before) or 0
    print(pause < 2 * REFRESH and "REFRESHED" or ("LATE %.3f s at %.3f"):format(pause, now))
    refreshed, before = now, others
  end)
  crown.elect { name = "healthy", oracle = { "memory", ttl = TTL, refresh = REFRESH }, handlers = {
    won = function(term) print "HEALTHY" while term:valid() do crown.sleep(0.1) end end,
    lost = function() print "UNHEALTHY" end,
  } }
end
