--- How long nobody leads after a leader that has died, where followers have to watch its lease, or to ask for it: the lease's end
-- is not all that they wait for.
-- @internal crown.election.failover

local figure = require "crown.check.figure"

-- Rounded up: it is at most that long.
local function rounded(seconds)
  return figure.exact(math.ceil(seconds * 10 - 1e-6) / 10)
end

--- Puts it into the explanation of an election's timing.
-- @string text of crown.core.elections' `explain`
-- @tparam table module the oracle's; its `failover(opts)`, if there, says the seconds without a cool-down
-- @tparam table opts the oracle's options
-- @number cool_down in seconds
-- @treturn string
local function failover(text, module, opts, cool_down)
  if not module.failover then return text end
  return (text:gsub("(failover +at most )%S+", "%1" .. rounded(module.failover(opts) + cool_down)))
end

return failover
