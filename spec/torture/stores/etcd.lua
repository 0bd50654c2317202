--- etcd: one server, with users; three servers.
local Etcd = require "support.etcd"
local server_faults = require "torture.server_faults"
local WrongClock = require "support.wrong_clock"

local etcd = {}

local TTL = 2
local COST = 4 * (TTL + 1) + 4 -- etcd ends a lease up to a second late
local LOGIN = "root:secret"

function etcd.single()
  local clock = WrongClock.new(0)
  local server = Etcd.start(nil, nil, clock)
  local function secure() server:secure(LOGIN) end
  secure()
  local store = { ttl = TTL, cost = COST, ports = { function() return server.port end }, server = server, servers = { server },
    clocks = { clock } }
  function store.url(number) return ("etcd://%s@127.0.0.1:%d?amnesia_wait=0"):format(LOGIN, number or server.port) end
  store.faults = server_faults.of { down = function() server:down() end, up = function() server:up() end,
    freeze = function() server:freeze() end, thaw = function() server:thaw() end }
  store.faults.wipe = server_faults.wipe(server, secure)
  store.faults.users = { weight = 1, begin = function(world)
    world:say "a user is added"
    server:ctl("--user", LOGIN, "user", "add", ("user%.0f:x"):format(os.clock() * 1e6))
  end }
  store.faults.older_data = server_faults.older_data(server)
  store.faults.compact = { weight = 1, begin = function(world)
    world:say "the store forgets what was before"
    local now = server:ctl("--user", LOGIN, "get", "x", "--write-out", "fields"):match '"Revision" : (%d+)'
    server:ctl("--user", LOGIN, "compaction", now)
  end }
  store.faults.step = server_faults.step { clock }
  store.faults.evict = server_faults.evict()
  return store
end

function etcd.three()
  local clocks = WrongClock.several(3)
  local servers = Etcd.cluster(3, clocks)
  local store = { ttl = TTL, cost = COST + 4, ports = server_faults.ports(servers), servers = servers,
    server = server_faults.all(servers), clocks = clocks }
  function store.url(...) return ("etcd://%s?amnesia_wait=0"):format(server_faults.hosts(servers, ...)) end
  store.faults = server_faults.of_one(function(random) return servers[random(#servers)] end)
  store.faults.outage, store.faults.minority = server_faults.outage(servers), server_faults.minority(servers)
  store.faults.leader = { weight = 1, begin = function(world, random)
    local member = random(#servers)
    world:say("server %d is to lead the others", member)
    local id = servers[1]:ctl("member", "list"):match(("(%%x+), %%a+, e%d,"):format(member))
    for _, one in ipairs(servers) do pcall(one.ctl, one, "move-leader", id) end -- only the one that leads can
  end }
  store.faults.step = server_faults.step(clocks)
  store.faults.evict = server_faults.evict()
  return store
end

return etcd
