--- What one runtime needs for 1, 10, 100 … 100,000 leases on one Postgres, led and refreshed.
local Postgres = require "support.postgres"
local probe = require "probe"

local TTL = 30
local SETTLED, WATCHED = 30, 30 -- seconds: each lease is refreshed three times

local APP = [[
local crown = require "crown"
local elections = require "crown.core.election"
local count = tonumber(arg[3])
for i = 1, count do crown.elect { name = "e" .. i, oracle = { "postgres_lease", url = arg[2], ttl = tonumber(arg[4]) } } end
crown.spawn(function()
  repeat crown.sleep(0.05) until elections.counts()["leadership.claimed"] >= count
  local file = io.open(arg[1], "w")
  file:write "led\n"
  file:close()
end)
]]

local function thousands(count)
  return (("%d"):format(count):reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", ""))
end

-- A server of its own: what an earlier number has left in its table would be looked at.
local function cost(count)
  local server = Postgres.start()
  local found = probe.many { app = APP, args = { server.url, count, TTL }, settle = SETTLED, watch = WATCHED,
    meter = function() return probe.tree_seconds(server.process.pid) end }
  server:destroy()
  return found
end

return function(measure)
  for _, count in ipairs { 1, 10, 100, 1000, 10000, 100000 } do
    local found
    local function row(what, field)
      measure(("growth, TTL %d s, %s leases: %s"):format(TTL, thousands(count), what), "", function()
        found = found or cost(count)
        return found[field]
      end, 1)
    end
    row("memory in MB", "pss")
    row("% of a core", "cpu")
    row("% of a core in the server", "metered")
  end
end
