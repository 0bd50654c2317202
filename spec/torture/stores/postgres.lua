--- Postgres: the lease and the advisory lock, a standby that is promoted, and the lease behind a connection pooler.
local crown = require "crown"
local Pgbouncer = require "support.pgbouncer"
local Postgres = require "support.postgres"
local server_faults = require "torture.server_faults"
local signals = require "support.signals"
local WrongClock = require "support.wrong_clock"

local postgres = {}

local TTL = 2
local COST = 4 * TTL + 4
local HOUR = 3600
local EVICTED = 0.5 -- seconds in which a leader goes, and the next one comes

-- A server that another one may take the place of: `hands.server` is the one that counts.
local function start()
  local clock = WrongClock.new(0)
  return { server = Postgres.start { clock = clock }, clocks = { clock } }
end

-- Its host's clock may be hours from the first one's.
local function new_standby(world, hands, random)
  local hours = (random(3) - 2) * random(12)
  local clock = WrongClock.new(hands.clocks[1].seconds + hours * HOUR)
  if hours ~= 0 then world:say("its clock is %+d h from the other's", hours) end
  return hands.server:replica(clock), clock
end

local function fail_over(world, hands, standby, clock)
  world:say "fail over to it"
  hands.server:down "immediate"
  standby:thaw()
  standby:promote()
  hands.server, hands.clocks[1] = standby, clock
  if hands.moved then hands.moved(standby) end
end

local function faults_of(hands)
  local faults = server_faults.of { down = function() hands.server:down "immediate" end, up = function() hands.server:up() end,
    freeze = function() hands.server:freeze() end, thaw = function() hands.server:thaw() end }
  faults.sessions = { weight = 2, begin = function(world)
    world:say "the store ends all sessions"
    hands.server:sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crown'"
  end }
  -- In the middle of a statement, perhaps, with the locks that it has.
  faults.backends = { weight = 2, begin = function(world, random)
    local stopped = {}
    for _, row in ipairs(hands.server:sql "SELECT pid FROM pg_stat_activity WHERE usename = 'crown'") do
      if random(2) == 1 then stopped[#stopped + 1] = row.pid end
    end
    world:say("%d of the store's processes for sessions are stopped", #stopped)
    signals.send_all(stopped, "STOP")
    return function() signals.send_all(stopped, "CONT") end
  end }
  faults.step = server_faults.step(hands.clocks)
  faults.put_right = server_faults.put_right(hands.clocks, TTL, faults.sessions.begin)
  faults.evict = server_faults.evict()
  -- It lacks what was written while it was cut off.
  faults.failover = { weight = 1, begin = function(world, random)
    world:say "a standby falls behind"
    local standby, clock = new_standby(world, hands, random)
    standby:freeze()
    return function() fail_over(world, hands, standby, clock) end
  end }
  -- It has all that was confirmed: perhaps a release of just now, or the grant after it.
  faults.failover_in_step = { weight = 1, begin = function(world, random)
    world:say "a standby is kept in step"
    local standby, clock = new_standby(world, hands, random)
    hands.server:waits_for_standbys()
    return function()
      if random(3) > 1 then faults.evict.begin(world, random) end
      crown.sleep(random() * EVICTED)
      fail_over(world, hands, standby, clock)
    end
  end }
  -- Files that are copied back keep their timeline: where nobody knows better, epochs are given again, as the pages say.
  faults.older_data = { weight = 1, begin = function(world)
    world:say "the store comes back with older data"
    world.anew = true
    hands.server:down "fast"
    local restore = hands.server:backup()
    hands.server:up()
    return function()
      hands.server:down "immediate"
      restore()
      hands.server:up()
    end
  end }
  faults.truncate = { weight = 1, begin = function(world)
    world:say "truncate and empty the tables, as far as that is allowed"
    for _, name in ipairs { "crown_lease_v1", "crown_advisory_v1" } do
      pcall(hands.server.sql, hands.server, "TRUNCATE " .. name)
      pcall(hands.server.sql, hands.server, "DELETE FROM " .. name)
    end
  end }
  faults.drop = { weight = 1, begin = function(world)
    world:say "the tables are dropped"
    world.anew = world.anew or hands.clocks[1].seconds < 0 -- where all is lost epochs begin by that clock
    hands.server:sql "DROP TABLE IF EXISTS crown_lease_v1, crown_advisory_v1, crown_store_v1"
  end }
  faults.users = { weight = 1, begin = function(world)
    world:say "the user may not log in"
    hands.server:sql "ALTER ROLE crown NOLOGIN"
    hands.server:sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crown'"
    return function() hands.server:sql "ALTER ROLE crown LOGIN" end
  end }
  return faults
end

local function direct(scheme)
  local hands = start()
  local store = { ttl = TTL, cost = COST, clocks = hands.clocks, hands = hands,
    server = { destroy = function() hands.server:destroy() end } }
  store.ports = { function() return hands.server.port end }
  function store.url(number) return ("%s://crown@127.0.0.1:%d/crown?amnesia_wait=0"):format(scheme, number or hands.server.port) end
  store.faults = faults_of(hands)
  return store
end

function postgres.lease() return direct "postgres" end

function postgres.advisory() return direct "postgres+advisory" end

function postgres.bouncer()
  local hands = start()
  local bouncer = Pgbouncer.start(hands.server)
  function hands.moved(server) bouncer:lead_to(server) end
  local store = { ttl = TTL, cost = COST + 3, clocks = hands.clocks, hands = hands, ports = { function() return bouncer.port end } }
  store.server = { destroy = function()
    bouncer:destroy()
    hands.server:destroy()
  end }
  function store.url(number) return ("postgres://crown@127.0.0.1:%d/crown?amnesia_wait=0"):format(number or bouncer.port) end
  store.faults = faults_of(hands)
  store.faults.reload = { weight = 2, begin = function(world)
    world:say "the pooler reads its configuration again"
    bouncer:lead_to(hands.server)
  end }
  store.faults.pooler = { weight = 2, begin = function(world)
    world:say "the pooler crashes"
    bouncer:down()
    return function() bouncer:up() end
  end }
  return store
end

return postgres
