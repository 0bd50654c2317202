--- The register in Redis, for specs that ask it by hand.
local driver = require "crown.stores.redis"

local register = {}

--- Opens one.
-- @string url
-- @tparam[opt] table more options of the oracle
-- @treturn table the store
function register.open(url, more)
  local place = { url = url, timeout = 20, options = { prefix = "crown", min_replicas = 0 } }
  for key, value in pairs(more or {}) do place.options[key] = value end
  place.timeout = place.options.timeout or place.timeout
  return assert(driver.open(place))
end

--- A key of an election.
-- @string name
-- @string[opt] what of it ("record")
-- @treturn string
function register.key_of(name, what) return ("crown:{%s}:%s"):format(name, what or "record") end

return register
