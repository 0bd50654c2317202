--- Ten thousand elections led by one runtime, TTL 30 s, on real servers of etcd, NATS and ZooKeeper.
local Etcd = require "support.etcd"
local Nats = require "support.nats"
local probe = require "probe"
local ZooKeeper = require "support.zookeeper"

local TTL = 30

-- What is new is sat out first.
local STORES = {
  { name = "etcd", oracle = "etcd", server = Etcd, path = "/bench", sits_out = TTL, limits = { "≤ 20", "≤ 70", "≤ 3", "≤ 3000" } },
  { name = "NATS", oracle = "nats_kv", server = Nats, path = "/BENCH", sits_out = TTL,
    limits = { "≤ 20", "≤ 60", "≤ 2", "≤ 3000" } },
  { name = "ZooKeeper", oracle = "zookeeper", server = ZooKeeper, path = "/bench", sits_out = TTL,
    limits = { "≤ 20", "≤ 70", "≤ 3", "≤ 5000" } },
}

local function rows(measure, store)
  local result
  local function run()
    if result then return result end
    local server = store.server.start()
    result = probe.many { app = probe.LEASES:gsub("ORACLE", store.oracle), args = { server.url .. store.path, "90" }, settle = 60,
      watch = 20, meter = function() return probe.cpu_seconds(server.process.pid) end }
    server:destroy()
    return result
  end
  local what = "10,000 leases in " .. store.name
  measure(what .. ": descriptors of the runtime", store.limits[1], function() return run().descriptors end, 1)
  measure(what .. ": memory of the runtime in MB", store.limits[2], function() return run().pss end, 1)
  measure(what .. ": % of a core", store.limits[3], function() return run().cpu end, 1)
  measure(what .. ": all led after" .. (store.sits_out and ", beyond the sit-out" or ""), store.limits[4], function()
    return (tonumber(run().text:match "%S+") - (store.sits_out or 0)) * 1000
  end, 1)
  measure(what .. ": % of a core in the server", "", function() return run().metered end, 1)
end

return function(measure)
  for _, store in ipairs(STORES) do rows(measure, store) end
end
