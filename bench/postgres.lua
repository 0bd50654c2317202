--- Failover on a real Postgres, and ten thousand leases in one runtime beside the same with one statement a lease.
local Postgres = require "support.postgres"
local moves = require "moves"
local probe = require "probe"

-- The same thousand refreshes a second, each a statement of its own, over one connection in pipeline mode.
local SINGLE = [[
local crown = require "crown"
local client = assert(crown.postgres.connect(arg[2]))
client:query "CREATE TABLE IF NOT EXISTS single (lock_name TEXT PRIMARY KEY, holder TEXT NOT NULL, expires_at TIMESTAMPTZ NOT NULL)"
client:query "INSERT INTO single SELECT 'e' || i, 'one', clock_timestamp() FROM generate_series(1, 10000) i"
for i = 1, 10000 do
  crown.spawn(function()
    crown.sleep(i / 1000)
    while true do
      client:query("UPDATE single SET expires_at = clock_timestamp() + interval '30 s' "
        .. "WHERE lock_name = $1 AND holder = 'one' AND expires_at IS NOT NULL RETURNING lock_name", "e" .. i)
      crown.sleep(10)
    end
  end)
end
crown.spawn(function()
  crown.sleep(45)
  local file = io.open(arg[1], "w")
  file:write "done\n"
  file:close()
end)
crown.elect { name = "alive", oracle = "memory:" }
]]

local function failovers(measure, server)
  local signal = probe.signal
  local function rows(scheme)
    return probe.rows(measure, function()
      server:empty()
      return { url = server.url:gsub("^postgres", scheme) }
    end)
  end
  local lease, advisory = rows "postgres", rows "postgres+advisory"
  probe.store_rows(lease, "postgres_lease", { "≤ 5", "≤ 10", "≤ 2370" }, server, server.url)
  moves(measure, "postgres_lease", server.url)
  advisory("postgres_advisory, SIGTERM, beyond the child's last tick", "≤ 25", signal "TERM", true)
  advisory("postgres_advisory, runtime SIGKILL", "≤ 60", signal("KILL", "runtime"))
  advisory("postgres_advisory, tree SIGKILL", "≤ 50", probe.kill_tree)
end

local function scale(measure, server)
  local function server_cpu() return probe.tree_seconds(server.process.pid) end
  local results, leases = {}, probe.LEASES:gsub("ORACLE", "postgres_lease")
  local function run(app)
    results[app] = results[app]
      or probe.many { app = app, args = { server.url }, settle = 20, watch = 20, meter = server_cpu }
    return results[app]
  end
  local function written(index) return tonumber((select(index, run(leases).text:match "(%S+) (%S+)"))) end
  measure("10,000 leases in Postgres: all led after (ms)", "≤ 2000", function() return written(1) * 1000 end, 1)
  measure("10,000 leases in Postgres: memory of the runtime in MB", "≤ 60", function() return run(leases).pss end, 1)
  measure("10,000 leases in Postgres: % of a core", "≤ 3", function() return run(leases).cpu end, 1)
  measure("10,000 leases in Postgres: 99.9 % of refreshes late by at most", "≤ 100", function()
    return written(2) * 1000
  end, 1)
  measure("10,000 leases in Postgres: % of a core in the server", "", function() return run(leases).metered end, 1)
  measure("the same, one statement a lease: % of a core in the server", "", function() return run(SINGLE).metered end, 1)
end

return function(measure)
  local server = Postgres.start()
  failovers(measure, server)
  scale(measure, server)
  server:destroy()
end
