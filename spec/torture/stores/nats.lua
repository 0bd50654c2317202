--- NATS: one server; three servers with a bucket that all of them keep.
local Nats = require "support.nats"
local server_faults = require "torture.server_faults"
local WrongClock = require "support.wrong_clock"

local nats = {}

local TTL = 3
local COST = 4 * TTL + 4
local CHANGE_OF_LEADER = 8 -- seconds in which a stream has none, beside what every fault costs

-- Epochs are revisions: they begin anew with a bucket (docs/oracle-nats.md), so none is made anew here.
function nats.single()
  local clock = WrongClock.new(0)
  local server = Nats.start { clock = clock }
  local store = { ttl = TTL, cost = COST, ports = { function() return server.port end }, server = server }
  function store.url(number) return ("nats://127.0.0.1:%d/SPEC?amnesia_wait=0"):format(number or server.port) end
  store.faults = server_faults.of { down = function() server:down() end, up = function() server:up() end,
    freeze = function() server:freeze() end, thaw = function() server:thaw() end }
  store.faults.users = { weight = 1, begin = function(world)
    world:say "logins are asked for"
    server:configure "authorization { user: joe, password: secret }"
    return function() server:configure "" end
  end }
  store.faults.step = server_faults.step { clock }
  store.faults.evict = server_faults.evict(store)
  return store
end

function nats.three()
  local clocks = WrongClock.several(3)
  local servers = Nats.cluster(3, nil, clocks)
  local store = { ttl = TTL, cost = COST + CHANGE_OF_LEADER, ports = server_faults.ports(servers), server = { destroy = function()
    for _, one in ipairs(servers) do one:destroy() end
  end } }
  function store.url(...) return ("nats://%s/SPEC?replicas=3&amnesia_wait=0"):format(server_faults.hosts(servers, ...)) end
  store.faults = server_faults.of_one(function(random) return servers[random(#servers)] end)
  store.faults.step = server_faults.step(clocks)
  store.faults.evict = server_faults.evict(store)
  return store
end

return nats
