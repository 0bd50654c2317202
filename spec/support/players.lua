--- Candidates for elections on one store, played by hand; what a test made ends with it.
local busted = require "busted"
local Player = require "support.oracle_candidate"

--- Makes the class of those of one oracle.
-- @tparam table kind `oracle`, its module; `prefix` of the names; `ttl`; `leave(player)`
-- @treturn table with `new`
return function(kind)
  local Players = {}
  Players.__index = Players

  local serial = 0

  local function begin(self)
    serial = serial + 1
    self.serial, self.name, self.all = serial, kind.prefix .. serial, {}
    return self
  end

  --- Makes none yet, for a name that no other test has.
  -- @treturn Players `name`: what the candidates stand for; `serial`, a number that no other test has
  function Players.new()
    return begin(setmetatable({}, Players))
  end

  --- Makes none yet, for each test of a `describe` anew.
  -- @tparam function url → that of the server
  -- @number[opt] ttl of theirs
  -- @treturn Players of the test that runs
  -- @treturn function candidate(node, options): adds one
  function Players.of_each_test(url, ttl)
    local self = setmetatable({ ttl = ttl }, Players)
    busted.before_each(function() begin(self) end)
    busted.after_each(function() self:close() end)
    return self, function(node, options) return self:add(url(), node, options) end
  end

  --- Adds a candidate.
  -- @string url of the server
  -- @string node
  -- @tparam[opt] table options of the oracle, beyond or instead of these
  -- @treturn Player of support.oracle_candidate
  function Players:add(url, node, options)
    local given = { name = self.name, node = node, url = url, ttl = self.ttl or kind.ttl }
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
