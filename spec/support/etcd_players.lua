--- Candidates for elections on etcd, played by hand.
local Players = require "support.players" { oracle = require "crown.oracles.etcd", prefix = "e-", ttl = 5,
  leave = function(player)
    player.state.session.client.ask = nil
    player:abdicate()
  end }

--- Has `answered(path, answer, problem, code)` see what a candidate is answered, until the test ends: what it returns is the
-- answer instead.
-- @tparam Player one
-- @tparam[opt] function answered
-- @treturn table how often each path was asked
function Players.overhear(one, answered)
  local client, count = one.state.session.client, {}
  local ask = client.ask
  function client.ask(self, path, body)
    count[path] = (count[path] or 0) + 1
    local answer, problem, code = ask(self, path, body)
    if answered then return answered(path, answer, problem, code) end
    return answer, problem, code
  end
  return count
end

return Players
