--- Candidates for advisory locks, played by hand; what a test made ends with it.
local advisory = require "crown.oracles.postgres_advisory"
local Player = require "support.oracle_candidate"

local Players = {}
Players.__index = Players

local serial = 0

--- Makes none yet, for a name that no other test has.
-- @treturn Players `name`: what the candidates stand for
function Players.new()
  serial = serial + 1
  return setmetatable({ name = "advisory-" .. serial, all = {} }, Players)
end

--- Adds a candidate.
-- @string url of the server
-- @string node
-- @tparam[opt] table options of the oracle, beyond or instead of these
-- @treturn Player of support.oracle_candidate
function Players:add(url, node, options)
  local given = { name = self.name, node = node, url = url, ttl = 2 }
  for key, value in pairs(options or {}) do given[key] = value end
  local player = Player.new(advisory, given)
  self.all[#self.all + 1] = player
  return player
end

--- Ends their sessions.
function Players:close()
  for _, player in ipairs(self.all) do player.state.session.client:close() end
end

return Players
