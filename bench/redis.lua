--- Failover on a real Redis, and ten thousand leases in one runtime.
local crown = require "crown"
local moves = require "moves"
local probe = require "probe"
local rivals = require "rivals"
local Redis = require "support.redis"
local tempdir = require "support.tempdir"

local ticker = os.getenv "CROWN_TICKER" or "build/ticker"

-- The npm package redlock on the same server.
local function peer(measure, server)
  if not rivals.have "node" or not rivals.have "npm" then
    io.stderr:write "peer redlock: skipped, there is no Node.js here\n"
    return
  end
  local dir, both = tempdir(), 0
  local script = dir .. "/redlock.js"
  measure("peer redlock (npm), TTL 2 s, holder SIGKILL: takeover", "", function()
    if crown.exec({ "test", "-e", script }).code ~= 0 then
      crown.exec({ "npm", "install", "--silent", "--prefix", dir, "redlock@5.0.0-beta.2", "ioredis@5" }, { timeout = 120 })
      crown.exec { "cp", "bench/redlock.js", script }
    end
    local value, overlap = rivals.takeover(dir, "/usr/bin/env", function(file)
      return { "node", script, server.port, ticker, file }
    end)
    both = math.max(both, overlap)
    return value
  end, 3)
  measure("peer redlock: both ticking, 0.5 s after", "", function() return both end, 1)
end

return function(measure)
  local server = Redis.start()
  probe.store_rows(probe.rows(measure, function() return { url = server.quick } end), "redis", { "≤ 4", "≤ 60", "≤ 2370" }, server,
    server.url)
  moves(measure, "redis", server.quick)
  local result
  local function run()
    result = result or probe.many { app = probe.LEASES:gsub("ORACLE", "redis"), args = { server.quick, "70" }, settle = 40,
      watch = 20, meter = function() return probe.cpu_seconds(server.process.pid) end }
    return result
  end
  measure("10,000 leases in Redis: memory of the runtime in MB", "≤ 50", function() return run().pss end, 1)
  measure("10,000 leases in Redis: % of a core", "≤ 1.5", function() return run().cpu end, 1)
  measure("10,000 leases in Redis: 99.9 % of refreshes late by at most", "≤ 100", function()
    return tonumber(run().text:match " (%S+)") * 1000
  end, 1)
  measure("10,000 leases in Redis: % of a core in the server", "", function() return run().metered end, 1)
  peer(measure, server)
  server:destroy()
end
