--- Failover on a real MariaDB, and ten thousand leases in one runtime; beside them the client's GET_LOCK, as scripts use it.
local Mysql = require "support.mysql"
local moves = require "moves"
local probe = require "probe"
local rivals = require "rivals"
local tempdir = require "support.tempdir"

local ticker = os.getenv "CROWN_TICKER" or "build/ticker"
local TTL = 2
local QUICK = "?amnesia_wait=0&trust_empty=true"

-- The client runs a command while its connection holds the lock. The command inherits the connection, and so keeps the lock when
-- the client is dead.
local function peer(measure, server)
  if not rivals.have "mariadb" then
    io.stderr:write "peer GET_LOCK: skipped, there is no client of MariaDB here\n"
    return
  end
  local dir, both = tempdir(), 0
  measure("peer GET_LOCK (mariadb client), holder SIGKILL: takeover (inf: never)", "", function()
    local value, overlap = rivals.takeover(dir, "/usr/bin/mariadb", function(file)
      return { "--no-defaults", "--host=127.0.0.1", "--port=" .. server.port, "--user=crown", "--execute",
        ("SELECT GET_LOCK('bench', 1000);\n\\! exec %s %s\n"):format(ticker, file) }
    end)
    both = math.max(both, overlap)
    return value
  end, 3)
  measure("peer GET_LOCK: both ticking, 0.5 s after", "", function() return both end, 1)
end

return function(measure)
  local server = Mysql.start()
  local url = server.url .. QUICK
  probe.store_rows(probe.rows(measure, function() return { url = url, ttl = TTL } end), "mysql 2 s", { "≤ 40", "≤ 120", "≤ 2370" },
    server, url)
  moves(measure, "mysql 2 s", url, TTL)
  local result
  local function run()
    result = result or probe.many { app = probe.LEASES:gsub("ORACLE", "mysql"), args = { url, "70" }, settle = 40, watch = 20,
      meter = function() return probe.cpu_seconds(server.process.pid) end }
    return result
  end
  measure("10,000 leases in MySQL: descriptors of the runtime", "≤ 20", function() return run().descriptors end, 1)
  measure("10,000 leases in MySQL: memory of the runtime in MB", "≤ 70", function() return run().pss end, 1)
  measure("10,000 leases in MySQL: % of a core", "≤ 3", function() return run().cpu end, 1)
  measure("10,000 leases in MySQL: % of a core in the server", "", function() return run().metered end, 1)
  peer(measure, server)
  server:destroy()
end
