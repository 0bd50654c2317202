--- One run of a function for all who ask while it is under way. It runs in a task of its own, so that it goes on when the task
-- that began it is cancelled.
-- @internal crown.register.joined

local function finish(place, run, ...)
  if place.run == run then place.run = nil end
  for _, one in ipairs(run.waiting) do one:resolve(...) end
end

local function begin(env, place, patience, fn)
  local run, one = place.run, env.promise()
  if run and env.now() - run.began <= patience then
    run.waiting[#run.waiting + 1] = one
    return one
  end
  run = { began = env.now(), waiting = { one } }
  place.run = run
  env.detach(function()
    local fine, first, second, third = pcall(fn, run)
    if fine then finish(place, run, first, second, third) else finish(place, run, nil, tostring(first)) end
  end)
  return one
end

--- Waits for the run that is under way, or for one that begins now. A run that takes too long is given up: another one begins,
-- and `place.run` is no longer the old one.
-- @tparam table env `now`, `detach`, `promise`, `atomic`
-- @tparam table place its field `run` is the run under way
-- @number patience in seconds
-- @tparam function fn is given the run; returns up to three values
-- @return what fn returned; or nil and a message
return function(env, place, patience, fn)
  return env.atomic(begin, env, place, patience, fn):wait(math.huge)
end
