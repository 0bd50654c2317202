--- Candidates for elections on etcd, played by hand; what a test made ends with it.
local etcd = require "crown.oracles.etcd"
local Player = require "support.oracle_candidate"

local Players = {}
Players.__index = Players

local serial = 0

--- Makes none yet, for a name that no other test has.
-- @treturn Players `name`: what the candidates stand for; `serial`, a number that no other test has
function Players.new()
  serial = serial + 1
  return setmetatable({ serial = serial, name = "e-" .. serial, all = {} }, Players)
end

--- Adds a candidate.
-- @string url of the server
-- @string node
-- @tparam[opt] table options of the oracle, beyond or instead of these
-- @treturn Player of support.oracle_candidate
function Players:add(url, node, options)
  local given = { name = self.name, node = node, url = url, ttl = 5 }
  for key, value in pairs(options or {}) do given[key] = value end
  local player = Player.new(etcd, given)
  self.all[#self.all + 1] = player
  return player
end

--- Has them leave.
function Players:close()
  for _, player in ipairs(self.all) do player:abdicate() end
end

return Players
