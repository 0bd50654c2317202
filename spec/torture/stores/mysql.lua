--- MariaDB: one server.
local Mysql = require "support.mysql"
local server_faults = require "torture.server_faults"
local WrongClock = require "support.wrong_clock"

local mysql = {}

local TTL = 2
local COST = 6 * TTL + 4 -- a doubt is sat out for twice the longest TTL

function mysql.single()
  local clock = WrongClock.new(0)
  local server = Mysql.start { clock = clock }
  local store = { ttl = TTL, cost = COST, ports = { function() return server.port end }, server = server, servers = { server },
    clocks = { clock } }
  function store.url(number) return server:url_for("crown", number) .. "?amnesia_wait=0" end
  local faults = server_faults.of { down = function() server:down() end, up = function() server:up() end,
    freeze = function() server:freeze() end, thaw = function() server:thaw() end }
  faults.older_data = server_faults.older_data(server)
  faults.step = server_faults.step({ clock })
  faults.put_right = server_faults.put_right({ clock }, TTL, function() server:end_sessions() end)
  faults.evict = server_faults.evict()
  faults.sessions = server_faults.said("the store ends all sessions", function() server:end_sessions() end)
  faults.drop = server_faults.said("the tables are dropped", function(world)
    world.anew = world.anew or clock.seconds < 0
    server:drop()
  end)
  faults.truncate = server_faults.said("a table is truncated", function()
    pcall(server.sql, server, "TRUNCATE crown.crown_register")
  end)
  faults.empty = server_faults.said("all rows are deleted", function(world)
    world.anew = world.anew or clock.seconds < 0
    pcall(server.sql, server, "DELETE FROM crown.crown_register; DELETE FROM crown.crown_register_mark")
  end)
  faults.locks = server_faults.said("somebody locks the table", function()
    pcall(server.sql, server, "LOCK TABLES crown.crown_register WRITE")
    return function() server:sql "UNLOCK TABLES" end
  end)
  faults.read_only = server_faults.said("the server is read-only", function()
    server:sql "SET GLOBAL read_only = 1"
    return function() server:sql "SET GLOBAL read_only = 0" end
  end)
  faults.users = server_faults.said("the user may not log in", function()
    server:sql "ALTER USER crown@'%' ACCOUNT LOCK"
    server:end_sessions()
    return function() server:sql "ALTER USER crown@'%' ACCOUNT UNLOCK" end
  end)
  store.faults = faults
  return store
end

return mysql
