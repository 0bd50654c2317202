--- Tasks of the runtimes of support.register_world, and their clocks: what the register is given as `env`.
local Renewals = require "support.register_renewals"
local servers = require "support.register_servers"
local unique = servers.unique

-- What a stopped process is told waits until it goes on.
local function deliver(world, node, fn)
  if node.dead then return end
  if node.stopped and node.stopped > world.clock.now then
    return world.clock:after(node.stopped - world.clock.now, function() deliver(world, node, fn) end)
  end
  fn()
end

local function after(world, node, seconds, fn)
  world.clock:after(seconds / node.rate, function() deliver(world, node, fn) end)
end

local function resume(world, node, task, ...)
  if task.cancelled or node.dead then return end
  local outer = world.task
  world.task = task
  local results = { coroutine.resume(task.thread, ...) }
  world.task = outer
  if not results[1] then error(debug.traceback(task.thread, tostring(results[2])), 0) end
  if coroutine.status(task.thread) == "dead" then return task.done and task.done(unpack(results, 2, 4)) end
  results[2](function(...)
    local values = { ... }
    deliver(world, node, function() resume(world, node, task, unpack(values, 1, 3)) end)
  end)
end

local function spawn(world, node, done, fn, ...)
  local task = { thread = coroutine.create(fn), done = done }
  resume(world, node, task, ...)
  return task
end

local function promise(world, node)
  local one = { values = nil, waiting = nil }
  function one:resolve(...)
    if self.values then return end
    self.values = { ... }
    if self.waiting then self.waiting(unpack(self.values, 1, 3)) end
  end
  function one:wait()
    if self.values then return unpack(self.values, 1, 3) end
    return coroutine.yield(function(go_on)
      self.waiting = function(...)
        local values = { ... }
        after(world, node, 0, function() go_on(unpack(values, 1, 3)) end)
      end
    end)
  end
  return one
end

local function env_of(world, node)
  return {
    now = function() return world.clock.now * node.rate + node.offset end,
    time = function() return math.floor(world.clock.now * 1000) + node.ahead end,
    nonce = function() return ("%d"):format(unique(world)) end,
    random = world.random,
    promise = function() return promise(world, node) end,
    detach = function(fn, ...)
      local words = { ... }
      after(world, node, 0, function() spawn(world, node, nil, fn, unpack(words)) end)
    end,
    sleep = function(seconds) coroutine.yield(function(go_on) after(world, node, seconds, go_on) end) end,
    atomic = function(fn, ...) return fn(...) end,
    wall_offset = function() return 0 end,
    renewals = Renewals.of(function() return world.clock.now * node.rate + node.offset end, world.random),
  }
end

return { after = after, spawn = spawn, env_of = env_of }
