--- Candidates for elections on one store, played by hand; what a test made ends with it.
local Player = require "support.oracle_candidate"

--- Makes the class of those of one oracle.
-- @tparam table kind `oracle`, its module; `prefix` of the names; `ttl`; `leave(player)`
-- @treturn table with `new`
return function(kind)
  local Players = {}
  Players.__index = Players

  local serial = 0

  --- Makes none yet, for a name that no other test has.
  -- @treturn Players `name`: what the candidates stand for; `serial`, a number that no other test has
  function Players.new()
    serial = serial + 1
    return setmetatable({ serial = serial, name = kind.prefix .. serial, all = {} }, Players)
  end

  --- Adds a candidate.
  -- @string url of the server
  -- @string node
  -- @tparam[opt] table options of the oracle, beyond or instead of these
  -- @treturn Player of support.oracle_candidate
  function Players:add(url, node, options)
    local given = { name = self.name, node = node, url = url, ttl = kind.ttl }
    for key, value in pairs(options or {}) do given[key] = value end
    local player = Player.new(kind.oracle, given)
    self.all[#self.all + 1] = player
    return player
  end

  --- Has them leave.
  function Players:close()
    for _, player in ipairs(self.all) do kind.leave(player) end
  end

  return Players
end
