--- NATS: one server; three servers with a bucket that all of them keep.
local Nats = require "support.nats"
local server_faults = require "torture.server_faults"
local Wire = require "support.nats_wire"
local WrongClock = require "support.wrong_clock"

local nats = {}

local TTL = 3
local COST = 4 * TTL + 4
local CHANGE_OF_LEADER = 8 -- seconds in which a stream has none, beside what every fault costs

local function ask(server, what)
  local wire = Wire.open(server.port)
  local answer = wire:ask("$JS.API.STREAM." .. what .. ".KV_SPEC", nil, "")
  wire.connection:close()
  assert(not answer.error, answer.error and answer.error.description)
end

-- Epochs are revisions: they begin anew with a bucket (docs/oracle-nats.md).
local function delete(pick)
  return { weight = 1, begin = function(world)
    world:say "the bucket is deleted"
    world.anew = true
    ask(pick(), "DELETE")
  end }
end

local function users(servers)
  return { weight = 1, begin = function(world)
    world:say "logins are asked for"
    for _, one in ipairs(servers) do one:configure "authorization { user: joe, password: secret }" end
    return function()
      for _, one in ipairs(servers) do one:configure "" end
    end
  end }
end

function nats.single()
  local clock = WrongClock.new(0)
  local server = Nats.start { clock = clock }
  local store = { ttl = TTL, cost = COST, ports = { function() return server.port end }, server = server, servers = { server },
    clocks = { clock } }
  function store.url(number) return ("nats://127.0.0.1:%d/SPEC?amnesia_wait=0"):format(number or server.port) end
  store.faults = server_faults.of { down = function() server:down() end, up = function() server:up() end,
    freeze = function() server:freeze() end, thaw = function() server:thaw() end }
  store.faults.users, store.faults.delete = users { server }, delete(function() return server end)
  store.faults.step = server_faults.step { clock }
  store.faults.evict = server_faults.evict()
  return store
end

function nats.three()
  local clocks = WrongClock.several(3)
  local servers = Nats.cluster(3, nil, clocks)
  local store = { ttl = TTL, cost = COST + CHANGE_OF_LEADER, ports = server_faults.ports(servers), servers = servers,
    server = server_faults.all(servers), clocks = clocks }
  function store.url(...) return ("nats://%s/SPEC?replicas=3&amnesia_wait=0"):format(server_faults.hosts(servers, ...)) end
  local function any(random) return servers[random(#servers)] end
  store.faults = server_faults.of_one(any)
  store.faults.outage, store.faults.minority = server_faults.outage(servers), server_faults.minority(servers)
  store.faults.users, store.faults.delete = users(servers), delete(function() return servers[1] end)
  store.faults.leader = { weight = 1, begin = function(world, random)
    world:say "the stream's leader steps down"
    ask(any(random), "LEADER.STEPDOWN")
  end }
  store.faults.step = server_faults.step(clocks)
  store.faults.evict = server_faults.evict()
  return store
end

return nats
