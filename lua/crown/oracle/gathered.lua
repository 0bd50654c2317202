--- Refreshes and releases of thousands of leases without a task each: those that come close together are asked for by one
-- call. The oracle's own `refresh` judges what is not as it was (runtime/candidate/refresher.h).
-- @internal crown.oracle.gathered

local core = require "crown.core"
local gather = require "crown.core.gather"
local promise = require "crown.core.promise"

-- Whoever has gone meanwhile is not asked for. Of two answers the first counts: the store's, or that there is none in time.
local function asked_by(run, options, window)
  local function ask(batch)
    core.sleep(window)
    local states = batch:take()
    if #states == 0 then return end
    local answer = promise()
    core.detach(function() answer:resolve(run(states)) end)
    local epochs, problem, code = answer:wait(options.timeout)
    if code == "timeout" then problem = options.late() end
    batch:answer(epochs, problem)
  end
  return function(batch) core.detach(ask, batch) end
end

--- Makes what a grant may carry as `refresher`. It is never collected: elections that are alike share one.
-- @tparam table options `ttl` and `delay` of each grant; `timeout`; `window`, for which a refresh waits for company, all in
-- seconds; `most` leases in a call; `refresh(states)` → for each of these oracle states the epoch of its lease, where all is as
-- it was, or false: then its oracle is asked; or nil and a message; `release(states)`; `late()` → what is said of a store that
-- does not answer in time
-- @treturn userdata
return function(options)
  return gather { ttl = options.ttl, delay = options.delay, most = options.most,
    refresh = asked_by(options.refresh, options, options.window), release = asked_by(options.release, options, 0) }
end
