--- Asks several servers at once. One that is silent is not waited for when the others have answered.
-- @internal crown.link.several

local core = require "crown.core"
local promise = require "crown.core.promise"

local several = {}

--- Asks each server by a task of its own. Waits until all have been asked, or what they said decides, or enough have answered
-- and the others had a moment more. Those go on: what they bring comes later.
-- @number count of servers
-- @tparam table wait `enough`: so many answers; `grace`: seconds that the others have then; `is_decided()`, where less decides;
-- `most`: seconds that are waited in all, where the servers' own time-outs allow for more
-- @func ask (the server's number) → whether it answered
-- @treturn number how many are silent so far
function several.ask(count, wait, ask)
  local left, answered, enough, rest = count, 0, promise(), promise()
  local is_over = false
  for i = 1, count do
    core.detach(function()
      if ask(i) then answered = answered + 1 end
      left = left - 1
      is_over = is_over or left == 0 or wait.is_decided ~= nil and wait.is_decided()
      if is_over then rest:resolve(true) end
      if is_over or answered >= wait.enough then enough:resolve(true) end
    end)
  end
  enough:wait(wait.most or math.huge)
  if not is_over then rest:wait(wait.grace) end
  return left
end

return several
