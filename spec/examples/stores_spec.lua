-- The examples on Redis, etcd, MySQL, S3, Kubernetes, ZooKeeper, NATS, HTTP and records over HTTP, run as a user runs them.
local base64 = require "crown.text.base64"
local Candidate = require "support.candidate"
local ConsulServer = require "support.consul_server"
local crown = require "crown"
local Etcd = require "support.etcd"
local eventually = require("crown.testing").eventually
local KubernetesServer = require "support.kubernetes_server"
local Mysql = require "support.mysql"
local Nats = require "support.nats"
local record = require "crown.register.record"
local Redis = require "support.redis"
local S3Server = require "support.s3_server"
local StandIn = require "support.stand_in"
local tempdir = require "support.tempdir"
local ZooKeeper = require "support.zookeeper"

-- A server over HTTP that is an example itself.
local function http_server(file, path)
  local Server = {}
  function Server.start()
    local process = Candidate.start { args = { "lua/examples/" .. file }, node = "server", log = tempdir() .. "/log" }
    local port = eventually(function() return process:output():match "port (%d+)" end, 20)
    return { url = "http://127.0.0.1:" .. port .. path, destroy = function() process:destroy() end }
  end
  return Server
end

-- A new store is sat out, for as long as a lease that it has forgotten may last. The user says that these are new, and that no
-- lease is longer than the examples' own.
local NEW = "?trust_empty=true&amnesia_wait=0"

local Records = http_server("cas_oracle/record_server.lua", "/records")
local start_records = Records.start

-- This one has had a leader, who ended in order.
function Records.start()
  local server = start_records()
  local answer = assert(crown.http.request { url = server.url .. "/worker", method = "PUT", headers = { ["If-None-Match"] = "*" },
    body = record.text({ v = 1, serial = 1, memory = "", epoch = 1 }, "spec") })
  assert.equal(200, answer.status)
  return server
end

local Kubernetes = {}

function Kubernetes.start()
  local server = KubernetesServer.start()
  return { url = server:url "trust_empty=true", destroy = function() server:destroy() end }
end

local Consul = {}

function Consul.start()
  local server = ConsulServer.start()
  return { url = server:url "trust_empty=true&amnesia_wait=0", destroy = function() server:destroy() end }
end

-- A stand-in that is asked with a login of the environment.
local function stand_in(folder, url, login)
  return { start = function()
    local server = StandIn.make(("spec/support/%s/stand_in.lua"):format(folder), StandIn)
    server:up()
    for name, value in pairs(login) do S3Server.set(name, value) end
    return { url = url:format(server.port), destroy = function()
      for name in pairs(login) do S3Server.set(name) end
      server:destroy()
    end }
  end }
end

local MORE = "&plain=true&ttl=2&trust_empty=true&amnesia_wait=0"
local Dynamo = stand_in("dynamodb", "dynamodb://127.0.0.1:%d/elections?region=eu-central-1" .. MORE,
  { AWS_ACCESS_KEY_ID = "AKIAALL", AWS_SECRET_ACCESS_KEY = "all/+secret" })
local Azure = stand_in("azure", "azure_blob://127.0.0.1:%d/elections?account=spec" .. MORE,
  { AZURE_STORAGE_KEY = base64.encode "the-key-of-the-account" })

local S3 = {}

function S3.start()
  local server = S3Server.start()
  return { url = server:url "trust_empty=true&amnesia_wait=0", destroy = function() server:destroy() end }
end

for example, case in pairs {
  ["redis.lua"] = { Redis, "REDIS_URL", NEW },
  ["etcd.lua"] = { Etcd, "ETCD_URL" },
  ["mysql.lua"] = { Mysql, "MYSQL_URL", NEW },
  ["consul.lua"] = { Consul, "CONSUL_URL" },
  ["dynamodb/app.lua"] = { Dynamo, "DYNAMODB_URL" },
  ["azure/app.lua"] = { Azure, "AZURE_URL" },
  ["s3.lua"] = { S3, "S3_URL" },
  ["kubernetes.lua"] = { Kubernetes, "K8S_URL" },
  ["zookeeper.lua"] = { ZooKeeper, "ZOOKEEPER_URL", "/app" .. NEW },
  ["nats_kv.lua"] = { Nats, "NATS_URL", "/ELECTIONS" .. NEW },
  ["http_lease/app.lua"] = { http_server("http_lease/lease_server.lua", "/locks"), "LEASE_URL" },
  ["cas_oracle/app.lua"] = { Records, "RECORDS_URL" },
} do
  describe("the example " .. example, function()
    local server, started

    before_each(function()
      server, started = case[1].start(), {}
      if server.trusted then server:trusted() end
    end)
    after_each(function()
      for _, candidate in ipairs(started) do candidate:destroy() end
      server:destroy()
    end)

    local function start(node)
      started[#started + 1] = Candidate.start { args = { "lua/examples/" .. example }, node = node,
        env = { [case[2]] = server.url .. (case[3] or "") }, log = tempdir() .. "/log" }
      return started[#started]
    end

    it("leads once, and hands over", function()
      local one = start "one"
      eventually(function() return one:output():find "working as one in epoch %d" end, 15)
      local two = start "two"
      two:follows()
      one:signal "TERM"
      eventually(function() return two:output():find "working as two in epoch %d" end, 10)
      assert.equal(0, one:wait(10))
    end)
  end)
end
