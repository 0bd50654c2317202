--- What can happen to a store, whatever store it is. A fault begins, lasts, and ends: `begin(world, random)` returns what
-- ends it, or nothing where that is its end.
local crown = require "crown"

local server_faults = {}

--- One that says what it does.
-- @string text
-- @tparam function act of the world → what ends the fault, or nil
-- @treturn table
function server_faults.said(text, act)
  return { weight = 1, begin = function(world)
    world:say(text)
    return act(world)
  end }
end

--- Of a server process: it crashes and comes back with what it has, or it is frozen.
-- @tparam table hands `down()`, `up()`, `freeze()`, `thaw()`
-- @treturn table the faults
function server_faults.of(hands)
  return {
    restart = { weight = 2, begin = function(world)
      world:say "the store crashes"
      hands.down()
      return hands.up
    end },
    freeze = { weight = 2, begin = function(world)
      world:say "the store freezes"
      hands.freeze()
      return hands.thaw
    end },
  }
end

--- The same, of whichever server `pick` names when it happens.
-- @tparam function pick `pick(random)` returns a server with `down`, `up`, `freeze`, `thaw`
-- @treturn table the faults
function server_faults.of_one(pick)
  return {
    restart = { weight = 2, begin = function(world, random)
      local server = pick(random)
      world:say("a server of the store crashes: port %d", server.port)
      server:down()
      return function() server:up() end
    end },
    freeze = { weight = 2, begin = function(world, random)
      local server = pick(random)
      world:say("a server of the store freezes: port %d", server.port)
      server:freeze()
      return function() server:thaw() end
    end },
  }
end

--- Several servers as the one of a store: what ends them all.
-- @tparam table servers
-- @treturn table
function server_faults.all(servers)
  return { destroy = function()
    for _, one in ipairs(servers) do one:destroy() end
  end }
end

--- What tells the port of each of several servers.
-- @tparam table servers
-- @treturn table of functions
function server_faults.ports(servers)
  local ports = {}
  for i, one in ipairs(servers) do
    ports[i] = function() return one.port end
  end
  return ports
end

--- Several servers in a URL.
-- @tparam table servers
-- @number[opt] ... of the ways to them
-- @treturn string
function server_faults.hosts(servers, ...)
  local hosts, ways = {}, { ... }
  for i, one in ipairs(servers) do hosts[i] = ("127.0.0.1:%d"):format(ways[i] or one.port) end
  return table.concat(hosts, ",")
end

--- The wall clock of one server, or of all, is stepped by hours, forward or back.
-- @tparam table clocks of support.wrong_clock that the servers go by
-- @bool[opt] epochs where all was lost epochs begin by that clock, so they may go back with it, as the page says
function server_faults.step(clocks, epochs)
  return { weight = 2, beside = true, begin = function(world, random)
    local hours, one = random(12) * (random(2) == 1 and 1 or -1), random(#clocks + 1)
    world.anew = world.anew or epochs and hours < 0
    world:say("the clock of %s is stepped by %+d h", clocks[one] and "server " .. one or "the store", hours)
    for i, clock in ipairs(clocks) do
      if i == one or not clocks[one] then clock:set(clock.seconds + hours * 3600) end
    end
  end }
end

local function hold_back(who)
  for _, way in ipairs(who.ways) do way.held = { there = true, back = true } end
  return function()
    for _, way in ipairs(who.ways) do way:free() end
    who.suffers = nil
  end
end

--- The wall clock of a server is set back, by seconds or by hours. Whoever leads goes by it for a while, and is cut off. Then the
-- clock is put right, perhaps before anybody else has asked.
-- @tparam table clocks of support.wrong_clock: the first one's
-- @number ttl of the leases
-- @tparam[opt] function drop ends the candidates' sessions
-- @treturn table
function server_faults.put_right(clocks, ttl, drop)
  return { weight = 2, begin = function(world, random)
    local clock, seconds = clocks[1], random(2) == 1 and random(12) * 3600 or random() * 2 * ttl
    world:say("the clock of the store is set back by %.1f s", seconds)
    clock:set(clock.seconds - seconds)
    crown.sleep(random() * ttl)
    local leader, free = world:leader(), nil
    if leader and not leader.suffers then
      leader.suffers = true
      world:say("hold back both ways of %s, who leads", leader.node)
      free = hold_back(leader)
    end
    if drop and random(2) == 1 then drop(world) end
    world:say "the clock of the store is put right"
    clock:set(clock.seconds + seconds)
    return free
  end }
end

--- Whoever leads is asked to go.
-- @treturn table
function server_faults.evict()
  return { weight = 2, beside = true, begin = function(world, random)
    world:say "evict"
    crown.spawn(world.run, world, { "evict", "--force", "--wait", "1", world.elections[random(#world.elections)] })
  end }
end

--- All servers crash at once and come back with what they have, as when the power fails.
-- @tparam table servers with `down` and `up`, or `launch` and `await` where one alone does not answer
-- @treturn table
function server_faults.outage(servers)
  return { weight = 1, begin = function(world)
    world:say "all servers of the store crash"
    for _, one in ipairs(servers) do one:down() end
    return function()
      for _, one in ipairs(servers) do (one.launch or one.up)(one) end
      for _, one in ipairs(servers) do
        if one.await then one:await() end
      end
    end
  end }
end

--- All servers but one freeze: what is left is no majority.
-- @tparam table servers with `freeze` and `thaw`
-- @treturn table
function server_faults.minority(servers)
  return { weight = 1, begin = function(world, random)
    local left = random(#servers)
    world:say("all servers of the store freeze but that of port %d", servers[left].port)
    local function all(act)
      for i, one in ipairs(servers) do
        if i ~= left then one[act](one) end
      end
    end
    local fine, problem = pcall(all, "freeze")
    if not fine then -- one may be frozen that nobody would thaw
      all "thaw"
      error(problem, 0)
    end
    return function() all "thaw" end
  end }
end

--- The store comes back with files of before, also with the epochs of before: its page says so.
-- @tparam table server with `down`, `up`, and `data`, the path of its files
-- @treturn table
function server_faults.older_data(server)
  return { weight = 1, begin = function(world)
    world:say "the store comes back with older data"
    world.anew = true
    local copy = server.data .. ".copy"
    server:down()
    assert(os.execute(("rm -rf %s; cp -a %s %s"):format(copy, server.data, copy)) == 0)
    server:up()
    return function()
      server:down()
      assert(os.execute(("rm -rf %s; mv %s %s"):format(server.data, copy, server.data)) == 0)
      server:up()
    end
  end }
end

--- The store comes back without anything, also without its epochs: its page says so.
-- @tparam table server with `down`, `wipe`, `up`
-- @tparam[opt] function ready called when it is up again
function server_faults.wipe(server, ready)
  return { weight = 1, begin = function(world)
    world:say "the store comes back without data"
    world.anew = true
    server:down()
    server:wipe()
    return function()
      server:up()
      if ready then ready() end
    end
  end }
end

return server_faults
