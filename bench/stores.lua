--- Failover on real servers of etcd and NATS, on the example's HTTP lease server, and in a registry.
local Candidate = require "support.candidate"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local Nats = require "support.nats"
local Postgres = require "support.postgres"
local probe = require "probe"
local tempdir = require "support.tempdir"

local function http_server()
  local self = { process = Candidate.start { args = { "lua/examples/http_lease/lease_server.lua" }, node = "server",
    log = tempdir() .. "/log" } }
  self.port = eventually(function() return tonumber(self.process:output():match "port (%d+)") end, 10)
  self.url = ("http://127.0.0.1:%d/locks"):format(self.port)
  function self.destroy() self.process:destroy() end
  return self
end

local function store(measure, name, server, url, ttl, limits)
  probe.store_rows(probe.rows(measure, function() return { url = url, ttl = ttl } end), name, limits, server, url)
  server:destroy()
end

return function(measure)
  local nats, etcd, http, postgres = Nats.start(), Etcd.start(), http_server(), Postgres.start()
  store(measure, "registry 2 s", postgres,
    postgres.url:gsub("^postgres", "registry+postgres") .. "?listen=127.0.0.1:0&secret=that-of-the-bench", 2,
    { "≤ 40", "≤ 120", "≤ 2100" })
  store(measure, "nats_kv 5 s", nats, nats.quick, 5, { "≤ 4", "≤ 80", "≤ 5100" })
  store(measure, "http_lease 2 s", http, http.url, 2, { "≤ 10", "≤ 80", "≤ 2100" })
  store(measure, "etcd 2 s", etcd, etcd.quick, 2, { "≤ 5", "≤ 80", "≤ 3500" })
end
